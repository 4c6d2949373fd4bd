"""Squared distances and products of all pairs of samples, right to rounding and in bounded memory.

The whole matrix is returned. For many samples, of which only the nearest count, see
:mod:`polariscope.numerics.neighbour_search`, which approximates in float32 and never holds all pairs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from jaxtyping import Bool, Float

FEATURES_AT_ONCE = 2048
CANCELLED = 1e-5
"""A squared distance this small beside the squares it is the difference of has lost five digits."""
SMALLEST_EXPONENT = -1022
"""Smaller numbers come out below 1, at 2⁻⁵² or more: the unit itself must be finite."""


def centred(x: Float[np.ndarray, "sample p"]) -> Float[np.ndarray, "sample varying"]:
    """The features that vary, in float64, less their means and in a common unit: none deviates by more than 2.

    For what depends on deviations from the mean and divides by their size. Features that do not vary are dropped (a
    third of a convolutional layer, when images have a plain background). The unit is a power of two, which rounds
    nothing, and no square overflows or vanishes.
    """
    return np.concatenate(list(_deviations(x)), axis=1)


def gram(
    x: Float[np.ndarray, "sample p"], products_in: type[np.floating] = np.float64
) -> Float[np.ndarray, "sample sample"]:
    """K = XXᵀ of the centred features, some features at a time.

    Means are taken off and products summed in float64: with both in float32, scores of wide layers are off in the third
    digit. ``products_in=np.float32`` rounds the deviations, and the products of a block of features, twice as fast.
    """
    return _products(_deviations(x), len(x), products_in)


def squared_distances(
    x: Float[np.ndarray, "sample p"], unit: float | None = None
) -> Float[np.ndarray, "sample sample"]:
    r"""Squared Euclidean distance of every pair of samples, each right to about 1e-10 of itself.

    From products of the centred samples, :math:`\|x_i - x_j\|^2 = \|x_i\|^2 + \|x_j\|^2 - 2 x_i \cdot x_j`. That is a
    difference of large numbers where two samples are much nearer to each other than to the mean, as all are when one
    sample lies far out. A sample and those so near to it are then looked at again, from there instead of the mean.

    :param x: the samples
    :param unit: (default None) what all values are multiplied with first; None takes the power of two with which none
        exceeds 1, so no square overflows or vanishes, and distances are known up to this common factor

    >>> squared_distances(np.array([[0.0, 0.0], [3.0, 4.0]]), unit=1.0)
    array([[ 0., 25.],
           [25.,  0.]])
    """
    unit = _unit(x) if unit is None else unit
    return _from_products(x, _products(_deviations(x, unit), len(x)), unit)


def _from_products(
    x: Float[np.ndarray, "sample p"], squares: Float[np.ndarray, "sample sample"], unit: float
) -> Float[np.ndarray, "sample sample"]:
    """Squared distances in place of the products they come from, and those that cancel from products anew."""
    lengths = np.diagonal(squares).copy()
    squares *= -2
    squares += lengths[:, None]
    squares += lengths
    np.maximum(squares, 0, out=squares)  # rounding
    np.fill_diagonal(squares, 0)
    doubtful = _cancelled(squares, lengths)
    for i in np.flatnonzero(doubtful.any(axis=1)):
        near = np.flatnonzero(doubtful[i])
        if len(near):  # not settled with an earlier sample
            group = np.append(near, i)
            among = np.ix_(group, group)
            # Seen from i its own distances are lengths, of which none cancels: fewer are doubtful then.
            members = x[group]
            squares[among] = _from_products(members, _products(_differences(members, unit), len(group)), unit)
            doubtful[among] = False
    return squares


def _cancelled(
    squares: Float[np.ndarray, "sample sample"], lengths: Float[np.ndarray, " sample"]
) -> Bool[np.ndarray, "sample sample"]:
    """Which squared distances are small differences of large numbers; row by row, to save memory."""
    doubtful = np.empty(squares.shape, dtype=bool)
    limits = CANCELLED * lengths
    for row, limit, out in zip(squares, limits, doubtful, strict=True):
        np.less(row, limits + limit, out=out)
    np.fill_diagonal(doubtful, val=False)
    return doubtful


def gram_product(
    x: Float[np.ndarray, "sample p"], y: Float[np.ndarray, "sample q"]
) -> float | Float[np.ndarray, ""]:
    """⟨XXᵀ, YYᵀ⟩ = ‖XᵀY‖²_F, from whichever matrices are smaller."""
    n, p, q = len(x), x.shape[1], y.shape[1]
    if p * q <= n * (p + q):
        return np.sum((x.T @ y) ** 2)
    return np.sum((x @ x.T) * (y @ y.T))


def some_features(x: np.ndarray) -> Iterator[np.ndarray]:
    """The array, some of its features at a time."""
    for start in range(0, x.shape[1], FEATURES_AT_ONCE):
        yield x[:, start : start + FEATURES_AT_ONCE]


def _varying(x: np.ndarray) -> Iterator[np.ndarray]:
    """The features that vary, some at a time."""
    for part in some_features(x):
        varying = part[:, part.min(axis=0) < part.max(axis=0)]
        if varying.shape[1]:
            yield varying


def _unit(x: np.ndarray) -> float:
    """What the features that vary are multiplied with, to lie between −1 and 1; 1 where none varies."""
    largest = max((float(np.abs(part).max()) for part in _varying(x)), default=0.0)
    return math.ldexp(1.0, -max(math.frexp(largest)[1], SMALLEST_EXPONENT))


def _deviations(x: np.ndarray, unit: float | None = None) -> Iterator[np.ndarray]:
    """The centred features that vary, some at a time; scaled first, since sums and ranges may overflow."""
    unit = _unit(x) if unit is None else unit
    for part in _varying(x):
        deviations = part.astype(np.float64)
        deviations *= unit
        deviations -= deviations.mean(axis=0)
        yield deviations


def _differences(x: np.ndarray, unit: float) -> Iterator[np.ndarray]:
    """All features less those of the last sample, to which the others are near, so nothing overflows."""
    for part in some_features(x):
        differences = part.astype(np.float64)
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
