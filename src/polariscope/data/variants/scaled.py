"""Features rescaled to [0, 1]."""

from __future__ import annotations

import dataclasses
from typing import ClassVar, Literal

import numpy as np
from jaxtyping import Float

from polariscope.data.rescaling import AbstractRescaling
from polariscope.data.streamed_statistics import Statistics
from polariscope.data.variants import variant


@variant("scaled", of="rows")
@dataclasses.dataclass(frozen=True)
class ScaledVariant(AbstractRescaling):
    r"""The features of a table rescaled to [0, 1].

    .. math:: x'_i = (x_i - l_i) / (h_i - l_i)

    with the lowest and highest value l_i and h_i of feature i over the whole dataset, including held-out rows; or those
    of the whole table for all features, which keeps their proportions. A constant feature becomes 0. ``inverse``
    returns to the units of the data. The values then lie in [0, 1], so the default likelihood is Bernoulli; a Gaussian
    might suit measurements better.

    >>> from polariscope.data.own.arrays import from_arrays
    >>> table = from_arrays([[0.0, 6.0], [4.0, 8.0]])
    >>> ScaledVariant(table).values([0, 1]).tolist()
    [[0.0, 0.0], [1.0, 1.0]]
    >>> ScaledVariant(table, by="table").values([1]).tolist()
    [[0.5, 1.0]]
    """

    by: Literal["feature", "table"] = "feature"
    """Range that is used: that of each feature, or that of the whole table."""
    low: tuple[float, ...] | None = None
    """Value of each feature that becomes 0; None to measure it."""
    high: tuple[float, ...] | None = None
    """Value of each feature that becomes 1; None to measure it."""

    measured_names: ClassVar[tuple[str, ...]] = ("low", "high")

    def measure(self, statistics: Statistics) -> tuple[Float[np.ndarray, " feature"], ...]:
        low, high = statistics.low, statistics.high
        if self.by == "feature":
            return low, high
        return np.full_like(low, low.min()), np.full_like(high, high.max())

    @property
    def offset(self) -> Float[np.ndarray, " feature"]:
        return self.measured["low"]

    @property
    def unit(self) -> Float[np.ndarray, " feature"]:
        span = self.measured["high"] - self.measured["low"]
        return np.where(span > 0, span, 1.0)

    @property
    def is_unit_interval(self) -> bool:
        """True if the range was measured, or if the data lie in the range that was passed."""
        if self.low is None:
            return True
        measured = self.statistics
        return bool((measured.low >= self.offset).all() and (measured.high <= self.offset + self.unit).all())
