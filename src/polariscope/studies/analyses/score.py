"""Disentanglement metrics and probes."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

from polariscope.analysis.metrics import Scores
from polariscope.analysis.score import selected_options
from polariscope.core.errors import PolariscopeError
from polariscope.studies.analyses import AbstractAnalysis, Column, Columns, analysis

if TYPE_CHECKING:
    from polariscope.runs.run import Run


@analysis(
    "score",
    scope="each",
    gives={
        "in_use": Column("latents in use", bounds=(0.0, math.inf), counts_latents=True),
        "n_factors": Column("factors that vary"),
    },
)
# Columns of metrics are described by the metrics themselves.
@dataclasses.dataclass(frozen=True)
class ScoreAnalysis(AbstractAnalysis["Scores | tuple[Scores, ...]"]):
    """Metrics with their intervals."""

    metrics: str = "all"
    """Names joined by commas; a variant follows a colon."""
    source: Literal["mean", "sampled"] = "mean"
    """Codes to score."""
    latents: Literal["all", "in-use", "both"] = "all"
    """Latents to score; columns for the latents in use end in .in_use, and are empty if there are none."""
    options: Mapping[str, Mapping[str, object]] = dataclasses.field(default_factory=dict)
    """Options of metrics by name."""

    kind = "scores"
    record = Scores
    kept_apart = ({"latents": "in-use"}, {"latents": None})

    def __post_init__(self) -> None:
        selected_options(self.metrics, self.options or None)  # refuses unknown metrics and options

    def measure(self, run: Run, step: int | None = None) -> tuple[Scores, ...]:
        by_coverage = []
        for latents in ("in-use", "all") if self.latents == "both" else (self.latents,):
            scores = run.scores(
                self.metrics,
                self.source,
                latents=latents,
                options=self.options or None,
                **self.where,
                step=step,
            )
            if not scores.scores and scores.covered:
                reasons = "; ".join(f"{name}: {reason}" for name, reason in scores.not_applicable.items())
                raise PolariscopeError(f"none of the metrics applies to {run.path} ({reasons}).")
            by_coverage.append(scores)
        return tuple(by_coverage)

    def columns(self, measured: Scores | tuple[Scores, ...]) -> Columns:
        if isinstance(measured, tuple):
            return {name: cell for scores in measured for name, cell in self.columns(scores).items()}
        cells: Columns = {}
        if measured.in_use is not None:
            cells["in_use"] = measured.n_in_use
            if measured.factor_names:
                cells["n_factors"] = len(measured.factor_names)
        for word, score in measured.scores.items():
            name = _column(word, measured)
            cells[name] = score.value
            low, high = (None, None) if score.interval is None else score.interval
            cells[f"{name}.low"], cells[f"{name}.high"] = low, high
        return cells

    def details(self, measured: Scores | tuple[Scores, ...]) -> Columns:
        if isinstance(measured, tuple):
            return {name: cell for scores in measured for name, cell in self.details(scores).items()}
        cells: Columns = {}
        for word, score in measured.scores.items():
            name = _column(word, measured)
            if score.per_factor is not None and len(score.per_factor) == len(measured.factor_names):
                values = zip(measured.factor_names, score.per_factor.tolist(), strict=True)
                cells |= {f"{name}.by_factor.{factor}": value for factor, value in values}
            for key, value in score.details.get("accuracy_by_size", {}).items():
                cells[f"{name}.by_size.{key}"] = value
            if "sample_efficiency" in score.details:
                cells[f"{name}.efficiency"] = score.details["sample_efficiency"]
        return cells


def _column(word: str, scores: Scores) -> str:
    """Return the column of a metric, with suffixes for sampled codes and for latents in use."""
    source = "" if scores.source == "mean" else f".{scores.source}"
    return f"{word}{source}{'' if scores.latents == 'all' else '.in_use'}"
