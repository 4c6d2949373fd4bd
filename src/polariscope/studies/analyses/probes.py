"""What the latents of each type tell about the factors, from the mean and from the sampled codes."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Literal

from polariscope.analysis.metrics import Score, Scores
from polariscope.core.errors import PolariscopeError
from polariscope.studies.analyses import AbstractAnalysis, Column, Columns, analysis

if TYPE_CHECKING:
    from polariscope.runs.run import Run

SOURCES = ("mean", "sampled")
METRIC = "probe"
MOST = 10_000
"""Training samples at most; fewer are not compared here."""


@analysis(
    "probes",
    scope="each",
    gives={"probes.*": Column("accuracy averaged over factors", higher_is_better=True)},
)
@dataclasses.dataclass(frozen=True)
class ProbesAnalysis(AbstractAnalysis[tuple[Scores, Scores]]):
    """Accuracy of a linear probe of active, mixed and passive latents alone and together, mean beside sampled.

    Reference: bonheme2023 §6.4.1, who takes every factor as classes, as here by default; see the metric ``probe``.
    """

    kinds: Literal["own", "classes"] = "classes"
    """Whether each factor is read as its kind says, or all as classes."""
    variant: Literal["logistic", "boosted"] = "logistic"
    """The predictor: linear, or boosted trees."""

    def measure(self, run: Run, step: int | None = None) -> tuple[Scores, Scores]:
        options = {METRIC: {"kinds": self.kinds, "sizes": (MOST,)}}
        mean, sampled = (
            run.scores(f"{METRIC}:{self.variant}", source, options=options, **self.where, step=step)
            for source in SOURCES
        )
        for scores in (mean, sampled):
            if not scores.scores:
                raise PolariscopeError(
                    f"nothing can be read from {run.path}: {'; '.join(scores.not_applicable.values())}"
                )
        return mean, sampled

    def columns(self, measured: tuple[Scores, Scores]) -> Columns:
        cells: Columns = {}
        for scores in measured:
            score: Score = next(iter(scores.scores.values()))
            by_types = score.details["accuracy_by_types"]
            cells |= {f"probes.{scores.source}.{name}": value for name, value in by_types.items()}
            guesses = [float(guess) for guess in score.details["uniform_guess"]]
            cells[f"probes.{scores.source}.chance"] = sum(guesses) / len(guesses)
        return cells
