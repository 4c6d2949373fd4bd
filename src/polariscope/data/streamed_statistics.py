"""Statistics of all observations, computed in batches, so memory is bounded for data of any size."""

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
"""Rounding error of the standard deviation of a constant, relative to the constant."""


@dataclasses.dataclass(frozen=True, eq=False)
class Statistics:
    """Statistics of each feature over all observations."""

    mean: Float[np.ndarray, " feature"]
    deviation: Float[np.ndarray, " feature"]
    """Standard deviation, with 1/n; 0 if a feature is constant."""
    low: Float[np.ndarray, " feature"]
    high: Float[np.ndarray, " feature"]

    @property
    def mean_variance(self) -> float:
        """Mean variance of the features; 1 if all are constant, so it can always be used as a unit."""
        return float((self.deviation**2).mean()) or 1.0

    @property
    def ratio(self) -> float:
        """Largest variance of a feature divided by the smallest nonzero one; 1 if fewer than two features vary."""
        varying = self.deviation[self.deviation > 0]
        return float((varying.max() / varying.min()) ** 2) if varying.size else 1.0


def batches(data: AbstractDataset) -> Iterator[Float[np.ndarray, "sample *shape"]]:
    """Yield all observations in order, in batches."""
    size = rows_at_once(data.n_features)
    for first in range(0, len(data), size):
        yield data.values(np.arange(first, min(first + size, len(data))))


def statistics_of(data: AbstractDataset) -> Statistics:
    r"""Compute mean, standard deviation and range of each feature in one pass.

    Batches are merged by their counts n, means m and sums of squares S, so a large mean costs no precision:

    .. math:: m = m_a + \frac{n_b}{n} (m_b - m_a), \qquad S = S_a + S_b + \frac{n_a n_b}{n} (m_b - m_a)^2

    Reference: Chan et al., Algorithms for Computing the Sample Variance (chan1983).
    """
    return merged(batches(data))


def merged(parts: Iterable[Float[np.ndarray, "sample *shape"]]) -> Statistics:
    """Compute the statistics of all parts together.

    :param parts: batches of observations, at least one.
    """
    count = 0
    # Scalars, which broadcast to the shape of the first batch.
    mean = squares = np.zeros(())
    low, high = np.array(np.inf), np.array(-np.inf)
    for batch in parts:
        values = batch.astype(np.float64)
        batch_mean = values.mean(axis=0)
        total = count + len(values)
        step = batch_mean - mean
        squares = squares + ((values - batch_mean) ** 2).sum(axis=0) + step**2 * (count * len(values) / total)
        mean = mean + step * (len(values) / total)
        low, high = np.minimum(low, values.min(axis=0)), np.maximum(high, values.max(axis=0))
        count = total
    # The deviation of a computed constant is not exactly 0.
    varies = (high > low) & (np.sqrt(squares / count) > ROUNDING * np.maximum(np.abs(low), np.abs(high)))
    return Statistics(mean, np.where(varies, np.sqrt(squares / count), 0.0), low, high)


MAX_ROWS, MIN_ROWS = 10_000, 1000


def mean_variance(data: AbstractDataset) -> float:
    """Return the mean variance of the features over at most 10,000 observations, 1,000 if they are very wide.

    The selection does not depend on the training seed, so runs that differ only in their seed have the same
    settings. The result is 1 if nothing varies, so it can always be used as a unit.

    :param data: the dataset.
    """
    max_rows = min(MAX_ROWS, max(MIN_ROWS, 4 * VALUES // data.n_features))
    rows = np.arange(len(data))
    if len(data) > max_rows:
        rows = np.sort(generator(0, "mean variance").choice(len(data), max_rows, replace=False))
    size = rows_at_once(data.n_features)
    return merged(
        data.values(rows[first : first + size]) for first in range(0, len(rows), size)
    ).mean_variance
