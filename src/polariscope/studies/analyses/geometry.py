"""Orthogonality of the decoder, and the cost of posterior noise."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Annotated

from annotated_types import Ge

from polariscope.analysis.regime.rule import Alpha, TypeRule
from polariscope.geometry.summary import Geometry
from polariscope.studies.analyses import AbstractAnalysis, Column, Columns, analysis

if TYPE_CHECKING:
    from polariscope.runs.run import Run


@analysis(
    "geometry",
    scope="each",
    gives={
        "dto": Column("distance to orthogonality", higher_is_better=False),
        "dto.*": Column("distance to orthogonality"),
        "overlap": Column("overlap of the decoder's columns", higher_is_better=False),
        "error.deterministic": Column("reconstruction loss at the mean", higher_is_better=False),
        "error.stochastic": Column("reconstruction loss from noise", higher_is_better=False),
    },
)
@dataclasses.dataclass(frozen=True)
class GeometryAnalysis(AbstractAnalysis[Geometry]):
    """Distance to orthogonality, compared with random rotations, and the parts of the reconstruction loss."""

    alpha: Alpha = TypeRule.alpha
    """Tolerance of the rule for latents in use."""
    n_points: Annotated[int, Ge(1)] = 500
    """Number of codes at which the decoder's Jacobian is computed."""
    n_observations: Annotated[int, Ge(2)] = 200
    """Number of observations whose reconstruction loss is split."""

    kind = "geometry"
    record = Geometry

    def measure(self, run: Run, step: int | None = None) -> Geometry:
        return run.geometry(
            self.alpha, n_points=self.n_points, n_observations=self.n_observations, **self.where, step=step
        )

    def columns(self, measured: Geometry) -> Columns:
        orthogonality, split = measured.orthogonality, measured.split
        interval = None if orthogonality is None else orthogonality.interval
        low, high = (None, None) if interval is None else interval
        return {
            "dto": None if orthogonality is None else orthogonality.value,
            "dto.low": low,
            "dto.high": high,
            "dto.random": None if orthogonality is None else orthogonality.haar,
            "overlap": None if orthogonality is None else orthogonality.overlap,
            "error.deterministic": split.deterministic,
            "error.stochastic": split.stochastic,
        }
