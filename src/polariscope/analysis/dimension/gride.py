"""Generalised ratios: an estimate at every scale."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from annotated_types import Ge, Gt, Lt
from jaxtyping import Float

from polariscope.analysis.dimension import SHAPE_ONLY, Curve, Dimension, estimator
from polariscope.analysis.dimension.support.bootstrap import (
    N_BOOTSTRAP,
    check_bootstrap,
    neighbourhood_resamples,
)
from polariscope.analysis.dimension.support.plateau import plateau
from polariscope.core.errors import InputError
from polariscope.numerics.intervals import percentile_interval
from polariscope.numerics.neighbours import Samples, table_of


@estimator(
    "gride",
    invariant_to=SHAPE_ONLY,
    varies_with={"stretch"},
    least_k=4,
    relative_error=0.1,
)
def gride(
    x: Samples,
    *,
    k: Annotated[int, Ge(4)] = 64,
    scale: Annotated[int, Ge(1)] | None = None,
    level: Annotated[float, Gt(0), Lt(1)] = 0.95,
    n_bootstrap: Annotated[int, Ge(20)] = N_BOOTSTRAP,
    seed: int = 0,
) -> Dimension:
    r"""Dimension from the ratio of the distances to the 2s-th and the s-th neighbour, at scales s = 1, 2, 4, ….

    If the density is nearly constant up to the 2s-th neighbour, the ratio :math:`\mu = T_{2s}/T_s` has the density

    .. math:: f(\mu) = \frac{d \, (\mu^d - 1)^{s-1}}{B(s, s) \, \mu^{d (2s-1) + 1}}, \qquad \mu > 1

    with B the beta function. The maximum-likelihood d is the only root of

    .. math:: \frac1d + \frac{s-1}{N} \sum_i \frac{\log\mu_i}{1 - \mu_i^{-d}} - \frac{2s-1}{N} \sum_i \log\mu_i

    At s = 1 it is 1/mean(log μ), TwoNN's likelihood over all points. Small scales are sensitive to noise, large ones to
    curvature and edges, and the curve shows both. The value is that of the largest scale of the smallest stable range
    (``support/plateau.py``), or of ``scale``. ``k`` is the largest 2s. Unlike subsampling, this uses all points.

    The bootstrap makes one Newton step in log d from the estimate, which is exact to first order.

    Reference: Denti et al., The generalized ratios intrinsic dimension estimator (denti2022).
    Ours: the likelihood itself, no ratio is left out as an outlier.

    :param x: points, one per row.
    :param k: (default 64) number of neighbours; the largest scale is half of it.
    :param scale: (default: the largest of the smallest stable range) scale s whose estimate is the value.
    :param level: (default 0.95) nominal coverage of the interval.
    :param n_bootstrap: (default 200) number of resamples for the interval.
    :param seed: (default 0) seed of the resamples.

    >>> x = np.random.default_rng(0).random((500, 2)) @ np.array([[1.0, 2.0, 0.5], [0.0, 1.0, 3.0]])
    >>> gride(x, k=16).curve.k
    (2, 4, 8, 16)
    """
    check_bootstrap(level, n_bootstrap)
    table = table_of(x, k, 4)
    scales = [2**power for power in range(k.bit_length()) if 2 * 2**power <= k]
    if scale is not None and scale not in scales:
        raise InputError(
            "scale", f"be one of {', '.join(map(str, scales))} (2 · scale is at most k = {k})", got=scale
        )
    # Column j − 1 contains the distance to the j-th neighbour.
    ratios = [np.log(table.distances[:, 2 * s - 1] / table.distances[:, s - 1]) for s in scales]
    values = [most_likely(ratio, s) for ratio, s in zip(ratios, scales, strict=True)]
    flat = plateau([2 * s for s in scales], values)
    selected = scales.index(flat.high // 2 if scale is None else scale)

    # Blocks have the size of the selected scale; the other intervals of the curve share these resamples.
    weights = neighbourhood_resamples(table, 2 * scales[selected], n_bootstrap, seed)
    ends = [
        percentile_interval(value, _one_step(weights, ratio, value, s), level, interpolate=False)
        for ratio, value, s in zip(ratios, values, scales, strict=True)
    ]
    curve = Curve(
        k=tuple(2 * s for s in scales),
        values=tuple(values),
        low=tuple(low for low, _ in ends),
        high=tuple(high for _, high in ends),
        stable=(flat.low, flat.high) if flat.is_stable else None,
    )
    notes = [*table.notes, *table.too_few_for(values[selected])]
    if scale is None and flat.note:
        notes.append(flat.note)
    return Dimension(
        value=values[selected],
        interval=(curve.low[selected], curve.high[selected]),
        level=level,
        estimator="gride",
        variant=f"scale {scales[selected]}" + (" of the stable range" if scale is None else ""),
        k=2 * scales[selected],
        **table.counts,
        curve=curve,
        notes=tuple(notes),
    )


def most_likely(log_ratio: Float[np.ndarray, " point"], s: int) -> float:
    """Find the root of the score by Newton's method on d · score, the slope of the log-likelihood in log d."""
    if not log_ratio.any():
        raise InputError(
            problem=(
                f"neighbours {s} and {2 * s} have the same distance around every point, so the estimate is "
                "infinite"
            ),
            remedy="if x is a grid, add a little noise",
        )
    # Between d = s/(2s - 1)/mean and 1/mean · s the slope changes sign, as log μ/(1 - μ^-d) ≥ 1/d and ≥ log μ.
    low, high = s / (2 * s - 1) / log_ratio.mean(), s / log_ratio.mean()
    d = low
    for _ in range(100):
        slope, curvature = (part.mean() for part in _slopes(log_ratio, d, s))
        low, high = (d, high) if slope > 0 else (low, d)
        # A step changes d at most by a factor of e, so the exponential cannot overflow.
        step = d * np.exp(np.clip(slope / curvature, -1, 1))
        # If the step leaves the bracket, the bracket is halved in log d.
        following = float(step) if low < step < high else float(np.sqrt(low * high))
        if abs(following - d) <= 1e-13 * d:
            break
        d = following
    return following


def _slopes(
    log_ratio: Float[np.ndarray, " point"], d: float, s: int
) -> tuple[Float[np.ndarray, " point"], Float[np.ndarray, " point"]]:
    """Return the first and minus the second derivative in log d of each point's log-likelihood.

    With t = d log μ these are 1 + (s − 1) t/(1 − e^-t) − (2s − 1) t and −t times its derivative in t. Near 0 the
    fraction is 1 + t/2 + t²/12; equal distances have t = 0.
    """
    t = d * log_ratio
    small = t < 1e-4
    safe = np.where(small, 1.0, t)
    # expm1 keeps the digits of 1 − e^−t for small t.
    fraction = np.where(small, 1 + t / 2 + t**2 / 12, safe / -np.expm1(-safe))
    decay = np.exp(-safe)
    slope_of_fraction = np.where(small, 0.5 + t / 6, (1 - decay * (1 + safe)) / np.expm1(-safe) ** 2)
    slope = 1 + (s - 1) * fraction - (2 * s - 1) * t
    return slope, t * ((2 * s - 1) - (s - 1) * slope_of_fraction)


def _one_step(
    weights: Float[np.ndarray, "resample point"], log_ratio: Float[np.ndarray, " point"], value: float, s: int
) -> Float[np.ndarray, " resample"]:
    slope, curvature = _slopes(log_ratio, value, s)
    with np.errstate(divide="ignore", over="ignore"):  # infinite if only equal distances are drawn
        return value * np.exp((weights @ slope) / (weights @ curvature))
