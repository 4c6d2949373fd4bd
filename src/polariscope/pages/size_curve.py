"""Curves over the number of latents as a figure for print."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from polariscope.analysis.regime.types import COLOURS, TYPES
from polariscope.core.look import INK, PALETTE
from polariscope.storage.search import SearchFolder
from polariscope.studies.figures import Drawing, Row
from polariscope.studies.figures.support.drawing import draw_line, panels
from polariscope.studies.figures.support.grouping import few

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from polariscope.sizing import Size
    from polariscope.sizing.support.curve import SizeCurve

PANELS: dict[str, dict[str, str]] = {
    "loss (nats)": {"loss": "all terms", "reconstruction": "reconstruction"},
    "KL (nats)": {"rate": "KL"},
    "probe accuracy": {"probe": "mean representation"},
    "total variance": {"trace_mean": "mean μ", "trace_sampled": "sampled z", "trace": "Σ E[σ²]"},
    "intrinsic dimension": {"dimension_mean": "mean μ", "dimension_sampled": "sampled z"},
    "latents": {str(kind): str(kind) for kind in TYPES},
}
"""What is drawn where: the label of a vertical axis, and the lines over it by quantity."""
TYPE_COLOURS = {str(kind): colour for kind, colour in COLOURS.items()}
MARKS = ("o", "s", "^")
ANSWER_DASHES = ((0, (4, 2)), (0, (1, 1.2)), (0, (5, 1.5, 1, 1.5)), (0, (8, 2)), (0, (2, 2, 6, 2)))
"""How the lines of answers are told apart, in the order of the methods."""


def draw_curve(curve: SizeCurve) -> Drawing:
    """The curves with bands over seeds, and the methods' answers as vertical lines.

    A panel for each kind of quantity, as bonheme2023 Figs 8.1, 8.5 to 8.10 and 8.12; those without a value are left
    out.

    :param curve: what was measured.
    """
    from matplotlib import rc_context

    from polariscope.core.look import PRINT

    rows = curve_rows(curve)
    with rc_context(PRINT):
        figure = _draw(rows, curve)
        figure.draw_without_rendering()
        figure.set_layout_engine("none")
    return Drawing("size-curve", figure, rows, curve.notes)


def curve_rows(curve: SizeCurve) -> tuple[Row, ...]:
    """What is drawn: panel and line of each mean with its interval, by number of latents.

    :param curve: what was measured.
    """
    return tuple(
        {
            "panel": panel,
            "line": line,
            "quantity": quantity,
            "strength": band.n_latents,
            **{"n": band.n, "mean": band.mean, "sd": band.sd, "low": band.low, "high": band.high},
            **few([value for value in _values(curve, quantity, band.n_latents) if value is not None]),
        }
        for panel, lines in PANELS.items()
        for quantity, line in lines.items()
        for band in curve.bands(quantity)
    )


def _values(curve: SizeCurve, quantity: str, n_latents: int) -> list[float | None]:
    values = [getattr(point, quantity) for point in curve.points if point.n_latents == n_latents]
    return [None if value is None else float(value) for value in values]


def _draw(rows: tuple[Row, ...], curve: SizeCurve) -> Figure:
    from matplotlib.ticker import MaxNLocator

    names = [name for name in PANELS if any(row["panel"] == name for row in rows)]
    figure, places = panels([""] * len(names), most=2 if len(names) in (2, 4) else 3, height=1.9)
    answers = [size for size in curve.answers if size.value is not None]
    for axes, name in zip(places, names, strict=True):
        here = [row for row in rows if row["panel"] == name]
        lines = list(dict.fromkeys(str(row["line"]) for row in here))
        for place, line in enumerate(lines):
            own = tuple(row for row in here if row["line"] == line)
            colour = TYPE_COLOURS.get(line, PALETTE[place])
            draw_line(axes, own, colour=colour, marker=MARKS[place], label=line)
        axes.set_ylabel(name, parse_math=False)
        axes.set_xlabel("number of latents")
        axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
        for place, size in enumerate(answers):
            _mark(axes, size, place)
        if len(lines) > 1:
            axes.legend(
                loc="best",
                fontsize=6.5,
                frameon=True,
                facecolor="white",
                edgecolor="none",
                framealpha=0.85,
            )
    handles = [places[0].lines[-len(answers) + place] for place in range(len(answers))]
    if answers:
        words = [f"{size.method}: {size.answer}" for size in answers]
        figure.legend(handles, words, loc="outside lower center", ncols=min(3, len(words)), labelcolor=INK)
    return figure


def _mark(axes: Axes, size: Size, place: int) -> None:
    """A vertical line at an answer, behind the curves."""
    dashes = ANSWER_DASHES[place % len(ANSWER_DASHES)]
    assert size.value is not None
    axes.axvline(float(size.value), color=INK, lw=0.9, ls=dashes, zorder=1)


def write_curve_picture(folder: str | Path, curve: SizeCurve) -> Path:
    """Draw the curves into the folder in which they are kept; the same curves give the same bytes.

    :param folder: where they are kept.
    :param curve: what was measured.
    """
    return draw_curve(curve).save(SearchFolder(folder).curve_picture)
