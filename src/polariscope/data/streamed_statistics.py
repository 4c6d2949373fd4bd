"""Statistics of all observations, in batches: memory is bounded whatever the size of the data."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from polariscope.core.seeds import generator
from polariscope.data.reading import VALUES, rows_at_once

if TYPE_CHECKING:
    from polariscope.data.dataset import AbstractDataset

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

    @property
    def mean_variance(self) -> float:
        """Of the features; 1 where none of them varies, so it can always be a unit."""
        return float((self.deviation**2).mean()) or 1.0

    @property
    def ratio(self) -> float:
        """Largest variance of a feature over the smallest of those that vary; 1 where fewer than two do."""
        varying = self.deviation[self.deviation > 0]
        return float((varying.max() / varying.min()) ** 2) if varying.size else 1.0


def batches(data: AbstractDataset) -> Iterator[Float[np.ndarray, "sample *shape"]]:
    """All observations in order, some at a time."""
    size = rows_at_once(data.n_features)
    for first in range(0, len(data), size):
        yield data.values(np.arange(first, min(first + size, len(data))))


def statistics_of(data: AbstractDataset) -> Statistics:
    r"""Mean, deviation and range of each feature, in one pass.

    Batches are merged by their counts n, means m and sums of squares S, which loses no digits to a large mean:

    .. math:: m = m_a + \frac{n_b}{n} (m_b - m_a), \qquad S = S_a + S_b + \frac{n_a n_b}{n} (m_b - m_a)^2

    Reference: Chan et al., Algorithms for Computing the Sample Variance (chan1983).
    """
    return merged(batches(data))


def merged(parts: Iterable[Float[np.ndarray, "sample *shape"]]) -> Statistics:
    """Statistics of all parts together, at least one of them.

    :param parts: observations, some at a time.
    """
    count = 0
    mean = squares = np.zeros(())
    low, high = np.array(np.inf), np.array(-np.inf)
    for batch in parts:
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


MAX_ROWS, MIN_ROWS = 10_000, 1000


def mean_variance(data: AbstractDataset) -> float:
    """Mean variance of the features, over at most 10,000 observations; fewer, but 1,000, of very wide ones.

    Which ones does not depend on the seed of a training, so trainings that differ in their seed alone have the same
    settings. 1 where nothing varies, so it can always be a unit.

    :param data: what is looked at.
    """
    most = min(MAX_ROWS, max(MIN_ROWS, 4 * VALUES // data.n_features))
    rows = np.arange(len(data))
    if len(data) > most:
        rows = np.sort(generator(0, "mean variance").choice(len(data), most, replace=False))
    size = rows_at_once(data.n_features)
    return merged(
        data.values(rows[first : first + size]) for first in range(0, len(rows), size)
    ).mean_variance
