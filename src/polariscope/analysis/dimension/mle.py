"""Maximum-likelihood dimension of Levina and Bickel, in its four published versions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal, get_args

import numpy as np
from annotated_types import Ge, Gt, Le, Lt
from jaxtyping import Float

from polariscope.analysis.dimension import SHAPE_ONLY, Curve, Dimension, estimator
from polariscope.analysis.dimension.support.bootstrap import (
    N_BOOTSTRAP,
    check_bootstrap,
    neighbourhood_resamples,
)
from polariscope.analysis.dimension.support.plateau import plateau
from polariscope.core.errors import Argument, InputError, check_word
from polariscope.core.seeds import generator
from polariscope.numerics.intervals import percentile_interval
from polariscope.numerics.neighbours import NeighbourTable, Samples, at_most, table_of

MIN_K = 3
LARGEST_K = 40  # how far "auto" looks
Normaliser = Literal["k-1", "k-2"]
Average = Literal["arithmetic", "harmonic"]


@estimator(
    "mle",
    invariant_to=SHAPE_ONLY,
    varies_with={"stretch"},
    least_k=MIN_K,
    relative_error=0.12,
)
def mle(
    x: Samples,
    *,
    k: Annotated[int, Ge(MIN_K)] | Literal["auto"] = 20,
    normaliser: Normaliser = "k-2",
    average: Average = "harmonic",
    anchor: Annotated[float, Gt(0), Le(1)] = 1.0,
    n_runs: Annotated[int, Ge(1)] = 1,
    level: Annotated[float, Gt(0), Lt(1)] = 0.95,
    n_bootstrap: Annotated[int, Ge(20)] = N_BOOTSTRAP,
    seed: int = 0,
) -> Dimension:
    r"""Dimension under which the distances to the k nearest neighbours are the most likely.

    With T_j(x) the distance from x to its j-th neighbour and c = k − 1 or k − 2 (``normaliser``),

    .. math:: d(x) = \Big[ \frac1c \sum_{j=1}^{k-1} \log \frac{T_k(x)}{T_j(x)} \Big]^{-1}

    averaged over points: arithmetic, or harmonic, which is one over the mean of 1/d(x). Around a point of constant
    density the sum is Gamma(k − 1)-distributed with rate d, so many points give, in the limit,

    ===========  =====================  =====================
    average      k − 1                  k − 2
    ===========  =====================  =====================
    arithmetic   d (k − 1)/(k − 2)      d
    harmonic     d                      d (k − 2)/(k − 1)
    ===========  =====================  =====================

    k − 2 makes d(x) unbiased and the harmonic mean is the likelihood's own pooling; together they correct twice.
    Yet both together are what the published 4, 11 and 22 (SymSol, dSprites, CelebA; k = 20) were computed with,
    hence the default: 5 % low at k = 20, half at k = 3. For an answer of your own take ``normaliser="k-1"``, as
    :func:`~polariscope.analysis.intrinsic_dimension.intrinsic_dimension` does.

    ``k="auto"`` takes the upper end of the smallest stable range of k up to 40 (``support/plateau.py``), a choice that
    the interval does not hold; the curve over k is in the result in any case. ``anchor`` is the share of points around
    which d(x) is taken, at random, ``n_runs`` times with other anchors, and averaged; their neighbours are sought
    among all points. Below 1 it only adds noise, and is there to repeat the published numbers (0.8, 5 runs).

    Edges, curvature and, from about 2 log₁₀ n dimensions on, too few samples make it too small; noise makes it
    too large at small k. Points whose k neighbours are all equally far have an infinite d(x): the harmonic mean
    can hold some, the arithmetic one is refused; the curve begins at the first k without.

    Reference: Levina and Bickel, Maximum Likelihood Estimation of Intrinsic Dimension (levina2004), Eqs 8–9; MacKay
    and Ghahramani, Comments on it (mackay2005); bonheme2023 Eqs 8.2–8.3.

    :param x: points, a row for each.
    :param k: (default 20) neighbours around each point, or "auto".
    :param normaliser: (default "k-2") what the sum of logarithms is divided by, c.
    :param average: (default "harmonic") how the estimates of all points are averaged.
    :param anchor: (default 1) share of the points around which the dimension is taken.
    :param n_runs: (default 1) repetitions with other anchors.
    :param level: (default 0.95) probability that the interval is meant to have.
    :param n_bootstrap: (default 200) resamples behind the interval.
    :param seed: (default 0) seed of the anchors and the resamples.

    >>> circle = np.array([(np.cos(t), np.sin(t)) for t in np.linspace(0, 2 * np.pi, 200, endpoint=False)])
    >>> mle(circle, k=19, normaliser="k-1").rounded
    1
    """
    check_bootstrap(level, n_bootstrap)
    _check(anchor, n_runs)
    table = _automatic_table(x) if k == "auto" else table_of(x, k, MIN_K)
    orders = range(MIN_K, (min(table.k, LARGEST_K) if k == "auto" else k) + 1)
    check_word("normaliser", normaliser, get_args(Normaliser))
    check_word("average", average, get_args(Average))
    inverse = inverse_estimates(table, orders, normaliser)
    pooled = _pool(inverse, average, np.ones((1, table.n_points)))[0]
    n_infinite = int((~np.isfinite(pooled)).sum())  # ties end as k grows, so these are the smallest k
    if n_infinite == len(orders) or (k == "auto" and 2 * orders[n_infinite] > orders[-1]):
        raise _tied(orders[n_infinite - 1], inverse[:, n_infinite - 1])
    orders, inverse, pooled = orders[n_infinite:], inverse[:, n_infinite:], pooled[n_infinite:]
    flat = plateau(orders, pooled.tolist()) if k == "auto" else None
    chosen = orders.index(flat.high) if flat else len(orders) - 1

    anchors = _anchors(table.n_points, anchor, n_runs, seed)
    runs = _pool(inverse[:, [chosen]], average, anchors)[:, 0]
    if not np.isfinite(runs).all():  # all the points that are not tied may be missing among the anchors
        raise _tied(orders[chosen], inverse[:, chosen])
    weights = neighbourhood_resamples(table, orders[chosen], n_bootstrap, seed)
    resampled = _pool(inverse, average, weights * np.resize(anchors, weights.shape))
    ends = [
        percentile_interval(each, column, level, interpolate=False)
        for each, column in zip(pooled.tolist(), resampled.T, strict=True)
    ]
    value = float(runs.mean())
    curve = Curve(
        k=tuple(orders),
        values=tuple(pooled.tolist()),
        low=tuple(low for low, _ in ends),
        high=tuple(high for _, high in ends),
        stable=(flat.low, flat.high) if flat and flat.is_stable else None,
    )
    with np.errstate(divide="ignore"):
        pointwise = 1 / inverse[:, chosen]
    return Dimension(
        value=value,
        interval=(min(curve.low[chosen], value), max(curve.high[chosen], value)),
        level=level,
        estimator="mle",
        variant=f"{normaliser}, {average} mean",
        k=orders[chosen],
        **table.counts,
        pointwise=tuple(pointwise.tolist()),
        curve=curve,
        runs=tuple(runs.tolist()),
        notes=(*table.notes, *([flat.note] if flat and flat.note else []), *table.too_few_for(value)),
    )


def inverse_estimates(
    table: NeighbourTable, orders: Sequence[int], normaliser: str
) -> Float[np.ndarray, "point order"]:
    """1/d(x) around every point for every k of ``orders``, from running sums of log T_j."""
    # Relative to the first neighbour: where all are equally far, every logarithm is 0 without rounding.
    logs = np.log(table.distances[:, : max(orders)] / table.distances[:, :1])
    sums = np.cumsum(logs, axis=1)
    k = np.asarray(orders)
    divisor = k - (1 if normaliser == "k-1" else 2)
    # Rounding of the running sums could leave a tie slightly negative.
    return np.maximum(k * logs[:, k - 1] - sums[:, k - 1], 0.0) / divisor


def _pool(
    inverse: Float[np.ndarray, "point order"], average: str, weights: Float[np.ndarray, "resample point"]
) -> Float[np.ndarray, "resample order"]:
    total = weights.sum(axis=1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):  # infinite estimates are refused by the caller
        if average == "harmonic":
            return total / (weights @ inverse)
        return weights @ (1 / inverse) / total


def _anchors(n_points: int, share: float, n_runs: int, seed: int) -> Float[np.ndarray, "run point"]:
    """1 for the points that each run looks around, 0 for the others."""
    n_anchors = max(1, int(share * n_points))
    ranks = generator(seed, "dimension", "anchors").random((n_runs, n_points)).argsort(axis=1).argsort(axis=1)
    return (ranks < n_anchors).astype(np.float64)


def _automatic_table(x: Samples) -> NeighbourTable:
    table = at_most(x, LARGEST_K)
    if table.k < 2 * MIN_K:
        raise InputError(
            problem=(
                Argument("k", "auto"),
                f" needs at least {2 * MIN_K} neighbours to look for a stable range",
            ),
            got=table.k,
            remedy="give more samples, or a number for k",
        )
    return table


def _tied(k: int, inverse: Float[np.ndarray, " point"]) -> InputError:
    return InputError(
        problem=(
            f"with k = {k}, {(inverse == 0).sum()} of {len(inverse)} points have all their "
            "neighbours at the same distance, which fits an infinite dimension"
        ),
        remedy=(
            "is x a grid? Take ",
            Argument("average", "harmonic"),
            ", more neighbours, or add a little noise",
        ),
    )


def _check(anchor: float, n_runs: int) -> None:
    if not 0 < anchor <= 1:
        raise InputError("anchor", "be a share of the points, above 0 and at most 1", got=anchor)
    if n_runs < 1:
        raise InputError("n_runs", "be at least 1", got=n_runs)
