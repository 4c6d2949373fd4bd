"""Decomposition of the rate: mutual information, total correlation and dimension-wise KL."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Annotated

from annotated_types import Ge

from polariscope.analysis.decomposition import Decomposition
from polariscope.studies.analyses import AbstractAnalysis, Column, Columns, analysis

if TYPE_CHECKING:
    from polariscope.runs.run import Run

PARTS = ("rate", "mutual_information", "total_correlation", "dimension_wise_kl", "aggregate_kl")


@analysis(
    "decompose",
    scope="each",
    gives={
        "parts.rate": Column("rate (nats)"),
        "parts.mutual_information": Column("I(x; z) (nats)"),
        "parts.total_correlation": Column("total correlation of q(z) (nats)"),
        "parts.dimension_wise_kl": Column("dimension-wise KL (nats)"),
        "parts.aggregate_kl": Column("KL(q(z) ‖ p(z)) (nats)"),
        "parts.*.error": Column("standard error (nats)"),
    },
)
@dataclasses.dataclass(frozen=True)
class DecomposeAnalysis(AbstractAnalysis[Decomposition]):
    """Parts of the rate in nats, each with its standard error."""

    n_points: Annotated[int, Ge(2)] | None = 5000
    """Number of samples of the representation to use; none for all."""

    kind = "decomposition"
    record = Decomposition

    def measure(self, run: Run, step: int | None = None) -> Decomposition:
        return run.decomposition(self.n_points, **self.where, step=step)

    def columns(self, measured: Decomposition) -> Columns:
        cells: Columns = {}
        for part in PARTS:
            cells[f"parts.{part}"] = getattr(measured, part)
            cells[f"parts.{part}.error"] = measured.errors.get(part)
        return cells
