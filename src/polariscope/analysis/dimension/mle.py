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
LARGEST_K = 40  # largest k considered by "auto"
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
    r"""Maximum-likelihood dimension from the distances to the k nearest neighbours.

    With T_j(x) the distance from x to its j-th neighbour and c = k − 1 or k − 2 (``normaliser``),

    .. math:: d(x) = \Big[ \frac1c \sum_{j=1}^{k-1} \log \frac{T_k(x)}{T_j(x)} \Big]^{-1}

    averaged over points: by the arithmetic mean, or by the harmonic mean, which is the inverse of the mean of 1/d(x).
    Around a point of constant density the sum is Gamma(k − 1)-distributed with rate d, so for many points the limit is

    ===========  =====================  =====================
    average      k − 1                  k − 2
    ===========  =====================  =====================
    arithmetic   d (k − 1)/(k − 2)      d
    harmonic     d                      d (k − 2)/(k − 1)
    ===========  =====================  =====================

    k − 2 makes d(x) unbiased, and the harmonic mean pools the likelihoods of all points; together they correct twice.
    The published 4, 11 and 22 (SymSol, dSprites, CelebA; k = 20) were computed with both, hence the default. It is 5 %
    too low at k = 20 and half of d at k = 3. For new results use ``normaliser="k-1"``, as
    :func:`~polariscope.analysis.intrinsic_dimension.intrinsic_dimension` does.

    ``k="auto"`` selects the upper end of the smallest stable range of k up to 40 (``support/plateau.py``). The interval
    does not account for this selection. The result always includes the curve over k. ``anchor`` is the share of points,
    drawn at random, around which d(x) is computed; their neighbours are searched among all points. This is repeated
    ``n_runs`` times with other anchors, and averaged. Values below 1 only add noise, and serve to reproduce the
    published numbers (0.8, 5 runs).

    Edges, curvature and too few samples (from about 2 log₁₀ n dimensions on) make the estimate too small; noise makes
    it too large at small k. Points whose k neighbours all have the same distance have an infinite d(x). The harmonic
    mean tolerates some of them, the arithmetic mean raises an error, and the curve begins at the first k without
    infinite estimates.

    Reference: Levina and Bickel, Maximum Likelihood Estimation of Intrinsic Dimension (levina2004), Eqs 8–9; MacKay
    and Ghahramani, Comments on it (mackay2005); bonheme2023 Eqs 8.2–8.3.

    :param x: points, one per row.
    :param k: (default 20) number of neighbours around each point, or "auto".
    :param normaliser: (default "k-2") divisor c of the sum of logarithms.
    :param average: (default "harmonic") mean over the estimates of all points.
    :param anchor: (default 1) share of the points around which the dimension is computed.
    :param n_runs: (default 1) number of repetitions with other anchors.
    :param level: (default 0.95) nominal coverage of the interval.
    :param n_bootstrap: (default 200) number of resamples for the interval.
    :param seed: (default 0) seed of the anchors and the resamples.

    >>> circle = np.array([(np.cos(t), np.sin(t)) for t in np.linspace(0, 2 * np.pi, 200, endpoint=False)])
    >>> mle(circle, k=19, normaliser="k-1").rounded
    1
    """
    check_bootstrap(level, n_bootstrap)
    _check(anchor, n_runs)
    table = _automatic_table(x) if k == "auto" else table_of(x, k, MIN_K)
    # The curve begins at 3, because k − 2 must be positive.
    orders = range(MIN_K, (min(table.k, LARGEST_K) if k == "auto" else k) + 1)
    check_word("normaliser", normaliser, get_args(Normaliser))
    check_word("average", average, get_args(Average))
    inverse = inverse_estimates(table, orders, normaliser)
    pooled = _pool(inverse, average, np.ones((1, table.n_points)))[0]
    n_infinite = int((~np.isfinite(pooled)).sum())  # ties end as k grows, so these are the smallest k
    # A stable range is at least an octave, so an octave of finite estimates must be left.
    if n_infinite == len(orders) or (k == "auto" and 2 * orders[n_infinite] > orders[-1]):
        raise _tied(orders[n_infinite - 1], inverse[:, n_infinite - 1])
    orders, inverse, pooled = orders[n_infinite:], inverse[:, n_infinite:], pooled[n_infinite:]
    flat = plateau(orders, pooled.tolist()) if k == "auto" else None
    selected = orders.index(flat.high) if flat else len(orders) - 1

    anchors = _anchors(table.n_points, anchor, n_runs, seed)
    runs = _pool(inverse[:, [selected]], average, anchors)[:, 0]
    if not np.isfinite(runs).all():  # the anchors can consist of tied points only
        raise _tied(orders[selected], inverse[:, selected])
    weights = neighbourhood_resamples(table, orders[selected], n_bootstrap, seed)
    # The resamples are distributed evenly over the runs, each with its own anchors.
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
        pointwise = 1 / inverse[:, selected]
    return Dimension(
        value=value,
        # Runs use only their anchors, so their mean can lie outside the interval of all points.
        interval=(min(curve.low[selected], value), max(curve.high[selected], value)),
        level=level,
        estimator="mle",
        variant=f"{normaliser}, {average} mean",
        k=orders[selected],
        **table.counts,
        pointwise=tuple(pointwise.tolist()),
        curve=curve,
        runs=tuple(runs.tolist()),
        notes=(*table.notes, *([flat.note] if flat and flat.note else []), *table.too_few_for(value)),
    )


