"""Figure of results as a function of the number of latents."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from polariscope.analysis.regime.latent_types import COLOURS, TYPES
from polariscope.core.figure_style import INK, PALETTE, PRINT
from polariscope.core.figures import (
    COLUMN,
    PAGE,
    add_legend_below,
    axes_grid,
    draw_means,
    fix_layout,
    number_in,
    point_cells,
)
from polariscope.storage.search_folder import SearchFolder
from polariscope.studies.figures import Drawing, Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from polariscope.sizing.curve_result import SizeCurve
    from polariscope.sizing.result import Size

PANELS: dict[str, dict[str, str]] = {
    "loss (nats)": {"loss": "all terms", "reconstruction": "reconstruction"},
    "KL (nats)": {"rate": "KL"},
    "probe accuracy": {"probe": "mean representation"},
    "total variance": {"trace_mean": "mean μ", "trace_sampled": "sampled z", "trace": "Σ E[σ²]"},
    "intrinsic dimension": {"dimension_mean": "mean μ", "dimension_sampled": "sampled z"},
    "latents": {str(kind): str(kind) for kind in TYPES},
}
"""Label of the vertical axis of each panel, and the label of each quantity in it."""
TYPE_COLOURS = {str(kind): colour for kind, colour in COLOURS.items()}
MARKS = ("o", "s", "^")
HEIGHT = 1.9
"""Height of a row of panels in inches."""
Dashes: TypeAlias = "tuple[int, tuple[int | float, ...]]"
ANSWER_DASHES: tuple[Dashes, ...] = (
    (0, (4, 2)),
    (0, (1, 1.2)),
    (0, (5, 1.5, 1, 1.5)),
    (0, (8, 2)),
    (0, (2, 2, 6, 2)),
)
"""Dashes of the vertical lines at answers, in the order of the methods."""


def draw_curve(curve: SizeCurve) -> Drawing:
    """Draw the curves with bands over seeds, and the answers of the methods as vertical lines.

    There is a panel for each kind of quantity, as in bonheme2023 Figs 8.1, 8.5 to 8.10 and 8.12. Panels without values
    are omitted.

    :param curve: the results.
    """
    from matplotlib import rc_context

    rows = curve_rows(curve)
    with rc_context(PRINT):
        figure = _draw(rows, curve)
        fix_layout(figure)
    return Drawing("size-curve", figure, rows, curve.notes)


def curve_rows(curve: SizeCurve) -> tuple[Row, ...]:
    """Return the data of the figure: panel and line of each mean with its interval, by number of latents.

    :param curve: the results.
    """
    return tuple(
        {
            "panel": panel,
            "line": line,
            "quantity": quantity,
            "strength": band.n_latents,
            **{"n": band.n, "mean": band.mean, "sd": band.sd, "low": band.low, "high": band.high},
            **point_cells([value for value in _values(curve, quantity, band.n_latents) if value is not None]),
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
    n_columns = 2 if len(names) in (2, 4) else min(3, len(names))
    size = (COLUMN if n_columns == 1 else PAGE, HEIGHT * -(-len(names) // n_columns) + 0.3)
    figure, panels = axes_grid(size, len(names), n_columns)
    answers = [size for size in curve.answers if size.value is not None]
    for axes, name in zip(panels, names, strict=True):
        here = [row for row in rows if row["panel"] == name]
        lines = list(dict.fromkeys(str(row["line"]) for row in here))
        for index, line in enumerate(lines):
            on_line = [row for row in here if row["line"] == line]
            x = [number_in(row, "strength") for row in on_line]
            colour = TYPE_COLOURS.get(line, PALETTE[index])
            draw_means(axes, x, on_line, colour=colour, marker=MARKS[index], label=line)
        axes.set_ylabel(name, parse_math=False)
        axes.set_xlabel("number of latents")
        axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
        for answer, dashes in zip(answers, itertools.cycle(ANSWER_DASHES), strict=False):
            _mark(axes, answer, dashes)
        if len(lines) > 1:
            axes.legend(
                loc="best",
                fontsize=6.5,
                frameon=True,
                facecolor="white",
                edgecolor="none",
                framealpha=0.85,
            )
    if answers:
        labels = [f"{answer.method}: {answer.answer}" for answer in answers]
        # Answers are drawn last, so the last lines of a panel are theirs.
        add_legend_below(figure, panels[0].lines[-len(answers) :], labels, min(3, len(labels)))
    return figure


def _mark(axes: Axes, size: Size, dashes: Dashes) -> None:
    """Draw a vertical line at an answer, behind the curves."""
    assert size.value is not None
    axes.axvline(float(size.value), color=INK, lw=0.9, ls=dashes, zorder=1)


def write_curve_picture(folder: str | Path, curve: SizeCurve) -> Path:
    """Write a picture of the curves to the folder of their search; equal curves give identical files.

    :param folder: folder of the search.
    :param curve: the results.
    """
    return draw_curve(curve).save(SearchFolder(folder).curve_picture)
