"""Accuracy of probes on the latents of each type, for mean and sampled codes."""

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
MAX_SAMPLES = 10_000
"""Maximum number of training samples; smaller numbers are not compared here."""


@dataclasses.dataclass(frozen=True)
class Probes(AbstractStoredRecord, remedy="probe the codes again"):
    """Accuracy averaged over factors of probes on some of the latents."""

    accuracy: dict[str, dict[str, float]]
    """Accuracy by codes, "mean" and "sampled", then by selection: "full", "active", "active+mixed" …; selections
    without latents are missing."""
    chance: float
    """Accuracy of a uniform guess."""


@analysis(
    "probes",
    scope="each",
    gives={"probes.*": Column("accuracy averaged over factors", higher_is_better=True, bounds=(0.0, 1.0))},
)
@dataclasses.dataclass(frozen=True)
class ProbesAnalysis(AbstractAnalysis[Probes]):
    """Accuracy of a linear probe on active, mixed and passive latents alone and together, for mean and sampled codes.

    Reference: bonheme2023 §6.4.1, which treats every factor as classes, as here by default; see the metric ``probe``.
    """

    kinds: Literal["own", "classes"] = "classes"
    """Treat each factor according to its kind ("own"), or all factors as classes."""
    variant: Literal["logistic", "boosted"] = "logistic"
    """Predictor: linear, or boosted trees."""

    kind = "probes"
    record = Probes

    def measure(self, run: Run, step: int | None = None) -> Probes:
        def compute() -> Probes:
            from polariscope.analysis.score import score

            codes = run.representation(**self.where, step=step)
            options = {METRIC: {"kinds": self.kinds, "sizes": (MAX_SAMPLES,)}}
            accuracy, guesses = {}, []
            for source in SOURCES:
                scores = score(codes, f"{METRIC}:{self.variant}", self.seed, options=options, source=source)
                if not scores.scores:
                    reasons = "; ".join(scores.not_applicable.values())
                    raise PolariscopeError(f"no factor of {run.path} can be probed: {reasons}")
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
