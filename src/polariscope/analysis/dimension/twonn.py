"""Dimension from the two nearest neighbours."""

from __future__ import annotations

from typing import Annotated, Literal, get_args

import numpy as np
from annotated_types import Ge, Gt, Le, Lt
from jaxtyping import Float

from polariscope.analysis.dimension import SHAPE_ONLY, Dimension, estimator
from polariscope.analysis.dimension.support.bootstrap import N_BOOTSTRAP, check_bootstrap, value_and_interval
from polariscope.core.errors import Argument, InputError, check_word
from polariscope.numerics.neighbours import Samples, table_of

Fit = Literal["line", "line-from-zero", "likelihood"]
TIE = 1e-6
"""Logarithm of a ratio of distances below which they are equal up to rounding."""
NOTED_TIES, MAX_TIES = 0.01, 0.5
"""Shares of points with such ties above which a note is added, and above which an error is raised."""


@estimator(
    "twonn",
    invariant_to=SHAPE_ONLY,
    varies_with={"stretch"},
    least_k=2,
    relative_error=0.08,
)
def twonn(
    x: Samples,
    *,
    fit: Fit = "line",
    share: Annotated[float, Gt(0), Le(1)] = 0.9,
    level: Annotated[float, Gt(0), Lt(1)] = 0.95,
    n_bootstrap: Annotated[int, Ge(20)] = N_BOOTSTRAP,
    seed: int = 0,
) -> Dimension:
    r"""Dimension from the ratio of the distances to the second and the first neighbour.

    The ratio μ = T₂/T₁ has :math:`P(\mu > m) = m^{-d}` if the density is nearly constant up to the second neighbour.
    With the N ratios sorted, F_i their empirical distribution and y_i = −log(1 − F_i), the dimension is fitted to the
    lowest ``share`` of them by

    ==================  ===================================================================================
    line                slope through the origin, Σ y log μ / Σ log² μ, F_i = i/N for i = 1 …, as in the paper
    line-from-zero      the same with i = 0 …, as in bonheme2023's code; 3.3 d/N smaller (share 0.9)
    likelihood          (r − 1)/(Σ log μ_i + (N − r) log μ_r) over the r lowest; unbiased, with least variance
    ==================  ===================================================================================

    The highest ratios are left out because they are often outliers. The likelihood treats them as censored, so leaving
    them out causes no bias.

    Reference: Facco et al., Estimating the intrinsic dimension of datasets by a minimal neighborhood information
    (facco2017); Denti et al., The generalized ratios intrinsic dimension estimator (denti2022), for the likelihood;
    bonheme2023 Eqs 8.5–8.6.

    :param x: points, one per row.
    :param fit: (default "line") method of fitting the dimension to the ratios.
    :param share: (default 0.9) share of the lowest ratios that is used; below 1 for ``line``.
    :param level: (default 0.95) nominal coverage of the interval.
    :param n_bootstrap: (default 200) number of resamples for the interval.
    :param seed: (default 0) seed of the resamples.

    >>> x = np.random.default_rng(0).random((500, 2)) @ np.array([[1.0, 2.0, 0.5], [0.0, 1.0, 3.0]])
    >>> twonn(x).rounded
    2
    """
    check_bootstrap(level, n_bootstrap)
    if not 0 < share < 1 and not (share == 1 and fit != "line"):
        raise InputError(
            "share",
            (
                "lie between 0 and 1 (",
                Argument("fit", "line"),
                " cannot include the largest ratio, for which F = 1)",
            ),
            got=share,
        )
    check_word("fit", fit, get_args(Fit))
    table = table_of(x, 2, 2)
    log_ratio = np.log(table.distances[:, 1] / table.distances[:, 0])
    equal = log_ratio < TIE
    # Ties differ by rounding errors, which must not decide their order.
    log_ratio[equal] = 0.0
    order = np.argsort(log_ratio, kind="stable")
    ratios = log_ratio[order]

    def estimate(weights: Float[np.ndarray, "resample point"]) -> Float[np.ndarray, " resample"]:
        return fitted(ratios, weights[:, order], fit, share)

    value = estimate(np.ones((1, table.n_points)))[0]
    if not np.isfinite(value) or equal.mean() > MAX_TIES:
        raise InputError(
            problem=(
                f"the first two neighbours have the same distance for {equal.sum()} of {table.n_points} "
                "points, too many for TwoNN"
            ),
            remedy="if x is a grid or rounded, use an estimator with more neighbours, or add a little noise",
        )
    notes = table.notes
    if equal.mean() > NOTED_TIES:
        notes = (
            *notes,
            f"The first two neighbours of {equal.sum()} points have the same distance, so the dimension is too large.",
        )
    value, interval = value_and_interval(estimate, table, 2, level, n_bootstrap, seed)
    with np.errstate(divide="ignore"):
        pointwise = 1 / log_ratio
    return Dimension(
        value=value,
        interval=interval,
        level=level,
        estimator="twonn",
        variant=f"{fit}, lowest {share:.0%}",
        k=2,
        **table.counts,
        pointwise=tuple(pointwise.tolist()),
        notes=notes,
    )


def fitted(
    ratios: Float[np.ndarray, " point"], weights: Float[np.ndarray, "resample point"], fit: str, share: float
) -> Float[np.ndarray, " resample"]:
    """Return the dimension from sorted log-ratios with these weights."""
    total = weights.sum(axis=1, keepdims=True)
    below = np.cumsum(weights, axis=1)
    included = weights * (below <= share * total * (1 + 1e-12))  # allow for rounding: 0.9 · 10 must be 9
    with np.errstate(divide="ignore", invalid="ignore"):
        if fit == "likelihood":
            n_included = included.sum(axis=1)
            # The running count reaches its maximum first at the last ratio that is included.
            last = ratios[(included > 0).cumsum(axis=1).argmax(axis=1)]
            return (n_included - 1) / (included @ ratios + (total[:, 0] - n_included) * last)
        distribution = (below - weights if fit == "line-from-zero" else below) / total
        # F reaches 1 for excluded ratios; its infinite logarithm times their weight of 0 would be NaN.
        heights = -np.log1p(-np.where(included > 0, distribution, 0.0))
        squares = included @ ratios**2
        return np.where(squares > 0, (included * heights) @ ratios / squares, np.inf)
