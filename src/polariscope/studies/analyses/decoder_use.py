"""Latents that the decoder uses, and the moments of posterior and prior of used and unused latents."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import numpy as np
from annotated_types import Ge, Gt

from polariscope.analysis.regime.moments import LatentMoments, latent_moments
from polariscope.core.records import AbstractStoredRecord
from polariscope.core.seeds import generator
from polariscope.studies.analyses import AbstractAnalysis, Column, Columns, analysis

if TYPE_CHECKING:
    from polariscope.runs.run import Run

MEDIANS = ("mean_square", "variance", "prior_variance", "ratio", "displacement", "match")
"""Moments whose median over a group of latents is shown in a table."""


@dataclasses.dataclass(frozen=True)
class DecoderUse(AbstractStoredRecord, remedy="measure the use of the latents again"):
    """Use, posterior and prior of each latent."""

    use: tuple[float, ...]
    """Share of the data's variance that the latent accounts for in the decoder's output."""
    latents: tuple[LatentMoments, ...]


@analysis(
    "decoder-use",
    scope="each",
    gives={
        "used": Column("latents that the decoder uses"),
        "unused": Column("latents that the decoder does not use"),
        "used.*": Column("median over used latents"),
        "unused.*": Column("median over unused latents"),
        "largest.*": Column("largest of all latents"),
    },
)
@dataclasses.dataclass(frozen=True)
class DecoderUseAnalysis(AbstractAnalysis[DecoderUse]):
    """Number of latents that the decoder uses, and the moments of posterior and prior of used and unused latents.

    Each moment is averaged over observations; the table shows its median over the latents of a group.
    """

    n_points: Annotated[int, Ge(2)] = 1000
    """Number of codes at which each latent is exchanged for that of another observation."""
    unused_below: Annotated[float, Gt(0)] = 0.001
    """Share of the data's variance below which a latent is unused."""

    kind = "decoder-use"
    record = DecoderUse

    def measure(self, run: Run, step: int | None = None) -> DecoderUse:
        def compute() -> DecoderUse:
            from polariscope.geometry.decoder_use import decoder_use

            codes = run.representation(**self.where, step=step)
            assert codes.indices is not None
            rows = generator(self.seed, self.kind, "rows").permutation(codes.n_samples)[: self.n_points]
            observed = run.data().values(codes.indices[rows])
            use = decoder_use(run.model(step), codes.mean[rows], observed, seed=self.seed)
            return DecoderUse(tuple(use.tolist()), latent_moments(codes))

        return run.measurement(
            self.kind, DecoderUse, compute, {"n_points": self.n_points}, **self.where, step=step
        )

    def columns(self, measured: DecoderUse) -> Columns:
        groups: dict[str, list[LatentMoments]] = {"used": [], "unused": []}
        for use, latent in zip(measured.use, measured.latents, strict=True):
            groups["unused" if use < self.unused_below else "used"].append(latent)
        cells: Columns = {name: len(latents) for name, latents in groups.items()}
        for name, latents in groups.items():
            cells |= {f"{name}.{moment}": _median(latents, moment) for moment in MEDIANS}
        cells["largest.mean"] = max(latent.largest_mean for latent in measured.latents)
        cells["largest.prior_variance"] = max(latent.largest_prior_variance for latent in measured.latents)
        return cells


def _median(latents: Sequence[LatentMoments], moment: str) -> float | None:
    return float(np.median([getattr(latent, moment) for latent in latents])) if latents else None
