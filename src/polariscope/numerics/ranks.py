"""Rank correlations with their intervals."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
from jaxtyping import Float

from polariscope.numerics.intervals import NORMAL_QUANTILE, Interval


@dataclasses.dataclass(frozen=True)
class RankCorrelation:
    """Spearman's correlation of two quantities."""

    value: float | None
    """Correlation from −1 to 1; None if one of the two is constant, or for fewer than two pairs."""
    interval: Interval | None
    """95 % interval; None for fewer than four pairs."""
    n: int
    """Number of pairs."""


def spearman(x: Float[np.ndarray, " sample"], y: Float[np.ndarray, " sample"]) -> RankCorrelation:
    r"""Compute Spearman's rank correlation ρ with a 95 % interval by Fisher's transformation.

    .. math:: \tanh\Bigl(\operatorname{artanh} \rho \pm 1.96 \sqrt{\frac{1 + \rho^2 / 2}{n - 3}}\Bigr)

    with n pairs; equal values share their mean rank. It is 1 for the same order and −1 for the reverse order. The
    variance is that of bonett2000, which is more accurate than 1.06/(n − 3) if \|ρ\| is large. For ρ = ±1 the margin is
    computed at ±(1 − 6/(n³ − n)), half way to the next possible value of n pairs, so the interval has a positive width.

    :param x: first quantity.
    :param y: second quantity, of the same samples.

    >>> spearman(np.array([1.0, 2.0, 3.0, 4.0, 5.0]), np.array([1.0, 4.0, 9.0, 16.0, 26.0])).value
    1.0
    """
    from scipy.stats import rankdata

    n = len(x)
    first, second = rankdata(x), rankdata(y)
    if n < 2 or np.ptp(first) == 0 or np.ptp(second) == 0:
        return RankCorrelation(None, None, n)
    rho = float(np.clip(np.corrcoef(first, second)[0, 1], -1, 1))
    # Rounding leaves the correlation of equal orders slightly below 1.
    if math.isclose(abs(rho), 1, abs_tol=1e-12):
        rho = math.copysign(1.0, rho)
    if n < 4:
        return RankCorrelation(rho, None, n)
    largest = 1 - 6 / (n**3 - n)
    within = max(-largest, min(largest, rho))
    margin = NORMAL_QUANTILE * math.sqrt((1 + within**2 / 2) / (n - 3))
    low, high = (math.tanh(math.atanh(within) + sign * margin) for sign in (-1, 1))
    return RankCorrelation(rho, (min(low, rho), max(high, rho)), n)
