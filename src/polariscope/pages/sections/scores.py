"""Metrics and probes of a run, as a table and charts."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float
from markupsafe import Markup
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.collections import PatchCollection
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import NullLocator

from polariscope.analysis.regime.latent_types import COLOURS
from polariscope.analysis.regime.regime import Regime
from polariscope.core.figure_style import INK, LINE, QUIET, STYLE, TRAIN
from polariscope.core.figures import DASHES, add_colour_bar, hide_frame, new_figure, single_axes, to_svg
from polariscope.core.text import readable
from polariscope.pages.sections import AbstractSection, Subject, section

if TYPE_CHECKING:
    from polariscope.analysis.metrics import Score, Scores
    from polariscope.pages.record import ReportRecord

MAX_ROWS = 32  # latents, those with the largest KL
MAX_NUMBERS = 160  # cells; with more of them numbers would not be legible
MIN_SCALE = 0.25  # smallest maximum of the colour scale: otherwise noise would look like information


@dataclasses.dataclass(frozen=True, eq=False)
class Scored:
    """Scores of a run that the page shows."""

    scores: Scores
    """Scores of the mean representation, or of the only representation that was scored."""
    sampled: Scores | None = None
    """Scores of the sampled representation, if both were scored."""
    in_use: Scores | None = None
    """Scores of the latents in use, of the same representation as ``scores``."""


@section("scores", title="Scores", order=70)
class ScoresSection(AbstractSection):
    """Metrics and probes."""

    def measure(self, subject: Subject) -> Scored | None:
        """Return the newest scores of each representation, and those of the latents in use."""
        # Scores of all latents do not have the setting "latents", for compatibility with 0.2.0.
        results = [_newest(subject, source=source, latents=None) for source in ("mean", "sampled")]
        shown = [scores for scores in results if scores is not None]
        if not shown:
            only = (_newest(subject, source=source, latents="in-use") for source in ("mean", "sampled"))
            return next((Scored(scores) for scores in only if scores is not None), None)
        # Only scores of the same codes and samples are comparable.
        same = {name: getattr(shown[0], name) for name in ("source", "n_samples", "seed")}
        in_use = _newest(subject, latents="in-use", **same)
        return Scored(shown[0], shown[1] if len(shown) > 1 else None, in_use)

    def applies(self, record: ReportRecord) -> bool:
        """Return whether there are scores, or a run that can be scored."""
        return record.settings is not None or super().applies(record)

    def view(self, record: ReportRecord) -> dict[str, Any]:
        """Return a table and up to three kinds of charts."""
        part: Scored | None = self.part(record)
        if part is None:
            return {"scores": None}
        return scores_view(part.scores, record.regime, part.sampled, part.in_use)


def _newest(subject: Subject, **settings: Any) -> Scores | None:
    """Return the newest scores with these settings, or None."""
    stored = subject.newest("scores", **settings)
    if stored is None:
        return None
    from polariscope.analysis.metrics import Scores

    return Scores.from_dict(stored)


def scores_view(
    scores: Scores, regime: Regime, sampled: Scores | None = None, in_use: Scores | None = None
) -> dict[str, Any]:
    """Return the view of the scores, with those of the sampled representation and of the latents in use.

    :param scores: scores of the mean representation, if it was scored.
    :param regime: the diagnosis, which defines the order of latents in the figures.
    :param sampled: (default None) scores of the sampled representation.
    :param in_use: (default None) scores of the latents in use.
    """
    # Reversed, so the first metric with each kind of evidence is used.
    by_evidence = {score.evidence: score for score in reversed(scores.scores.values())}
    information, importance, accuracy = (
        by_evidence.get(kind) for kind in ("information", "importance", "accuracy")
    )
    if scores.latents != "all":  # the figures require a row for every latent
        information = importance = None
    names = scores.factor_names
    return {
        "in_use": in_use,
        "scores": scores,
        "sampled": sampled,
        "rows": [
            _row(
                word,
                score,
                *(None if other is None else other.scores.get(word) for other in (sampled, in_use)),
            )
            for word, score in scores.scores.items()
        ],
        "information": None if information is None else draw_information(information, names, regime),
        "importance": None if importance is None else draw_importance(importance, names, regime),
        "shares": None if importance is None else importance.details,
        "accuracy": [] if accuracy is None else draw_accuracy(accuracy),
        "n_hidden": max(0, scores.n_latents - MAX_ROWS),
        "notes": [f"{', '.join(names)}: {note}" if names else note for names, note in scores.grouped_notes()],
    }


def is_no_better_than_chance(score: Score) -> bool:
    """Return whether the interval of a score about factors includes the chance level.

    >>> from polariscope.analysis.metrics import Score
    >>> score = Score(0.1, (0.0, 0.2), 0.15, (0.0, 1.0), True, "locatello", needs=("codes", "factors"))
    >>> is_no_better_than_chance(score)
    True
    """
    if "factors" not in score.needs or score.chance is None:
        return False
    low, high = score.interval or (score.value, score.value)
    return low <= score.chance if score.higher_is_better else high >= score.chance


def _row(word: str, score: Score, sampled: Score | None, in_use: Score | None) -> dict[str, Any]:
    # Scores that were computed in another way are not comparable.
    if in_use is not None and in_use.way != score.way:
        in_use = None
    low, high = score.bounds
    # A bar needs both ends of the range.
    per_unit = None if math.isinf(low) or math.isinf(high) or high <= low else 100 / (high - low)

    def percent_of(value: float | None) -> float | None:
        return (
            None
            if per_unit is None or value is None
            else round(per_unit * (min(max(value, low), high) - low), 1)
        )

    return {
        "name": word.partition(":")[0],
        "score": score,
        "value": readable(score.value, whole=True),
        "interval": _interval(score),
        "sampled": "–"
        if sampled is None
        else f"{readable(sampled.value, whole=True)} ({_interval(sampled)})",
        "in_use": "–" if in_use is None else f"{readable(in_use.value, whole=True)} ({_interval(in_use)})",
        "bar": percent_of(score.value),
        "tick": percent_of(score.chance),
        "range": f"{readable(low, whole=True)} to {readable(high, whole=True)}",
        "meaning": score.summary,
        "doubt": is_no_better_than_chance(score),
    }


def _interval(score: Score) -> str:
    return "–" if score.interval is None else " to ".join(readable(end, whole=True) for end in score.interval)


def draw_information(score: Score, names: Sequence[str], regime: Regime) -> Markup:
    """Draw a heat map of the mutual information of each latent and factor over the factor's entropy."""
    assert score.matrix is not None
    order = regime.order[:MAX_ROWS]
    shares = score.matrix / np.array(score.details["factor_entropies"], dtype=np.float64)
    values = np.clip(shares[list(order)], 0, 1)
    with rc_context({**STYLE, "axes.grid": False}):
        figure, axes = _board(values, "Information of each latent on each factor", names, order, regime)
        top = max(MIN_SCALE, float(values.max()))
        mesh = axes.pcolormesh(values, cmap="GnBu", vmin=0, vmax=top, edgecolors="white", lw=1)
        if values.size <= MAX_NUMBERS:
            for (row, column), value in np.ndenumerate(values):
                shade = "white" if value > 0.6 * top else INK
                text = f"{value:.2f}"
                axes.text(column + 0.5, row + 0.5, text, ha="center", va="center", fontsize=7, color=shade)
        for column, row in enumerate(values.argmax(axis=0)):
            if values[row, column] > 0:
                axes.add_patch(Rectangle((column, row), 1, 1, fill=False, ec=INK, lw=1.3))
        add_colour_bar(figure, mesh, axes, shrink=0.6, ticks=[0, top], format="%.2f")
        best = ", ".join(
            f"{name} latent {order[row]} ({values[row, column]:.2f})"
            for column, (name, row) in enumerate(zip(names, values.argmax(axis=0), strict=True))
        )
        alternative = (
            f"Mutual information of each latent and factor over the factor's entropy; highest for {best}."
        )
        return to_svg(figure, "information", alternative)


