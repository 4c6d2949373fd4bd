"""Features rescaled to mean 0 and standard deviation 1."""

from __future__ import annotations

import dataclasses
from typing import Annotated, ClassVar

import numpy as np
from annotated_types import Ge
from jaxtyping import Float

from polariscope.data.rescaling import AbstractRescaling
from polariscope.data.streamed_statistics import Statistics
from polariscope.data.variants import variant


@variant("standardised", of="rows")
@dataclasses.dataclass(frozen=True)
class StandardisedVariant(AbstractRescaling):
    r"""Each feature of a table with mean 0 and standard deviation 1.

    .. math:: x'_i = (x_i - m_i) / s_i

    with the mean m_i and the standard deviation s_i (with 1/n) of feature i over the whole dataset, including held-out
    rows. A constant feature has s_i = 1 and becomes 0. ``inverse`` returns to the units of the data.

    >>> from polariscope.data.own.arrays import from_arrays
    >>> data = StandardisedVariant(from_arrays([[0.0, 5.0], [4.0, 5.0]]))
    >>> data.values([0, 1]).tolist(), data.inverse(data.values([1])).tolist()
    ([[-1.0, 0.0], [1.0, 0.0]], [[4.0, 5.0]])
    """

    mean: tuple[float, ...] | None = None
    """Mean of each feature; None to measure it."""
    deviation: tuple[Annotated[float, Ge(0)], ...] | None = None
    """Standard deviation of each feature, 0 if it is constant; None to measure it."""

    measured_names: ClassVar[tuple[str, ...]] = ("mean", "deviation")

    def measure(self, statistics: Statistics) -> tuple[Float[np.ndarray, " feature"], ...]:
        return statistics.mean, statistics.deviation

    @property
    def offset(self) -> Float[np.ndarray, " feature"]:
        return self.measured["mean"]

    @property
    def unit(self) -> Float[np.ndarray, " feature"]:
        deviation = self.measured["deviation"]
        return np.where(deviation > 0, deviation, 1.0)

    @property
    def is_unit_interval(self) -> bool:
        return False

    @property
    def choices(self) -> tuple[str, ...]:  # type: ignore[override]
        constant = int((self.measured["deviation"] == 0).sum())
        features = (
            f"{constant} feature{' that never varies is' if constant == 1 else 's that never vary are'}"
        )
        return (*self.base.choices, *([f"{features} 0 when standardised"] if constant else []))
