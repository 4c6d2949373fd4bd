"""The representation of a run, cached with its model."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from polariscope.analysis.representation import Representation
from polariscope.studies.analyses import AbstractAnalysis, Columns, analysis

if TYPE_CHECKING:
    from polariscope.runs.run import Run


@analysis("encode", scope="each", gives={})
@dataclasses.dataclass(frozen=True)
class EncodeAnalysis(AbstractAnalysis[Representation]):
    """Mean, variance and sampled codes of some observations."""

    def measure(self, run: Run, step: int | None = None) -> Representation:
        return run.representation(**self.where, step=step)

    def columns(self, measured: Representation) -> Columns:
        return {}