def draw_importance(score: Score, names: Sequence[str], regime: Regime) -> Markup:
    """Draw a Hinton diagram of the importance of each latent for each factor: areas are shares, columns sum to 1."""
    assert score.matrix is not None
    order = regime.order[:MAX_ROWS]
    values = score.matrix[list(order)]
    with rc_context({**STYLE, "axes.grid": False}):
        figure, axes = _board(values, "Importance of each latent for each factor", names, order, regime)
        for row, latent in enumerate(order):
            # The area shows the share, and 0.94 leaves a gap between boxes.
            sides = 0.94 * np.sqrt(np.clip(values[row], 0, 1))
            boxes = [
                Rectangle((column + (1 - side) / 2, row + (1 - side) / 2), side, side)
                for column, side in enumerate(sides)
            ]
            colour = COLOURS[regime.latents[latent].type]
            axes.add_collection(PatchCollection(boxes, facecolor=colour, edgecolor="none"))
        cells = [Rectangle((column, row), 1, 1) for row, column in np.ndindex(values.shape)]
        axes.add_collection(PatchCollection(cells, facecolor="none", edgecolor=LINE, lw=0.6))
        if score.per_latent is not None:
            _margin(axes, "right", score.per_latent[list(order)], "D")
        if score.per_factor is not None:
            _margin(axes, "bottom", score.per_factor, "C")
        alternative = f"Importance of each latent for each factor; disentanglement {score.value:.3f}."
        return to_svg(figure, "importance", alternative)


