"""What the latents of each type tell about the factors, from the mean and from the sampled codes."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Literal

from polariscope.core.errors import PolariscopeError
from polariscope.core.records import AbstractStoredRecord
from polariscope.studies.analyses import AbstractAnalysis, Column, Columns, analysis

if TYPE_CHECKING:
    from polariscope.runs.run import Run

SOURCES = ("mean", "sampled")
METRIC = "probe"
MOST = 10_000
"""Training samples at most; fewer are not compared here."""


@dataclasses.dataclass(frozen=True)
class Probes(AbstractStoredRecord, remedy="probe the codes again"):
    """Accuracy averaged over factors of probes that see some latents only."""

    accuracy: dict[str, dict[str, float]]
    """By codes, "mean" and "sampled", then by selection: "full", "active", "active+mixed" …; those without latents are
    missing."""
    chance: float
    """Accuracy of a uniform guess."""


@analysis(
    "probes",
    scope="each",
    gives={"probes.*": Column("accuracy averaged over factors", higher_is_better=True, bounds=(0.0, 1.0))},
)
@dataclasses.dataclass(frozen=True)
class ProbesAnalysis(AbstractAnalysis[Probes]):
    """Accuracy of a linear probe of active, mixed and passive latents alone and together, mean beside sampled.

    Reference: bonheme2023 §6.4.1, who takes every factor as classes, as here by default; see the metric ``probe``.
    """

    kinds: Literal["own", "classes"] = "classes"
    """Whether each factor is read as its kind says, or all as classes."""
    variant: Literal["logistic", "boosted"] = "logistic"
    """The predictor: linear, or boosted trees."""

    kind = "probes"
    record = Probes

    def measure(self, run: Run, step: int | None = None) -> Probes:
        def compute() -> Probes:
            from polariscope.analysis.score import score

            codes = run.representation(**self.where, step=step)
            options = {METRIC: {"kinds": self.kinds, "sizes": (MOST,)}}
            accuracy, guesses = {}, []
            for source in SOURCES:
                scores = score(codes, f"{METRIC}:{self.variant}", self.seed, options=options, source=source)
                if not scores.scores:
                    reasons = "; ".join(scores.not_applicable.values())
                    raise PolariscopeError(f"nothing can be read from {run.path}: {reasons}")
                details = next(iter(scores.scores.values())).details
                accuracy[source] = dict(details["accuracy_by_types"])
                guesses = [float(guess) for guess in details["uniform_guess"]]
            return Probes(accuracy, sum(guesses) / len(guesses))

        settings = {"kinds": self.kinds, "variant": self.variant}
        return run.measurement(self.kind, Probes, compute, settings, **self.where, step=step)

    def columns(self, measured: Probes) -> Columns:
        cells: Columns = {}
        for source, accuracy in measured.accuracy.items():
            cells |= {f"probes.{source}.{name}": value for name, value in accuracy.items()}
            cells[f"probes.{source}.chance"] = measured.chance
        return cells
