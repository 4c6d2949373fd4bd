"""Course of the run: Δ_KL from the log, and results at its checkpoints."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float
from markupsafe import Markup
from matplotlib import rc_context
from matplotlib.colors import ListedColormap
from matplotlib.ticker import MaxNLocator

from polariscope.analysis.regime.latent_types import COLOURS, TYPES, VariableType
from polariscope.analysis.regime.regime import LARGE, Regime, polarised_until_the_end
from polariscope.analysis.regime.rule import POLARISED
from polariscope.core.figure_style import QUIET, STYLE, TRAIN, VALIDATION
from polariscope.core.figures import DASHES, PANEL, add_colour_bar, single_axes, to_svg
from polariscope.pages.sections import AbstractSection, Subject, section
from polariscope.pages.sections.training import History, Series, draw_line, label_steps

if TYPE_CHECKING:
    from polariscope.analysis.course import Course, LayerCourse
    from polariscope.pages.record import ReportRecord

WIDE = (7.2, 2.9)
MAX_ROWS = 12  # latents that are named next to a map
MIN_DELTA = 1e-4  # smallest Δ_KL on the logarithmic axis


@section("course", title="Course", order=33)
class CourseSection(AbstractSection):
    """Δ_KL and std μ over the log; types, correlations, dependence and layers over the checkpoints."""

    def measure(self, subject: Subject) -> Course | None:
        """Return the newest cached course; it is never computed for a page, because that is slow."""
        stored = subject.newest("course")
        if stored is None:
            return None
        from polariscope.analysis.course import Course

        return Course.from_dict(stored)

    def applies(self, record: ReportRecord) -> bool:
        """Return whether there is a course, or Δ_KL in the log."""
        return super().applies(record) or _defined(record.history) is not None

    def view(self, record: ReportRecord) -> dict[str, Any]:
        """Return the charts, and a sentence on when the regime was polarised."""
        course: Course | None = self.part(record)
        delta = _defined(record.history)
        logged, polarised = [], None
        if delta is not None:
            logged.append(draw_delta(delta, course))
            polarised = polarised_until_the_end(delta.steps.tolist(), _or_none(delta))
        if record.history is not None and record.history.std is not None:
            logged.append(draw_std(record.history, record.history.std, record.regime))
        return {
            "logged": logged,
            "polarised": polarised,
            "threshold": POLARISED,
            "large": LARGE,
            "course": course,
            "codes": [] if course is None else draw_codes(course),
            "layers": [] if course is None or course.layers is None else draw_layers(course, course.layers),
        }


def _defined(history: History | None) -> Series | None:
    """Return Δ_KL in the log; None if it is missing or never defined."""
    if history is None or history.delta is None or np.isnan(history.delta.values).all():
        return None
    return history.delta


def _or_none(series: Series) -> list[float | None]:
    return [None if np.isnan(value) else value for value in series.values.tolist()]


def draw_delta(logged: Series, course: Course | None) -> Markup:
    """Draw Δ_KL over the steps, from the log and at the checkpoints, with the threshold."""
    with rc_context(STYLE):
        figure, axes = single_axes(PANEL, "Δ_KL")
        # A logarithmic axis cannot show 0.
        draw_line(axes, Series(logged.steps, np.maximum(logged.values, MIN_DELTA)), TRAIN, "log")
        if course is not None:
            values = np.maximum(course.delta_kl, MIN_DELTA)
            axes.plot(course.steps, values, "o", color=VALIDATION, ms=3, label="checkpoints")
            axes.legend(loc="best")
        axes.axhline(POLARISED, color=QUIET, lw=0.8, ls=DASHES)
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:.3g}")
        axes.set_ylabel("log scale")
        label_steps(axes)
        alternative = (
            f"Δ_KL over the training steps, ending at {logged.last:.3g}; the dashed line is {POLARISED:g}."
        )
        return to_svg(figure, "course-delta", alternative)


def draw_std(history: History, std: Float[np.ndarray, "line latent"], regime: Regime) -> Markup:
    """Draw std μ of each latent over the steps of the log, coloured by its final type."""
    with rc_context(STYLE):
        figure, axes = single_axes(PANEL, "std μ of each latent")
        # Reversed, so the most informative latents are drawn last, on top.
        for latent in reversed(regime.order):
            kind = regime.latents[latent].type
            draw_line(axes, Series(history.steps, std[:, latent]), COLOURS[kind], None, _width(kind))
        axes.axhline(0.5, color=QUIET, lw=0.8, ls=DASHES)
        axes.set_ylim(bottom=0)
        label_steps(axes)
        alternative = (
            "Standard deviation of the mean of each latent over the steps; those above 0.5 count for Δ_KL."
        )
        return to_svg(figure, "course-std", alternative)


def _width(kind: VariableType) -> float:
    return 1.0 if kind == "passive" else 1.5


def draw_codes(course: Course) -> list[Markup]:
    """Draw types, correlations and dependence over the checkpoints."""
    drawn = [draw_types(course)]
    if course.n_latents > 1:
        drawn += [draw_correlations(course), draw_correlated(course)]
        tables = {
            "Total correlation": [
                (snapshot.mean.total_correlation, snapshot.sampled.total_correlation)
                for snapshot in course.snapshots
            ],
            **_informations(course),
        }
        drawn += [draw_dependence(course, title, np.array(values)) for title, values in tables.items()]
    return drawn


def _informations(course: Course) -> dict[str, list[tuple[float, float]]]:
    """Return the averaged mutual information less its chance level; uncorrected for courses of 0.2.0."""
    pairs = [(snapshot.mean, snapshot.sampled) for snapshot in course.snapshots]
    corrected = [(mean.corrected_mutual_information, z.corrected_mutual_information) for mean, z in pairs]
    known = [(mean, z) for mean, z in corrected if mean is not None and z is not None]
    if len(known) == len(pairs):
        return {"Averaged mutual information, less chance": known}
    raw = [(mean.averaged_mutual_information, z.averaged_mutual_information) for mean, z in pairs]
    return {"Averaged mutual information, not corrected": raw}


def draw_types(course: Course) -> Markup:
    """Draw the type of each latent (rows) at each checkpoint."""
    with rc_context({**STYLE, "axes.grid": False}):
        figure, axes = single_axes(PANEL, "Type of each latent")
        cells = np.array([[TYPES.index(kind) for kind in each.types] for each in course.snapshots]).T
        colours = ListedColormap([COLOURS[kind] for kind in TYPES])
        axes.pcolormesh(
            np.arange(len(course.steps) + 1),
            np.arange(course.n_latents + 1),
            cells,
            cmap=colours,
            vmin=-0.5,
            vmax=len(TYPES) - 0.5,
            edgecolors="white" if cells.size <= 600 else "face",
            linewidth=0.5 if cells.size <= 600 else 0.2,
            rasterized=cells.size > 600,
        )
        axes.invert_yaxis()
        _label_checkpoints(axes, course)
        rows = range(0, course.n_latents, math.ceil(course.n_latents / MAX_ROWS))
        axes.set_yticks([row + 0.5 for row in rows], [str(row) for row in rows])
        axes.set_ylabel("latent")
        last = ", ".join(f"{course.counts[kind][-1]} {kind}" for kind in TYPES)
        return to_svg(figure, "course-types", f"Type of each latent at each checkpoint, at the end {last}.")


def _label_checkpoints(axes: Any, course: Course) -> None:
    """Label some columns, which are checkpoints at equal distances, with their steps."""
    indices = course.shown(5)
    axes.set_xticks([index + 0.5 for index in indices], [f"{course.steps[index]:,}" for index in indices])
    axes.set_xlabel("step")


def draw_correlations(course: Course) -> Markup:
    """Draw the correlation of one latent with every other over the checkpoints."""
    with rc_context(STYLE):
        figure, axes = single_axes(PANEL, f"Correlation of latent {course.latent} with the others")
        steps, series = np.array(course.steps), course.correlations()
        for j in range(course.n_latents):
            if j != course.latent:
                kind = course.types[j]
                draw_line(axes, Series(steps, series[:, j]), COLOURS[kind], None, _width(kind))
        axes.axhspan(-LARGE, LARGE, color=QUIET, alpha=0.08, lw=0)
        axes.set_ylim(-1.05, 1.05)
        label_steps(axes)
        # Without the correlation of the latent with itself.
        strongest = np.abs(np.delete(series[-1], course.latent)).max()
        alternative = (
            f"Correlations of latent {course.latent} with the others, at the end up to {strongest:.2f}."
        )
        return to_svg(figure, "course-correlations", alternative)


def draw_correlated(course: Course) -> Markup:
    """Draw the number of checkpoints at which each latent is correlated with another."""
    with rc_context(STYLE):
        figure, axes = single_axes(PANEL, f"Checkpoints with |r| > {LARGE:g}")
        indices = np.arange(course.n_latents)
        axes.bar(indices, course.correlated_steps, color=[COLOURS[kind] for kind in course.types])
        axes.set_ylim(0, len(course.steps))
        axes.xaxis.set_major_locator(MaxNLocator(10, integer=True))
        axes.yaxis.set_major_locator(MaxNLocator(5, integer=True))
        axes.set_xlabel("latent")
        counts = ", ".join(map(str, course.correlated_steps.tolist()))
        alternative = (
            f"Of {len(course.steps)} checkpoints, those with a correlation above {LARGE:g}: {counts}."
        )
        return to_svg(figure, "course-correlated", alternative)


def draw_dependence(course: Course, title: str, values: Float[np.ndarray, "step two"]) -> Markup:
    """Draw a measure of dependence of the mean and of the sampled codes; infinite values are omitted."""
    with rc_context(STYLE):
        figure, axes = single_axes(PANEL, title)
        shown = np.where(np.isfinite(values), values, np.nan)
        for column, (name, colour) in enumerate((("mean", TRAIN), ("sampled", VALIDATION))):
            draw_line(axes, Series(np.array(course.steps), shown[:, column]), colour, name)
        axes.set_ylim(bottom=0)
        axes.set_ylabel("nats")
        label_steps(axes)
        axes.legend(loc="best")
        ends = f"{title} over the checkpoints, at the end {values[-1, 0]:.3g} of mean, {values[-1, 1]:.3g} of sampled."
        return to_svg(figure, f"course-{title.split()[0].lower()}", ends)


def draw_layers(course: Course, layers: LayerCourse) -> list[Markup]:
    """Draw a map of the dimension of every layer, and one for each model that layers are compared with."""
    drawn = [draw_map(course, layers, "Intrinsic dimension", layers.dimension, "course-dimension", None)]
    for number, similarity in enumerate(layers.similarities):
        title = f"{similarity.title} with {similarity.reference}"
        drawn.append(draw_map(course, layers, title, similarity.values, f"course-similarity-{number}", 1.0))
    return drawn


def draw_map(
    course: Course,
    layers: LayerCourse,
    title: str,
    values: Float[np.ndarray, "step layer"],
    key: str,
    highest: float | None,
) -> Markup:
    """Draw a value of each layer (rows) at each checkpoint, as a colour and a number."""
    with rc_context({**STYLE, "axes.grid": False}):
        figure, axes = single_axes((WIDE[0], max(WIDE[1], 0.6 + 0.19 * len(layers.names))), title)
        indices = course.shown(16)
        cells = values[indices].T
        mesh = axes.pcolormesh(
            np.arange(len(indices) + 1),
            np.arange(len(layers.names) + 1),
            np.ma.masked_invalid(cells),
            cmap="viridis",
            vmin=0,
            vmax=highest,
            edgecolors="face",
            linewidth=0.2,
        )
        top = highest or float(np.nanmax(cells, initial=1.0))
        for row, column in np.argwhere(np.isfinite(cells)).tolist():
            value = float(cells[row, column])
            axes.text(
                column + 0.5,
                row + 0.5,
                f"{value:.2f}" if highest else f"{value:.1f}",
                ha="center",
                va="center",
                fontsize=6.5,
                color="white" if value < 0.6 * top else "black",
            )
        axes.invert_yaxis()
        axes.set_yticks(np.arange(len(layers.names)) + 0.5, layers.names, parse_math=False)
        axes.set_xticks(
            np.arange(len(indices)) + 0.5, [f"{course.steps[index]:,}" for index in indices], fontsize=7
        )
        axes.set_xlabel("step")
        add_colour_bar(figure, mesh, axes, shrink=0.7)
        ends = ", ".join(
            f"{name} {cell:.2f}" for name, cell in zip(layers.names, cells[:, -1].tolist(), strict=True)
        )
        return to_svg(figure, key, f"{title}, layer by layer over the steps; at the end {ends}.")
