"""Squared distances and products of all pairs of samples, accurate to rounding and with bounded memory.

The whole matrix is returned. If only the nearest of many samples matter, use
:mod:`polariscope.numerics.neighbour_search`, which approximates in float32 and never stores all pairs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from jaxtyping import Bool, Float

FEATURES_AT_ONCE = 2048
CANCELLED = 1e-5
"""Ratio of a squared distance to the squared norms that it is computed from, below which five digits are lost."""
SMALLEST_EXPONENT = -1022
"""Smallest exponent of the unit, which must be finite; numbers below it are scaled to between 2⁻⁵² and 1."""


def centred(x: Float[np.ndarray, "sample p"]) -> Float[np.ndarray, "sample varying"]:
    """Return the features that vary, in float64, minus their means and in a common unit, with deviations of at most 2.

    It serves measures that do not depend on the scale of the deviations. Constant features are dropped (a third of a
    convolutional layer, if images have a plain background). The unit is a power of two, so scaling does not round, and
    no square overflows or underflows.
    """
    return np.concatenate(list(_deviations(x)), axis=1)


def gram(
    x: Float[np.ndarray, "sample p"], products_in: type[np.floating] = np.float64
) -> Float[np.ndarray, "sample sample"]:
    """Return K = XXᵀ of the centred features, computed in blocks of features.

    Means are subtracted and products summed in float64: with both in float32, scores of wide layers would be wrong in
    the third digit. ``products_in=np.float32`` rounds the deviations and the products of a block of features, and is
    twice as fast.
    """
    return _products(_deviations(x), len(x), products_in)


def squared_distances(
    x: Float[np.ndarray, "sample p"], unit: float | None = None
) -> Float[np.ndarray, "sample sample"]:
    r"""Compute the squared Euclidean distance of every pair of samples, each with a relative error of about 1e-10.

    It uses products of the centred samples, :math:`\|x_i - x_j\|^2 = \|x_i\|^2 + \|x_j\|^2 - 2 x_i \cdot x_j`. This is
    a difference of large numbers if two samples are much nearer to each other than to the mean, as with an outlier.
    Such samples are computed again, centred on one of them instead of the mean.

    :param x: samples
    :param unit: (default None) factor by which all values are multiplied first; None selects the power of two with
        which no value exceeds 1, so no square overflows or underflows, and distances are known up to this common factor

    >>> squared_distances(np.array([[0.0, 0.0], [3.0, 4.0]]), unit=1.0)
    array([[ 0., 25.],
           [25.,  0.]])
    """
    unit = _unit(x) if unit is None else unit
    return _from_products(x, _products(_deviations(x, unit), len(x)), unit)


def _from_products(
    x: Float[np.ndarray, "sample p"], squares: Float[np.ndarray, "sample sample"], unit: float
) -> Float[np.ndarray, "sample sample"]:
    """Convert products to squared distances in place, and recompute those with cancellation."""
    lengths = np.diagonal(squares).copy()
    squares *= -2
    squares += lengths[:, None]
    squares += lengths
    np.maximum(squares, 0, out=squares)  # rounding
    np.fill_diagonal(squares, 0)
    doubtful = _cancelled(squares, lengths)
    for i in np.flatnonzero(doubtful.any(axis=1)):
        near = np.flatnonzero(doubtful[i])
        if len(near):  # not yet recomputed together with an earlier sample
            # The sample i comes last, because _differences subtracts the last one.
            group = np.append(near, i)
            among = np.ix_(group, group)
            # Relative to i, its distances are lengths and do not cancel, so the recursion ends.
            members = x[group]
            squares[among] = _from_products(members, _products(_differences(members, unit), len(group)), unit)
            doubtful[among] = False
    return squares


def _cancelled(
    squares: Float[np.ndarray, "sample sample"], lengths: Float[np.ndarray, " sample"]
) -> Bool[np.ndarray, "sample sample"]:
    """Return a mask of squared distances that are small differences of large numbers; row by row, to save memory."""
    doubtful = np.empty(squares.shape, dtype=bool)
    limits = CANCELLED * lengths
    for row, limit, out in zip(squares, limits, doubtful, strict=True):
        np.less(row, limits + limit, out=out)
    np.fill_diagonal(doubtful, val=False)
    return doubtful


def gram_product(
    x: Float[np.ndarray, "sample p"], y: Float[np.ndarray, "sample q"]
) -> float | Float[np.ndarray, ""]:
    """Return ⟨XXᵀ, YYᵀ⟩ = ‖XᵀY‖²_F, computed from the smaller matrices."""
    n, p, q = len(x), x.shape[1], y.shape[1]
    # Both sides are divided by n: n p q products against n² (p + q).
    if p * q <= n * (p + q):
        return np.sum((x.T @ y) ** 2)
    return np.sum((x @ x.T) * (y @ y.T))


def some_features(x: np.ndarray) -> Iterator[np.ndarray]:
    """Yield the array in blocks of features."""
    for start in range(0, x.shape[1], FEATURES_AT_ONCE):
        yield x[:, start : start + FEATURES_AT_ONCE]


def _varying(x: np.ndarray) -> Iterator[np.ndarray]:
    """Yield the features that vary, in blocks."""
    for part in some_features(x):
        varying = part[:, part.min(axis=0) < part.max(axis=0)]
        if varying.shape[1]:
            yield varying


def _unit(x: np.ndarray) -> float:
    """Return the factor that scales the features that vary to between −1 and 1; 1 if none varies."""
    largest = max((float(np.abs(part).max()) for part in _varying(x)), default=0.0)
    # frexp returns the exponent of the power of two above the largest value.
    return math.ldexp(1.0, -max(math.frexp(largest)[1], SMALLEST_EXPONENT))


def _deviations(x: np.ndarray, unit: float | None = None) -> Iterator[np.ndarray]:
    """Yield the centred features that vary, in blocks; scaled first, because sums and ranges can overflow."""
    unit = _unit(x) if unit is None else unit
    for part in _varying(x):
        deviations = part.astype(np.float64)
        deviations *= unit
        deviations -= deviations.mean(axis=0)
        yield deviations


def _differences(x: np.ndarray, unit: float) -> Iterator[np.ndarray]:
    """Yield all features minus those of the last sample, in blocks; all samples are near it, so nothing overflows."""
    for part in some_features(x):
        differences = part.astype(np.float64)
        # A copy, because the subtraction would change the row that it subtracts.
        differences -= differences[-1].copy()
        differences *= unit
        yield differences


def _products(
    parts: Iterator[np.ndarray], n_samples: int, products_in: type[np.floating] = np.float64
) -> Float[np.ndarray, "sample sample"]:
    total = np.zeros((n_samples, n_samples))
    for part in parts:
        rounded = part.astype(products_in, copy=False)
        total += rounded @ rounded.T
    return total
