"""A centred table whose features have mean variance 1."""

from __future__ import annotations

import dataclasses
import math
from typing import Annotated, ClassVar

import numpy as np
from annotated_types import Gt
from jaxtyping import Float

from polariscope.data.rescaling import AbstractRescaling
from polariscope.data.streamed_statistics import Statistics
from polariscope.data.variants import variant

UNEQUAL = 100.0
"""Ratio of the features' variances from which some of them have hardly any effect."""


@variant("centred", of="rows")
@dataclasses.dataclass(frozen=True)
class CentredVariant(AbstractRescaling):
    r"""A centred table in one unit for all features, such that their mean variance is 1.

    .. math:: x'_i = (x_i - m_i) / r, \qquad r^2 = \frac1m \sum_i s_i^2

    with the mean m_i and the variance s_i² (with 1/n) of feature i over the whole dataset, including held-out rows.
    Directions and ratios of variances do not change, as for PCA. Only the unit changes, so learning rates and the
    decoder variance do not depend on it. Tables are trained in these units by default. A constant table is only
    shifted. ``inverse`` returns to the units of the data.

    >>> from polariscope.data.own.arrays import from_arrays
    >>> data = CentredVariant(from_arrays([[0.0, 5.0], [4.0, 9.0]]))
    >>> data.values([0, 1]).tolist(), data.inverse(data.values([1])).tolist()
    ([[-1.0, -1.0], [1.0, 1.0]], [[4.0, 9.0]])
    """

    mean: tuple[float, ...] | None = None
    """Mean of each feature; None to measure it."""
    deviation: Annotated[float, Gt(0)] | None = None
    """Root of the features' mean variance; None to measure it."""

    measured_names: ClassVar[tuple[str, ...]] = ("mean", "deviation")

    def measure(self, statistics: Statistics) -> tuple[Float[np.ndarray, "..."], ...]:
        return statistics.mean, np.array(math.sqrt(statistics.mean_variance))

    @property
    def offset(self) -> Float[np.ndarray, " feature"]:
        return self.measured["mean"]

    @property
    def unit(self) -> Float[np.ndarray, " feature"]:
        return np.full_like(self.offset, self.measured["deviation"])

    @property
    def is_unit_interval(self) -> bool:
        return False

    @property
    def choices(self) -> tuple[str, ...]:  # type: ignore[override]
        ratio = self.statistics.ratio if self.deviation is None else 1.0
        return (*self.base.choices, in_words(float(self.measured["deviation"]), ratio))


def in_words(deviation: float, ratio: float = 1.0) -> str:
    """Describe the rescaling of a table, with a warning if its features vary very differently.

    :param deviation: the number by which it was divided.
    :param ratio: (default 1) ratio of the largest variance of a feature to the smallest.

    >>> in_words(2.0)
    'table centred and divided by 2, the root of its mean feature variance'
    """
    description = f"table centred and divided by {deviation:.3g}, the root of its mean feature variance"
    if ratio >= UNEQUAL:
        description += (
            f" (the variances of its features differ by a factor of {ratio:,.0f}, so the largest dominate; with "
            "standardise all have equal weight)"
        )
    return description