def draw_accuracy(score: Score) -> list[Markup]:
    """Draw the accuracy by number of training samples and by types of latents, if these results exist."""
    by_size = {
        int(size): float(accuracy) for size, accuracy in score.details.get("accuracy_by_size", {}).items()
    }
    by_types = {
        str(name): float(accuracy) for name, accuracy in score.details.get("accuracy_by_types", {}).items()
    }
    drawn = [_draw_sizes(by_size, score)] if len(by_size) > 1 else []
    return [*drawn, _draw_types(by_types, score)] if by_types else drawn


def _draw_sizes(by_size: dict[int, float], score: Score) -> Markup:
    with rc_context(STYLE):
        figure, axes = single_axes((4.4, 2.4), "Accuracy by training samples")
        axes.plot(list(by_size), list(by_size.values()), "o-", color=TRAIN, ms=4)
        axes.set_xscale("log")
        axes.xaxis.set_minor_locator(NullLocator())
        # The largest number of samples can be close to a round one, and their labels would overlap.
        shown = [size for size in by_size if size == max(by_size) or 2 * size <= max(by_size)]
        axes.set_xticks(shown, [f"{size:,}" for size in shown])
        axes.set_ylim(0, 1)
        _chance(axes.axhline, score)
        values = ", ".join(f"{accuracy:.2f} with {size:,}" for size, accuracy in by_size.items())
        return to_svg(figure, "probe-sizes", f"Accuracy by the number of training samples: {values}.")


def _draw_types(by_types: dict[str, float], score: Score) -> Markup:
    colours = {str(kind): colour for kind, colour in COLOURS.items()}
    labels = ["all" if name == "full" else name.replace("+", " + ") for name in by_types]
    with rc_context(STYLE):
        figure, axes = single_axes((4.4, 2.4), "Accuracy by types of latents")
        axes.barh(
            labels,
            list(by_types.values()),
            color=[colours.get(name, TRAIN) for name in by_types],
            height=0.66,
        )
        axes.invert_yaxis()
        axes.grid(visible=False, axis="y")
        axes.tick_params(axis="y", labelcolor=INK)
        axes.set_xlim(0, 1)
        _chance(axes.axvline, score)
        values = ", ".join(
            f"{label} {accuracy:.2f}" for label, accuracy in zip(labels, by_types.values(), strict=True)
        )
        return to_svg(figure, "probe-types", f"Accuracy by types of latents: {values}.")


def _chance(line: Callable[..., Any], score: Score) -> None:
    if score.chance is not None:
        line(score.chance, color=INK, lw=0.8, ls=DASHES)


def _board(
    values: Float[np.ndarray, "latent factor"],
    title: str,
    names: Sequence[str],
    order: Sequence[int],
    regime: Regime,
) -> tuple[Figure, Axes]:
    """Return axes with a row for each latent, in the colour of its type, and a column for each factor."""
    n_rows, n_columns = values.shape
    height = 1.3 + 0.3 * n_rows
    figure = new_figure((5.0, min(height, 9.0)))
    axes = figure.add_subplot()
    axes.set_title(title, pad=8)
    axes.set_xlim(0, n_columns)
    axes.set_ylim(n_rows, 0)
    hide_frame(axes)
    steep = sum(map(len, names)) > 40
    axes.set_xticks([column + 0.5 for column in range(n_columns)])
    axes.set_xticklabels(
        names, rotation=30 if steep else 0, ha="right" if steep else "center", color=INK, parse_math=False
    )
    axes.set_yticks([row + 0.5 for row in range(n_rows)], [str(latent) for latent in order])
    for label, latent in zip(axes.get_yticklabels(), order, strict=True):
        label.set(color=COLOURS[regime.latents[latent].type], fontweight="bold")
    axes.set_ylabel("latent")
    return figure, axes


def _margin(axes: Axes, side: str, values: Float[np.ndarray, " cell"], letter: str) -> None:
    """Write numbers at the right of the rows, or above the columns."""
    positions = [index + 0.5 for index in range(len(values))]
    labels = [f"{value:.2f}" for value in values]
    if side == "right":
        margin = axes.secondary_yaxis("right")
        margin.set_yticks(positions, labels)
        margin.set_ylabel(letter, rotation=0, labelpad=8, color=QUIET)
    else:
        margin = axes.secondary_xaxis("top")
        margin.set_xticks(positions, [f"{letter} {label}" for label in labels])
    margin.tick_params(length=0, labelcolor=QUIET, labelsize=7)
    hide_frame(margin)
