"""Distances between the distributions of two samples, and their values for samples of one distribution."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
from jaxtyping import Bool, Float

from polariscope.core.records import AbstractRecord
from polariscope.numerics.intervals import Interval, jackknife_interval

N_NEIGHBOURS = 5
"""Neighbours that define the region around a point, for the coverage."""
TAIL = 0.05


@dataclasses.dataclass(frozen=True)
class Distance(AbstractRecord):
    """Distance between the distributions of two samples."""

    value: float
    null_high: float
    """95 % quantile of the distance between two samples of one distribution."""
    p_value: float
    """Probability of a distance of at least this value if both samples have one distribution."""


@dataclasses.dataclass(frozen=True)
class Coverage(AbstractRecord):
    """Share of a distribution's mass that contains points of another distribution."""

    value: float
    interval: Interval
    """95 % interval."""
    expected: float
    """Expected value if both samples have one distribution."""


def energy_distance(
    x: Float[np.ndarray, "first feature"],
    y: Float[np.ndarray, "second feature"],
    draw: np.random.Generator,
    n_permutations: int = 499,
) -> Distance:
    r"""Compute the energy distance of two samples, with its null distribution by permutation.

    .. math:: 2 \, \mathrm{E}|X - Y| - \mathrm{E}|X - X'| - \mathrm{E}|Y - Y'|

    in Euclidean distance, as means over all pairs. It is 0 only if the distributions are equal. Rows are assigned to
    the two samples at random for the null distribution, so p is exact for independent rows.

    Reference: Székely and Rizzo, Energy statistics (szekely2013).

    :param x: independent draws of one distribution.
    :param y: independent draws of the other.
    :param draw: generator of the permutations.
    :param n_permutations: (default 499) number of permutations.

    >>> round(energy_distance(np.zeros((3, 1)), np.ones((3, 1)), np.random.default_rng(0)).value, 6)
    2.0
    """
    from scipy.spatial.distance import cdist

    both = np.concatenate([x, y])
    distances = cdist(both, both)
    # With s = 1/n for the first sample and −1/m for the second, the distance is −sᵀ D s.
    signs = np.concatenate([np.full(len(x), 1 / len(x)), np.full(len(y), -1 / len(y))])
    shuffled = np.stack([draw.permutation(signs) for _ in range(n_permutations)])
    value = float(-signs @ distances @ signs)
    null = -np.einsum("pi,pi->p", shuffled @ distances, shuffled)
    # Rounding can make the distance of equal samples slightly negative.
    p_value = float((1 + (null >= value).sum()) / (1 + n_permutations))
    return Distance(max(value, 0.0), float(np.quantile(null, 1 - TAIL, method="higher")), p_value)


def kolmogorov_distance(
    x: Float[np.ndarray, " first"], y: Float[np.ndarray, " second"] | None = None
) -> Distance:
    """Compute the largest difference of the distribution functions of two samples, or of a sample and N(0, 1).

    The null distribution is that of Kolmogorov with the correction of Stephens for few values.

    Reference: Stephens, EDF Statistics for Goodness of Fit and Some Comparisons (stephens1974).

    :param x: independent draws.
    :param y: (default None: N(0, 1)) independent draws of the other distribution.

    >>> round(kolmogorov_distance(np.zeros(100)).value, 6)
    0.5
    """
    from scipy.special import kolmogi, kolmogorov, ndtr

    x = np.sort(x)
    steps = np.arange(len(x) + 1) / len(x)
    if y is None:
        reference = ndtr(x)
        value = float(np.maximum(np.abs(steps[1:] - reference), np.abs(steps[:-1] - reference)).max())
        n = float(len(x))
    else:
        y = np.sort(y)
        points = np.concatenate([x, y])
        first, second = (np.searchsorted(each, points, side="right") / len(each) for each in (x, y))
        value = float(np.abs(first - second).max())
        n = len(x) * len(y) / (len(x) + len(y))
    scale = math.sqrt(n) + 0.12 + 0.11 / math.sqrt(n)
    return Distance(value, float(kolmogi(TAIL)) / scale, float(kolmogorov(scale * value)))


