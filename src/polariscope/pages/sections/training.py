"""Training curves: the loss and its terms, and the regime over time."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float, Int
from markupsafe import Markup
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from polariscope.analysis.convergence import held_out_loss
from polariscope.analysis.regime.latent_types import COLOURS, TYPES, VariableType
from polariscope.analysis.regime.regime import Regime
from polariscope.core.errors import InputError
from polariscope.core.figure_style import QUIET, STYLE, TRAIN, VALIDATION
from polariscope.core.figures import DASHES, PANEL, plain_log_ticks, single_axes, to_svg
from polariscope.pages.sections import AbstractSection, section

if TYPE_CHECKING:
    from polariscope.pages.record import ReportRecord

MAX_LABELS = 8


@dataclasses.dataclass(frozen=True, eq=False)
class Series:
    """One logged number over the steps."""

    steps: Int[np.ndarray, " point"]
    values: Float[np.ndarray, " point"]

    @property
    def last(self) -> float:
        return float(self.values[-1])


@dataclasses.dataclass(frozen=True, eq=False)
class History:
    """Log of a run. The names of terms are those of the objective."""

    loss: Series
    """Weighted sum of the terms on training batches, averaged between two lines."""
    terms: dict[str, Series]
    """Each term on training batches, unweighted, nats."""
    weights: dict[str, float]
    """Weight of each term in the loss at the end."""
    validation_loss: Series | None
    """Weighted sum of the terms on validation samples; None before the first validation."""
    validation: dict[str, Series]
    """Each term on validation samples, unweighted, nats."""
    steps: Int[np.ndarray, " line"]
    kl: Float[np.ndarray, "line latent"] | None
    """KL of each latent on the validation samples of the probe, nats; None for a deterministic encoder."""
    trace: Series
    """Σ E[σ²]."""
    counts: dict[VariableType, Series]
    """Number of latents of each type."""
    delta: Series | None = None
    """Δ_KL; NaN if it is not defined. None for logs of versions that did not write it."""
    std: Float[np.ndarray, "line latent"] | None = None
    """std μ of each latent; None for logs of versions that did not write it."""

    @property
    def names(self) -> list[str]:
        """Terms of the loss, in the order of the objective."""
        return list(self.terms)


def read_history(lines: Sequence[dict[str, Any]]) -> History:
    """Return the history in the lines of a log; a log without lines raises an error."""
    if not lines:
        raise InputError(
            problem="the log has no lines, so there is no training to report", remedy="train the run again"
        )
    validated = [line for line in lines if "validation" in line]
    return History(
        loss=_series(lines, lambda line: line["loss"]),
        terms=_named(lines, "terms"),
        weights=dict(lines[-1]["weights"]),
        validation_loss=_series(validated, held_out_loss) if validated else None,
        validation=_named(validated, "validation"),
        steps=np.array([line["step"] for line in lines]),
        kl=_kl(lines),
        trace=_series(lines, lambda line: line["trace"]),
        # The default argument binds the type of this pass.
        counts={kind: _series(lines, lambda line, kind=kind: line[kind]) for kind in TYPES},  # type: ignore[misc]
        delta=_series(lines, lambda line: line["delta_kl"]) if _have(lines, "delta_kl") else None,
        std=np.array([line["std"] for line in lines], dtype=np.float64) if _have(lines, "std") else None,
    )


def _have(lines: Sequence[dict[str, Any]], key: str) -> bool:
    """Return whether every line has a key; a later version, which logs more, can have resumed the run."""
    return all(key in line for line in lines)


def _kl(lines: Sequence[dict[str, Any]]) -> Float[np.ndarray, "line latent"] | None:
    if any(line["kl"] is None for line in lines):
        return None
    return np.array([line["kl"] for line in lines], dtype=np.float64)


def _series(lines: Sequence[dict[str, Any]], read: Callable[[dict[str, Any]], float]) -> Series:
    steps = np.array([line["step"] for line in lines], dtype=np.int64)
    return Series(steps, np.array([read(line) for line in lines], dtype=np.float64))


def _named(lines: Sequence[dict[str, Any]], key: str) -> dict[str, Series]:
    """Return a series for every name under ``key``; a term that was added later starts later."""
    names = dict.fromkeys(name for line in lines for name in line[key])
    return {
        name: _series([line for line in lines if name in line[key]], lambda line, name=name: line[key][name])  # type: ignore[misc]
        for name in names
    }


@section("training", title="Training", order=30)
class TrainingSection(AbstractSection):
    """The loss, its terms and the regime over the steps."""

    def applies(self, record: ReportRecord) -> bool:
        """Return whether there is a log; only runs have one."""
        return record.history is not None

    def view(self, record: ReportRecord) -> dict[str, Any]:
        """Return the charts."""
        history = record.history
        assert history is not None
        terms = [draw_term("loss", history.loss, history.validation_loss, "curve-loss")]
        terms += [
            draw_term(
                name,
                series,
                history.validation.get(name),
                f"curve-term-{index}",
                unit="nats" if history.weights.get(name, 1.0) else "",
            )
            for index, (name, series) in enumerate(history.terms.items())
        ]
        if history.kl is None:
            return {"terms": terms, "regime": []}
        regime = [
            draw_counts(history),
            draw_kl(history.steps, history.kl, record.regime),
            draw_trace(history, None if record.prior is None else float(record.prior[:, 1].sum())),
        ]
        return {"terms": terms, "regime": regime}


def draw_term(name: str, train: Series, validation: Series | None, key: str, unit: str = "nats") -> Markup:
    """Draw one term of the loss over the steps, on training batches and on validation samples.

    ``unit`` is empty for a term that is not part of the loss, whose unit is unknown.
    """
    with rc_context(STYLE):
        figure, axes = single_axes(PANEL, name)
        draw_line(axes, train, TRAIN, "training")
        if validation is not None and len(validation.values):
            axes.plot(
                validation.steps, validation.values, "o-", color=VALIDATION, ms=3, lw=1, label="validation"
            )
        values = train.values if validation is None else np.concatenate([train.values, validation.values])
        if (
            values.min() > 0 and train.values[0] > 3 * train.last
        ):  # a linear axis would hide the end of the curve
            axes.set_yscale("log")
            plain_log_ticks(axes.yaxis)
        scale = "log scale" if axes.get_yscale() == "log" else ""
        axes.set_ylabel(", ".join(word for word in (unit, scale) if word))
        label_steps(axes)
        axes.legend(loc="best")
        unit = f" {unit}" if unit else ""
        ends = f"training ends at {train.last:.4g}{unit}"
        if validation is not None and len(validation.values):
            ends += f", validation at {validation.last:.4g}{unit}"
        return to_svg(figure, key, f"{name} over the training steps: {ends}.")


def draw_kl(steps: Int[np.ndarray, " line"], kl: Float[np.ndarray, "line latent"], regime: Regime) -> Markup:
    """Draw the KL of each latent over the steps, coloured by its final type."""
    with rc_context(STYLE):
        figure, axes = single_axes(PANEL, "KL of each latent")
        # Reversed, so the most informative latents are drawn last, on top.
        for latent in reversed(regime.order):
            kind = regime.latents[latent].type
            series = Series(steps, kl[:, latent])
            draw_line(axes, series, COLOURS[kind], None, 1.0 if kind == "passive" else 1.5)
        labelled = [j for j in regime.order if regime.latents[j].type != "passive"][:MAX_LABELS]
        # Labels are next to the ends of the lines, pushed apart in units of the axes.
        low, high = axes.get_ylim()
        heights = _spread([(kl[-1, j] - low) / (high - low) for j in labelled], 0.08)
        for latent, height in zip(labelled, heights, strict=True):
            colour = COLOURS[regime.latents[latent].type]
            axes.text(
                1.01, height, str(latent), color=colour, transform=axes.transAxes, va="center", fontsize=8
            )
        axes.set_ylabel("nats")
        label_steps(axes)
        return to_svg(figure, "kl", "KL of each latent over the training steps, coloured by its final type.")


def draw_counts(history: History) -> Markup:
    """Draw the number of latents of each type over the steps, stacked."""
    with rc_context(STYLE):
        figure, axes = single_axes(PANEL, "Latents by type")
        steps = history.steps.astype(np.float64)
        rows = [history.counts[kind].values for kind in TYPES]
        if len(steps) == 1:  # an area requires two points
            steps, rows = steps + np.array([-0.5, 0.5]), [np.repeat(row, 2) for row in rows]
        axes.stackplot(steps, rows, colors=[COLOURS[kind] for kind in TYPES], labels=TYPES, step="mid", lw=0)
        axes.set_ylim(0, sum(row[-1] for row in rows))
        axes.margins(x=0)
        axes.yaxis.set_major_locator(MaxNLocator(5, integer=True))
        axes.grid(visible=False)
        label_steps(axes)
        axes.legend(
            loc="lower right", bbox_to_anchor=(1.03, 0.97), ncols=3, handlelength=0.8, columnspacing=0.8
        )
        last = ", ".join(f"{int(history.counts[kind].last)} {kind}" for kind in TYPES)
        return to_svg(
            figure, "counts", f"Number of latents of each type over the training steps, at the end {last}."
        )


def draw_trace(history: History, all_passive: float | None) -> Markup:
    """Draw Σ E[σ²] over the steps; ``all_passive`` is its value if every posterior equals the prior, or None."""
    with rc_context(STYLE):
        figure, axes = single_axes(PANEL, "Σ E[σ²]")
        draw_line(axes, history.trace, TRAIN, None)
        if all_passive is not None:
            axes.axhline(all_passive, color=QUIET, lw=0.8, ls=DASHES)
        axes.set_ylim(0, max(all_passive or 0.0, float(history.trace.values.max())) * 1.08)
        axes.set_ylabel("sum of posterior variances")
        label_steps(axes)
        return to_svg(
            figure,
            "trace",
            f"Sum of the mean posterior variances over the steps, ending at {history.trace.last:.3g}.",
        )


def draw_line(axes: Axes, series: Series, colour: str, label: str | None, width: float = 1.5) -> None:
    """Draw a series as a line, or as a point if it has only one."""
    marker = "o" if len(series.values) == 1 else ""
    axes.plot(series.steps, series.values, color=colour, lw=width, marker=marker, ms=4, label=label)


def label_steps(axes: Axes) -> None:
    """Label the axis of steps."""
    axes.set_xlabel("step")
    axes.xaxis.set_major_locator(MaxNLocator(4, integer=True))
    axes.xaxis.set_major_formatter(lambda step, _: f"{step:,.0f}")


def _spread(heights: list[float], gap: float) -> list[float]:
    """Push heights apart to at least ``gap``; they must be in descending order."""
    placed: list[float] = []
    for height in heights:
        placed.append(min(height, placed[-1] - gap) if placed else height)
    return placed
