"""Search for the number of latents: charts of the answer, the trained models and their training."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, NullLocator

from polariscope.analysis.regime.latent_types import COLOURS
from polariscope.core import figures
from polariscope.core.figure_style import INK, QUIET, STYLE, TRAIN, VALIDATION
from polariscope.core.figures import DASHES, axes_grid, plain_log_ticks, single_axes, to_svg
from polariscope.pages.sections import AbstractSection, Subject, section

if TYPE_CHECKING:
    from polariscope.pages.record import ReportRecord
    from polariscope.sizing.result import Size
    from polariscope.sizing.trial import Decision, Trial

MARKS: dict[Decision, tuple[str, str]] = {
    "fits": ("o", COLOURS["active"]),
    "too many": ("s", VALIDATION),
    "undecided": ("D", COLOURS["mixed"]),
}
"""Shape and colour of each decision; marks of undecided models are hollow."""
WIDE = (6.4, 3.1)
COLUMNS = 4
MAX_PANELS = 12
WIDE_RANGE = 6.0
"""Ratio of the largest to the smallest value above which an axis is logarithmic."""
PILLS = {"fits": "active", "too many": "passive", "undecided": "mixed"}


@section("size", title="Size", order=100)
class SizeSection(AbstractSection):
    """Search for the number of latents."""

    def measure(self, subject: Subject) -> Size | None:
        """Return the newest cached answer of a run."""
        stored = subject.newest("size")
        if stored is None:
            return None
        from polariscope.sizing.result import Size

        return Size.from_dict(stored)

    def view(self, record: ReportRecord) -> dict[str, Any]:
        """Return the charts and the table of trained models."""
        return size_view(self.part(record), "size")


def size_view(size: Size, key: str) -> dict[str, Any]:
    """Return the values for the templates of one answer; empty columns of the table are omitted."""
    from polariscope.sizing.result import path_table

    table = [
        (*cells, note)
        for cells, note in zip(path_table(size).lines, ["note", *(t.note for t in size.trials)], strict=True)
    ]
    columns = [column for column in zip(*table, strict=True) if any(column[1:])]
    heading, *rows = zip(*columns, strict=True) if columns else ((),)
    curved = {candidate_value(size, trial) for trial in size.trials if trial.curve}
    return {
        "size": size,
        "summary": method_of(size),
        "path": draw_path(size, f"{key}-path") if has_path(size) else None,
        "trainings": draw_trainings(size, f"{key}-trainings") if curved else None,
        "n_hidden": len(curved) - len(panels_of(size)),
        "heading": heading,
        "rows": [(cells, PILLS[trial.decision]) for cells, trial in zip(rows, size.trials, strict=True)],
    }


def summary_of(size: Size) -> str:
    """Return a sentence that defines the answer."""
    if size.target == "beta":
        return f"The largest β for which all {size.n_latents} latents are in use, to within a fifth."
    if size.summary:
        return size.summary
    from polariscope.sizing.methods import family

    return family.summary(size.method)  # older files do not have it


def method_of(size: Size) -> str:
    """Return a sentence about the method: its summary, which begins with a verb, after its name."""
    summary = summary_of(size)
    return summary if size.target == "beta" else f"Method {size.method}: {summary[:1].lower()}{summary[1:]}"


def candidate_value(size: Size, trial: Trial) -> float:
    """Return the position of a trial on the axis of the search: its number of latents, or its β."""
    return float(trial.n_latents if trial.beta is None or size.target == "latents" else trial.beta)


def latest(size: Size) -> list[Trial]:
    """Return the last trial of each candidate and seed, in order; a search can resume a candidate with more steps."""
    # Later trials of a candidate replace earlier ones.
    last = {(candidate_value(size, trial), trial.seed): trial for trial in size.trials}
    return [last[key] for key in sorted(last)]


def has_path(size: Size) -> bool:
    """Return whether there are at least two candidates, so a curve can be drawn."""
    return len({candidate_value(size, trial) for trial in size.trials}) > 1


def panels_of(size: Size) -> list[float]:
    """Return the candidates whose training is shown, in order; those nearest to the answer if there are many."""
    curved = {candidate_value(size, trial) for trial in latest(size) if trial.curve}
    centre = max(curved, default=0) if size.value is None else size.value
    return sorted(sorted(curved, key=lambda candidate: (abs(candidate - centre), candidate))[:MAX_PANELS])


def draw_path(size: Size, key: str) -> Markup:
    """Draw the statistic of each model against n, with the threshold and the answer."""
    with rc_context(STYLE):
        return to_svg(
            path_figure(size), key, f"{size.statistic} against {_axis(size)}; the answer is {size.answer}."
        )


def path_figure(size: Size) -> Figure:
    """Return the figure of :func:`draw_path`."""
    figure, axes = single_axes(WIDE, f"{size.statistic} of each model")
    _answer(axes, size, named=True)
    trials = latest(size)
    _threshold(axes, size)
    for seed in sorted({trial.seed for trial in trials}):
        selected = [trial for trial in trials if trial.seed == seed]
        axes.plot(
            [candidate_value(size, trial) for trial in selected],
            [trial.statistic for trial in selected],
            color=QUIET,
            lw=0.7,
            alpha=0.6,
        )
    for trial in trials:
        if trial.projected is not None:
            candidate = candidate_value(size, trial)
            axes.plot(
                [candidate, candidate], trial.projected, color=MARKS[trial.decision][1], lw=3, alpha=0.35
            )
    for decision, (marker, colour) in MARKS.items():
        selected = [trial for trial in trials if trial.decision == decision]
        if selected:
            face = "white" if decision == "undecided" else colour
            candidates, values = (
                [candidate_value(size, trial) for trial in selected],
                [trial.statistic for trial in selected],
            )
            axes.plot(candidates, values, marker, color=colour, mfc=face, mew=1.3, ms=5.5, label=decision)
    _scale(axes, "y", [float(trial.statistic) for trial in trials])
    # A logarithmic axis cannot show an answer of 0.
    answer = [] if size.value is None else [float(size.value)]
    _scale(axes, "x", [*(candidate_value(size, trial) for trial in trials), *answer])
    axes.set_xlabel(_axis(size))
    axes.legend(loc="best")
    return figure


def draw_trainings(size: Size, key: str) -> Markup:
    """Draw Σ E[σ²] of the models during training: a small panel for each candidate, a line for each seed."""
    candidates = panels_of(size)
    rows = -(-len(candidates) // COLUMNS)
    with rc_context({**STYLE, "font.size": 7.5, "axes.titlesize": 8.5}):
        columns = min(COLUMNS, len(candidates))
        figure, panels = axes_grid(
            (7.2, 1.55 * rows + 0.15), len(candidates), columns, share_x=True, share_y=True
        )
        curves = {
            candidate: [t for t in latest(size) if candidate_value(size, t) == candidate and t.curve]
            for candidate in candidates
        }
        values = [value for trials in curves.values() for trial in trials for _, value in trial.curve]
        for candidate, axes in zip(candidates, panels, strict=True):
            axes.set_title(f"β = {candidate:.3g}" if size.target == "beta" else f"n = {candidate:g}")
            _threshold(axes, size, named=False)
            for trial in curves[candidate]:
                steps, trace = zip(*trial.curve, strict=True)
                axes.plot(steps, trace, color=MARKS[trial.decision][1], lw=1.2)
            axes.xaxis.set_major_locator(MaxNLocator(3, integer=True))
            axes.xaxis.set_major_formatter(lambda step, _: f"{step:,.0f}")
        _scale(panels[0], "y", values)
        figure.supxlabel("step", color=QUIET, fontsize=8)
        figure.supylabel("Σ E[σ²]", color=QUIET, fontsize=8)
        shown = ", ".join(f"{candidate:.3g}" for candidate in candidates)
        return to_svg(
            figure, key, f"Σ E[σ²] over the training steps, one panel for each {_axis(size)}: {shown}."
        )


def draw_comparison(sizes: Sequence[Size], key: str) -> Markup:
    """Draw the answers of several methods with their intervals and costs."""
    with rc_context(STYLE):
        answers = ", ".join(f"{size.method} {size.answer}" for size in sizes)
        return to_svg(
            comparison_figure(sizes), key, f"Number of latents according to each method: {answers}."
        )


def comparison_figure(sizes: Sequence[Size]) -> Figure:
    """Return the figure of :func:`draw_comparison`."""
    figure, axes = single_axes((6.4, 0.9 + 0.3 * len(sizes)), "Number of latents, by method")
    _answer(axes, sizes[0])
    ends: list[float] = []
    for row, size in enumerate(sizes):
        colour = COLOURS["active"] if row == 0 else TRAIN
        cost = f"{size.n_steps:,} steps" if size.n_steps else "no training"
        margin = axes.get_yaxis_transform()
        axes.text(1.01, row, cost, color=QUIET, va="center", fontsize=8, transform=margin)
        if size.value is None or size.interval is None:
            axes.text(0.01, row, "no answer", color=QUIET, va="center", fontsize=8, transform=margin)
            continue
        axes.plot(size.interval, (row, row), color=colour, lw=3, alpha=0.45, solid_capstyle="round")
        axes.plot(float(size.value), row, "o", color=colour, ms=6)
        ends += [float(end) for end in (*size.interval, size.value)]
    axes.set_yticks(range(len(sizes)), [size.method for size in sizes], color=INK)
    axes.set_ylim(len(sizes) - 0.5, -0.5)
    axes.grid(visible=False, axis="y")
    _scale(axes, "x", ends)
    return figure


def save_figure(sizes: Sequence[Size], file: Path) -> None:
    """Write the chart of one or several answers to a PNG file."""
    with rc_context(STYLE):
        is_search = len(sizes) == 1 and has_path(sizes[0])
        figure = path_figure(sizes[0]) if is_search else comparison_figure(sizes)
    figures.save_figure(figure, file, STYLE, dpi=180)


def _axis(size: Size) -> str:
    return "β" if size.target == "beta" else "number of latents"


def _answer(axes: Axes, size: Size, *, named: bool = False) -> None:
    """Draw a line at the answer and a band over its interval, if there is an answer."""
    if size.value is None or size.interval is None:
        return
    axes.axvspan(*size.interval, color=COLOURS["active"], alpha=0.14, lw=0)
    axes.axvline(float(size.value), color=COLOURS["active"], lw=1)
    if named:
        inside = axes.get_xaxis_transform()
        label = axes.text(float(size.value), 0.97, f" {size.value:.3g}", va="top", transform=inside)
        label.set(color=COLOURS["active"], fontweight="bold")


def _threshold(axes: Axes, size: Size, *, named: bool = True) -> None:
    if size.threshold is None:
        return
    axes.axhline(size.threshold, color=INK, lw=0.8, ls=DASHES)
    if named:
        margin = axes.get_yaxis_transform()
        label = f"threshold {size.threshold:g}"
        axes.text(
            0.995, size.threshold, label, color=INK, fontsize=7.5, ha="right", va="bottom", transform=margin
        )


def _scale(axes: Axes, which: str, values: Sequence[float]) -> None:
    """Make an axis logarithmic if its values have a wide range; ticks are plain numbers in either case."""
    axis = axes.xaxis if which == "x" else axes.yaxis
    if values and min(values) > 0 and max(values) / min(values) > WIDE_RANGE:
        (axes.set_xscale if which == "x" else axes.set_yscale)("log")
        plain_log_ticks(axis)
        axis.set_minor_locator(NullLocator())
    elif which == "x" and all(float(value).is_integer() for value in values):
        axis.set_major_locator(MaxNLocator(integer=True))