def coverage(points: Float[np.ndarray, " point"], reference: Float[np.ndarray, " draw"]) -> Coverage:
    r"""Compute the share of a reference distribution's mass that contains points, from draws of the reference.

    A draw counts as covered if a point is at most as far away as the k-th nearest other draw (k = 5). With densities q
    of the points and p of the reference, and as many points as draws, this share approaches

    .. math:: \mathrm{E}_{z \sim p} \left[ 1 - \left( 1 + \frac{q(z)}{p(z)} \right)^{-k} \right]

    for many draws: the interval around a draw has a mass of about k/n under p, and it contains no point with the
    probability :math:`(1 + q/p)^{-k}`. A region therefore counts unless q is well below p/k there. If q = p, the
    expected value is :math:`1 - 2^{-k}` = 0.97; without overlap it is 0. The 95 % interval is a jackknife interval over
    20 blocks of points and draws.

    Reference: Naeem et al., Reliable Fidelity and Diversity Metrics for Generative Models (naeem2020), with the roles
    of data and model exchanged.

    :param points: independent points.
    :param reference: independent draws of the reference, at least 40.

    >>> coverage(np.full(100, 50.0), np.arange(100.0) / 100).value
    0.0
    """
    return _mean_coverage(points[:, None], reference[:, None])


def sliced_coverage(
    points: Float[np.ndarray, "point feature"],
    reference: Float[np.ndarray, "draw feature"],
    draw: np.random.Generator,
    n_directions: int = 100,
) -> Coverage:
    """Average the coverage over projections on random directions.

    Neighbours in many dimensions are far away, so a coverage by balls is near 1 even for points in a small part of the
    space. Along a direction, the coverage is that of one variable in any number of dimensions. Holes that no projection
    shows are not found.

    :param points: independent points.
    :param reference: independent draws of the reference, at least 40.
    :param draw: generator of the directions.
    :param n_directions: (default 100) number of directions; 1 if there is a single feature.
    """
    n_features = points.shape[1]
    if n_features == 1:
        return _mean_coverage(points, reference)
    directions = draw.normal(size=(n_features, n_directions))
    directions /= np.linalg.norm(directions, axis=0)
    return _mean_coverage(points @ directions, reference @ directions)


N_BLOCKS = 20


def _mean_coverage(
    points: Float[np.ndarray, "point column"], reference: Float[np.ndarray, "draw column"]
) -> Coverage:
    """Return the coverage averaged over columns, with a jackknife interval."""
    value = _shares(points, reference)
    blocks = [np.arange(len(array)) % N_BLOCKS for array in (points, reference)]
    left_out = [_shares(points[blocks[0] != b], reference[blocks[1] != b]) for b in range(N_BLOCKS)]
    n, m = len(points), len(reference)
    # Probability that no point is among the k nearest of all other draws and points, which are exchangeable.
    missed = math.prod((m - 1 - i) / (m - 1 + n - i) for i in range(N_NEIGHBOURS))
    return Coverage(value, jackknife_interval(value, np.array(left_out), (0.0, 1.0)), 1 - missed)


def _shares(points: Float[np.ndarray, "point column"], reference: Float[np.ndarray, "draw column"]) -> float:
    """Return the share of covered draws, averaged over columns."""
    columns = zip(np.sort(points, axis=0).T, np.sort(reference, axis=0).T, strict=True)
    return float(np.mean([_covered(*column).mean() for column in columns]))


def _covered(
    points: Float[np.ndarray, " point"], reference: Float[np.ndarray, " draw"]
) -> Bool[np.ndarray, " draw"]:
    """Return which draws are covered; both arrays are sorted."""
    padded = np.concatenate([np.full(N_NEIGHBOURS, -np.inf), reference, np.full(N_NEIGHBOURS, np.inf)])
    index = np.arange(len(reference)) + N_NEIGHBOURS
    # The k nearest others are consecutive: some of them are below the draw, the others above it.
    spans = [
        np.maximum(reference - padded[index - below], padded[index + N_NEIGHBOURS - below] - reference)
        for below in range(N_NEIGHBOURS + 1)
    ]
    after = np.searchsorted(points, reference)
    ends = np.concatenate([[-np.inf], points, [np.inf]])
    nearest = np.minimum(reference - ends[after], ends[after + 1] - reference)
    return nearest <= np.min(spans, axis=0)
