"""Statistics of all observations, in batches: memory is bounded whatever the size of the data."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import numpy as np
from jaxtyping import Float

from polariscope.data.dataset import AbstractDataset

VALUES = 2**22
"""Numbers that are read at once."""
ROUNDING = 1e-12
"""What rounding leaves of the deviation of a constant, relative to its size."""


@dataclasses.dataclass(frozen=True, eq=False)
class Statistics:
    """Of each feature, over all observations."""

    mean: Float[np.ndarray, " feature"]
    deviation: Float[np.ndarray, " feature"]
    """Standard deviation, with 1/n; 0 where a feature never varies."""
    low: Float[np.ndarray, " feature"]
    high: Float[np.ndarray, " feature"]


def batches(data: AbstractDataset) -> Iterator[Float[np.ndarray, "sample *shape"]]:
    """All observations in order, some at a time."""
    size = max(1, VALUES // data.n_features)
    for first in range(0, len(data), size):
        yield data.values(np.arange(first, min(first + size, len(data))))


def statistics_of(data: AbstractDataset) -> Statistics:
    r"""Mean, deviation and range of each feature, in one pass.

    Batches are merged by their counts n, means m and sums of squares S, which loses no digits to a large mean:

    .. math:: m = m_a + \frac{n_b}{n} (m_b - m_a), \qquad S = S_a + S_b + \frac{n_a n_b}{n} (m_b - m_a)^2

    Reference: Chan et al., Algorithms for Computing the Sample Variance (chan1983).
    """
    count = 0
    mean = squares = np.zeros(data.shape)
    low, high = np.full(data.shape, np.inf), np.full(data.shape, -np.inf)
    for batch in batches(data):
        values = batch.astype(np.float64)
        own = values.mean(axis=0)
        total = count + len(values)
        step = own - mean
        squares = squares + ((values - own) ** 2).sum(axis=0) + step**2 * (count * len(values) / total)
        mean = mean + step * (len(values) / total)
        low, high = np.minimum(low, values.min(axis=0)), np.maximum(high, values.max(axis=0))
        count = total
    varies = (high > low) & (np.sqrt(squares / count) > ROUNDING * np.maximum(np.abs(low), np.abs(high)))
    return Statistics(mean, np.where(varies, np.sqrt(squares / count), 0.0), low, high)
