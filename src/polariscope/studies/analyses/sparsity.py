"""Sparsity of the codes, compared with draws of the prior."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

from annotated_types import Ge

from polariscope.core.records import AbstractStoredRecord
from polariscope.studies.analyses import AbstractAnalysis, Column, Columns, analysis

if TYPE_CHECKING:
    from polariscope.runs.run import Run


@dataclasses.dataclass(frozen=True)
class Sparsity(AbstractStoredRecord, remedy="measure the sparsity again"):
    """Hoyer's sparsity, from 0 (all latents equal) to 1 (a single non-zero latent in each code)."""

    value: float
    """Sparsity of the codes."""
    interval: tuple[float, float] | None
    """95 % interval of the value."""
    prior: float | None
    """Sparsity of draws of the prior; None for a prior that depends on the sample."""


@analysis(
    "sparsity",
    scope="each",
    gives={"sparsity": Column("Hoyer's sparsity"), "sparsity.*": Column("Hoyer's sparsity")},
)
@dataclasses.dataclass(frozen=True)
class SparsityAnalysis(AbstractAnalysis[Sparsity]):
    """Hoyer's sparsity of the codes and of draws of the prior; see the metric ``hoyer``."""

    source: Literal["mean", "sampled"] = "mean"
    """Codes to use."""
    variant: Literal["normalised", "raw"] = "normalised"
    """Raw codes, or codes whose latents are divided by their standard deviations."""
    n_draws: Annotated[int, Ge(2)] = 20_000
    """Number of draws of the prior."""

    kind = "sparsity"
    record = Sparsity

    def measure(self, run: Run, step: int | None = None) -> Sparsity:
        def compute() -> Sparsity:
            from polariscope.analysis.metrics.hoyer import hoyer
            from polariscope.models.inference import draw_prior

            codes = getattr(run.representation(**self.where, step=step), self.source)
            score = hoyer(codes, variant=self.variant)
            drawn = draw_prior(run.model(step), self.n_draws, self.seed)
            prior = None if drawn is None else hoyer(drawn[0], variant=self.variant).value
            return Sparsity(score.value, score.interval, prior)

        settings = {"source": self.source, "variant": self.variant, "n_draws": self.n_draws}
        return run.measurement(self.kind, Sparsity, compute, settings, **self.where, step=step)

    @classmethod
    def of_settings(cls, settings: Mapping[str, Any]) -> SparsityAnalysis:
        return cls(source=settings["source"])

    def columns(self, measured: Sparsity) -> Columns:
        name = "sparsity" if self.source == "mean" else f"sparsity.{self.source}"
        low, high = measured.interval or (None, None)
        return {
            name: measured.value,
            f"{name}.low": low,
            f"{name}.high": high,
            "sparsity.prior": measured.prior,
        }
