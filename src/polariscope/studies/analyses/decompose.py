"""Where the rate goes: mutual information, total correlation, the rest."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Annotated

from annotated_types import Ge

from polariscope.analysis.decomposition import Decomposition
from polariscope.studies.analyses import AbstractAnalysis, Columns, analysis

if TYPE_CHECKING:
    from polariscope.runs.run import Run

PARTS = ("rate", "mutual_information", "total_correlation", "dimension_wise_kl", "aggregate_kl")


@analysis("decompose", scope="each")
@dataclasses.dataclass(frozen=True)
class DecomposeAnalysis(AbstractAnalysis[Decomposition]):
    """The rate in parts, in nats, each with its standard error."""

    n_points: Annotated[int, Ge(2)] | None = 5000
    """Samples of the representation that are used; none for all."""

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