def inverse_estimates(
    table: NeighbourTable, orders: Sequence[int], normaliser: str
) -> Float[np.ndarray, "point order"]:
    """Return 1/d(x) around every point for every k of ``orders``, from running sums of log T_j."""
    # Divide by the first distance, so the logarithms of equal distances are exactly 0.
    logs = np.log(table.distances[:, : max(orders)] / table.distances[:, :1])
    sums = np.cumsum(logs, axis=1)
    k = np.asarray(orders)
    divisor = k - (1 if normaliser == "k-1" else 2)
    # Rounding of the running sums could leave a tie slightly negative.
    # Σ_j log(T_k/T_j) = k log T_k − Σ_j log T_j, with equal terms for j = k.
    return np.maximum(k * logs[:, k - 1] - sums[:, k - 1], 0.0) / divisor


def _pool(
    inverse: Float[np.ndarray, "point order"], average: str, weights: Float[np.ndarray, "resample point"]
) -> Float[np.ndarray, "resample order"]:
    total = weights.sum(axis=1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):  # the caller raises an error for infinite estimates
        if average == "harmonic":
            return total / (weights @ inverse)
        return weights @ (1 / inverse) / total


def _anchors(n_points: int, share: float, n_runs: int, seed: int) -> Float[np.ndarray, "run point"]:
    """Return 1 for the anchors of each run and 0 for other points."""
    n_anchors = max(1, int(share * n_points))
    # Sorting twice gives ranks, so each run has exactly n_anchors anchors.
    ranks = generator(seed, "dimension", "anchors").random((n_runs, n_points)).argsort(axis=1).argsort(axis=1)
    return (ranks < n_anchors).astype(np.float64)


def _automatic_table(x: Samples) -> NeighbourTable:
    table = at_most(x, LARGEST_K)
    if table.k < 2 * MIN_K:
        raise InputError(
            problem=(
                Argument("k", "auto"),
                f" requires at least {2 * MIN_K} neighbours to search for a stable range",
            ),
            got=table.k,
            remedy="pass more samples, or a number for k",
        )
    return table


def _tied(k: int, inverse: Float[np.ndarray, " point"]) -> InputError:
    return InputError(
        problem=(
            f"with k = {k}, {(inverse == 0).sum()} of {len(inverse)} points have all their "
            "neighbours at the same distance, so the estimate is infinite"
        ),
        remedy=(
            "if x is a grid, use ",
            Argument("average", "harmonic"),
            " or more neighbours, or add a little noise",
        ),
    )


def _check(anchor: float, n_runs: int) -> None:
    if not 0 < anchor <= 1:
        raise InputError("anchor", "be a share of the points, above 0 and at most 1", got=anchor)
    if n_runs < 1:
        raise InputError("n_runs", "be at least 1", got=n_runs)
