"""Disentanglement metrics and probes."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

from polariscope.analysis.metrics import Scores
from polariscope.analysis.score import options_of_words
from polariscope.core.errors import PolariscopeError
from polariscope.studies.analyses import AbstractAnalysis, Columns, analysis

if TYPE_CHECKING:
    from polariscope.runs.run import Run


@analysis("score", scope="each")
@dataclasses.dataclass(frozen=True)
class ScoreAnalysis(AbstractAnalysis[Scores]):
    """Metrics with their intervals."""

    metrics: str = "all"
    """Names joined by commas; a variant follows a colon."""
    source: Literal["mean", "sampled"] = "mean"
    """Which codes are scored."""
    options: Mapping[str, Mapping[str, object]] = dataclasses.field(default_factory=dict)
    """Options of metrics by name."""

    kind = "scores"
    record = Scores

    def __post_init__(self) -> None:
        options_of_words(self.metrics, self.options or None)  # refuses what there is not

    def measure(self, run: Run, step: int | None = None) -> Scores:
        scores = run.scores(self.metrics, self.source, options=self.options or None, **self.where, step=step)
        if not scores.scores:
            reasons = "; ".join(f"{name}: {reason}" for name, reason in scores.not_applicable.items())
            raise PolariscopeError(f"none of the metrics applies to {run.path} ({reasons}).")
        return scores

    def columns(self, measured: Scores) -> Columns:
        cells: Columns = {}
        for word, score in measured.scores.items():
            name = word if measured.source == "mean" else f"{word}.{measured.source}"
            cells[name] = score.value
            low, high = (None, None) if score.interval is None else score.interval
            cells[f"{name}.low"], cells[f"{name}.high"] = low, high
        return cells
