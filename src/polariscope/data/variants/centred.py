"""A table around 0, with features of mean variance 1."""

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
"""Ratio of the features' variances from which some of them hardly count."""


@variant("centred", of="rows")
@dataclasses.dataclass(frozen=True)
class CentredVariant(AbstractRescaling):
    r"""A table around 0 and in a unit of its own, the same for all features: their mean variance is 1.

    .. math:: x'_i = (x_i - m_i) / r, \qquad r^2 = \frac1m \sum_i s_i^2

    with the mean m_i and the variance s_i² (with 1/n) of feature i over the whole dataset given, held-out rows
    included. Directions and ratios of variances stay as they are, as for PCA; only the unit changes, so learning rates
    and the variance of a decoder do not depend on it. These are the units in which tables are trained unless others
    are asked for. A table that never varies is only shifted. ``inverse`` goes back to the units of the data.

    >>> from polariscope.data.own.arrays import from_arrays
    >>> data = CentredVariant(from_arrays([[0.0, 5.0], [4.0, 9.0]]))
    >>> data.values([0, 1]).tolist(), data.inverse(data.values([1])).tolist()
    ([[-1.0, -1.0], [1.0, 1.0]], [[4.0, 9.0]])
    """

    mean: tuple[float, ...] | None = None
    """Mean of each feature; none: measured."""
    deviation: Annotated[float, Gt(0)] | None = None
    """Root of the features' mean variance; none: measured."""

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
    """What was done to a table, and what to know where its features vary very differently.

    :param deviation: the number it was divided by.
    :param ratio: (default 1) of the largest variance of a feature to the smallest.

    >>> in_words(2.0)
    'table centred and divided by 2, the root of its mean feature variance'
    """
    description = f"table centred and divided by {deviation:.3g}, the root of its mean feature variance"
    if ratio >= UNEQUAL:
        description += (
            f" (the variances of its features differ by a factor of {ratio:,.0f}, so the largest decide; with "
            "standardise all count alike)"
        )
    return description
