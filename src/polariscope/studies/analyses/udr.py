"""Consistency of latents over seeds: unsupervised disentanglement ranking."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

from annotated_types import Ge

from polariscope.studies.analyses import AbstractOver, Column, analysis

if TYPE_CHECKING:
    from polariscope.runs.run import Run


@analysis(
    "udr",
    scope="over",
    gives={"udr": Column("unsupervised disentanglement ranking", higher_is_better=True, bounds=(0.0, 1.0))},
)
@dataclasses.dataclass(frozen=True)
class UdrAnalysis(AbstractOver):
    """Unsupervised disentanglement ranking over seeds; see the metric ``udr``."""

    n_samples: Annotated[int, Ge(10)] = 1000
    """Number of observations encoded by all models."""
    seed: Annotated[int, Ge(0)] = 0
    """Seed for drawing the observations."""
    variant: Literal["spearman", "lasso"] = "spearman"
    """Measure of the relation between two latents."""

    def measure(self, runs: Sequence[Run]) -> dict[str, Any]:
        from polariscope.analysis.metrics.udr import udr

        codes = [run.representation(self.n_samples, self.seed) for run in runs]
        score = udr(codes, variant=self.variant, seed=self.seed)
        rows = [{"udr": float(value)} for value in score.details["per_model"]]
        return {"udr": score.value, "interval": score.interval, "rows": rows}
