"""Confidence intervals of means, shares and resampled estimates."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float, Shaped

LEVEL = 0.95
"""Default nominal coverage of an interval."""
NORMAL_QUANTILE = 1.959963984540054
"""97.5 % quantile of a standard normal, for a two-sided 95 % interval."""

Interval = tuple[float, float]


def interval_of_mean(values: Float[np.ndarray, " sample"], at_least: float = -math.inf) -> Interval | None:
    """Return the 95 % interval of the mean by the normal approximation; None for a single value.

    :param values: independent values
    :param at_least: (default −∞) lower limit of the interval

    >>> low, high = interval_of_mean(np.array([1.0, 3.0]))
    >>> round(low, 3), round(high, 3)
    (0.04, 3.96)
    """
    if len(values) < 2:
        return None
    mean, half = float(values.mean()), float(_half_width(values))
    return max(at_least, mean - half), mean + half


def mean_with_interval(
    values: Float[np.ndarray, "sample latent"], *, at_least: float = -np.inf
) -> tuple[Float[np.ndarray, " latent"], Float[np.ndarray, "latent 2"]]:
    r"""Return the mean over samples and its 95 % interval, mean ± 1.96 · std / √n, clipped at ``at_least``.

    A latent with an infinite value has the mean ∞ and the interval [∞, ∞].
    """
    mean = np.full(values.shape[1], np.inf)
    half = np.zeros_like(mean)
    for latent, column in enumerate(values.T):  # one at a time, because a copy of all columns can be large
        if np.isfinite(column).all():
            mean[latent], half[latent] = column.mean(), _half_width(column)
    return mean, np.stack([np.maximum(mean - half, at_least), mean + half], axis=1)


def percentile_interval(
    value: float | int,
    estimates: Shaped[np.ndarray, " resample"],
    level: float = LEVEL,
    *,
    interpolate: bool = True,
) -> Interval:
    """Return the central interval of ``level`` of the resampled estimates, extended to include the value.

    :param value: estimate from all samples
    :param estimates: estimate from each resample
    :param level: (default 0.95) share of the estimates in the interval
    :param interpolate: (default True) if True, interpolate between estimates; use False if estimates can be infinite,
        and for counts

    >>> percentile_interval(2, np.array([1, 1, 2, 3, 3]), 0.5, interpolate=False)
    (1.0, 3.0)
    """
    low, high = _percentiles(estimates, level, interpolate)
    return min(low, float(value)), max(high, float(value))


def recentred_interval(
    value: float,
    replicates: Float[np.ndarray, " replicate"],
    bounds: tuple[float | int, float | int] = (-np.inf, np.inf),
) -> Interval:
    """Return a 95 % interval: percentiles of bootstrap replicates, shifted so that their mean is the value.

    A resample repeats samples, which adds bias to information and correlations, so only the spread is used.

    :param value: estimate from all samples
    :param replicates: estimate from each resample
    :param bounds: (default none) smallest and largest possible value
    """
    low, high = (value + end - replicates.mean() for end in _percentiles(replicates, LEVEL, True))
    return float(np.clip(min(low, value), *bounds)), float(np.clip(max(high, value), *bounds))


def interval_from_halves(
    value: float, scores: Sequence[float], bounds: tuple[float, float] = (0.0, 1.0)
) -> Interval | None:
    r"""Return a 95 % interval from scores of random halves of the samples, drawn without replacement; None if empty.

    For n independent rows with variance s², the mean of m = n/2 of them varies around the mean of all with variance
    s²/m (1 − m/n) = s²/n, the variance of the mean of all. Only the spread is used, because halves are smaller.

    :param value: score of all samples
    :param scores: score of each half
    :param bounds: (default 0 to 1) smallest and largest possible score
    """
    from scipy.stats import t

    if not scores:
        return None
    margin = float(t.ppf((1 + LEVEL) / 2, len(scores) - 1)) * float(np.std(scores, ddof=1))
    return _clipped(value, margin, bounds)


def interval_of_accuracy(correct: Bool[np.ndarray, "test factor"]) -> Interval:
    r"""Return the 95 % interval of the accuracy averaged over factors, over test samples and for fixed classifiers.

    It is Wilson's (:func:`wilson_interval`), with the variance of the samples' averages, p (1 − p) for one factor.
    """
    rows = correct.mean(axis=1)
    return wilson_interval(float(rows.mean()), float(rows.var()) / len(rows), float(len(rows)))


def wilson_interval(value: float, variance: float, n: float) -> Interval:
    r"""Return the 95 % interval of a share p with variance s², equivalent to n independent answers.

    .. math:: \frac{p + z^2/2n \pm z \sqrt{s^2 + z^2/4n^2}}{1 + z^2/n}

    It is Wilson's interval for s² = p (1 − p)/n. Unlike p ± z s it has a positive width if all or no answers are
    correct, and lies in [0, 1]. A smaller s² is equivalent to p (1 − p)/s² answers, more than n, and the interval is
    for that number.

    >>> wilson_interval(1.0, 0.0, 20.0)[0] == 20 / (20 + 1.959963984540054**2)
    True
    """
    z = NORMAL_QUANTILE
    if variance > 0:
        n = max(n, value * (1 - value) / variance)
    centre = (value + z**2 / (2 * n)) / (1 + z**2 / n)
    margin = z * math.sqrt(variance + z**2 / (4 * n**2)) / (1 + z**2 / n)
    return _clipped(centre, margin, (0.0, 1.0))


def jackknife_interval(
    value: float, left_out: Float[np.ndarray, " part"], bounds: tuple[float, float] = (-np.inf, np.inf)
) -> Interval:
    r"""Return a 95 % interval from estimates that each leave out one of m equal parts of the samples.

    .. math:: \mathrm{Var} = \frac{m - 1}{m} \sum_i (\hat\theta_{(i)} - \bar\theta)^2

    :param value: estimate from all samples
    :param left_out: estimate without each part
    :param bounds: (default none) smallest and largest possible value
    """
    # (m − 1)/m times the sum of squares is (m − 1) times the variance.
    half = NORMAL_QUANTILE * float(np.sqrt((len(left_out) - 1) * left_out.var()))
    return _clipped(value, half, bounds)


def _half_width(values: Float[np.ndarray, "sample *rest"]) -> Float[np.ndarray, "*rest"] | float:
    return NORMAL_QUANTILE * values.std(axis=0, ddof=1) / math.sqrt(len(values))


def _percentiles(estimates: Shaped[np.ndarray, " resample"], level: float, interpolate: bool) -> Interval:
    tails = ((1 - level) / 2, (1 + level) / 2)
    # Interpolation between finite and infinite estimates would give NaN.
    low, high = np.quantile(estimates, tails, method="linear" if interpolate else "closest_observation")
    return float(low), float(high)


def bounds_of_difference(bounds: tuple[float | int, float | int]) -> tuple[float, float]:
    """Return the smallest and largest possible difference of two values with the same bounds.

    :param bounds: smallest and largest possible value.

    >>> bounds_of_difference((0, 1)), bounds_of_difference((0, np.inf))
    ((-1.0, 1.0), (-inf, inf))
    """
    reach = float(bounds[1] - bounds[0])
    return -reach, reach


def _clipped(value: float, margin: float, bounds: tuple[float, float]) -> Interval:
    return float(np.clip(value - margin, *bounds)), float(np.clip(value + margin, *bounds))


def t_interval(
    values: Float[np.ndarray, " sample"],
    level: float = LEVEL,
    bounds: tuple[float | int, float | int] = (-np.inf, np.inf),
) -> Interval | None:
    r"""Return the interval of the mean of few independent normal values; None for a single value.

    .. math:: \bar x \pm t_{n-1} \, s / \sqrt{n}

    :param values: independent values
    :param level: (default 0.95) nominal coverage of the interval
    :param bounds: (default none) smallest and largest possible value of the quantity, at which the interval is clipped

    >>> t_interval(np.array([1.0, 3.0]), bounds=(0, 8))
    (0.0, 8.0)
    >>> low, high = t_interval(np.array([1.0, 3.0]))
    >>> round(low, 3), round(high, 3)
    (-10.706, 14.706)
    """
    from scipy.stats import t

    if len(values) < 2:
        return None
    half = float(t.ppf((1 + level) / 2, len(values) - 1) * values.std(ddof=1) / math.sqrt(len(values)))
    # Values out of bounds, such as a negative estimate of a KL, must lie in the interval.
    ends = float(min(bounds[0], values.min())), float(max(bounds[1], values.max()))
    return _clipped(float(values.mean()), half, ends)


def bootstrap_interval_of_mean(
    values: Float[np.ndarray, " sample"], generator: np.random.Generator, n_bootstrap: int = 2000
) -> Interval | None:
    """Return the 95 % interval of the mean by bootstrap; None for a single value. It is too narrow for very few values.

    :param values: independent values
    :param generator: source of the resamples
    :param n_bootstrap: (default 2,000) number of resamples
    """
    if len(values) < 2:
        return None
    drawn = generator.integers(0, len(values), size=(n_bootstrap, len(values)))
    return percentile_interval(float(values.mean()), values[drawn].mean(axis=1))
