"""The intrinsic dimension of the codes."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from polariscope.analysis.dimension import Dimension
from polariscope.analysis.dimension import family as estimators
from polariscope.core.errors import InputError
from polariscope.core.records import AbstractStoredRecord
from polariscope.studies.analyses import AbstractAnalysis, Column, Columns, analysis

if TYPE_CHECKING:
    from polariscope.runs.run import Run


@dataclasses.dataclass(frozen=True)
class Dimensions(AbstractStoredRecord, remedy="estimate the dimension again"):
    """Estimates of several estimators for the same codes."""

    estimates: dict[str, Dimension]
    """Estimates by the name of the estimator."""


@analysis("dimension", scope="each", gives={"dimension.*": Column("intrinsic dimension")})
@dataclasses.dataclass(frozen=True)
class DimensionAnalysis(AbstractAnalysis[Dimensions]):
    """Intrinsic dimension by one or several estimators, each with its interval."""

    estimators: str = "twonn"
    """Names joined by commas."""
    source: Literal["mean", "sampled"] = "mean"
    """Codes to use."""

    kind = "dimension"
    record = Dimensions

    def __post_init__(self) -> None:
        # Raises an error for an unknown name.
        for name in self.names:
            estimators[name]

    @property
    def names(self) -> list[str]:
        """Names of the requested estimators."""
        names = [name.strip() for name in self.estimators.split(",") if name.strip()]
        if not names:
            raise InputError("estimators", "name at least one", got=f"{self.estimators!r}")
        return names

    def measure(self, run: Run, step: int | None = None) -> Dimensions:
        def compute() -> Dimensions:
            codes = getattr(run.representation(**self.where, step=step), self.source)
            return Dimensions({name: estimators[name](codes, seed=self.seed) for name in self.names})

        settings = {"estimators": self.names, "source": self.source}
        return run.measurement(self.kind, Dimensions, compute, settings, **self.where, step=step)

    @classmethod
    def of_settings(cls, settings: Mapping[str, Any]) -> DimensionAnalysis:
        return cls(source=settings["source"])

    def columns(self, measured: Dimensions) -> Columns:
        cells: Columns = {}
        for name, estimate in measured.estimates.items():
            column = f"dimension.{name}" if self.source == "mean" else f"dimension.{name}.{self.source}"
            cells |= {
                column: estimate.value,
                f"{column}.low": estimate.interval[0],
                f"{column}.high": estimate.interval[1],
            }
        return cells
