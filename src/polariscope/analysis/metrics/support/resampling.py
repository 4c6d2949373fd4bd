"""Intervals of scores: from a bootstrap, or from halves where the measurement is too long to repeat so often."""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Bool, Float, Int

from polariscope.analysis.metrics.support.shared import Shared
from polariscope.core.seeds import generator

LEVEL = 0.95
N_HALVES = 20


def recentred_interval(
    value: float,
    replicates: Float[np.ndarray, " replicate"],
    bounds: tuple[float | int, float | int] = (-np.inf, np.inf),
) -> tuple[float, float]:
    """95 % interval: percentiles of a bootstrap's replicates, moved so that their mean is the value.

    A resample repeats samples, which biases informations and correlations once more; only the spread is used.
    """
    tail = (1 - LEVEL) / 2
    low, high = value + np.quantile(replicates, (tail, 1 - tail)) - replicates.mean()
    return (
        float(np.clip(min(low, value), *bounds)),
        float(np.clip(max(high, value), *bounds)),
    )


def half_samples(
    rows: Int[np.ndarray, " row"], shared: Shared, stream: str, count: int = N_HALVES
) -> list[Int[np.ndarray, " half"]]:
    r"""Random halves of ``rows``, without replacement.

    Of n independent rows with variance s², the mean of m = n/2 of them has, around the mean of all, the variance

    .. math:: \frac{s^2}{m} \Big(1 - \frac{m}{n}\Big) = \frac{s^2}{n}

    which is that of the mean of all: scores of halves spread as the score itself would over new samples. Unlike a
    bootstrap's, they hold no sample twice, which a pair or a variance within a small group would notice.
    """
    draw = generator(shared.seed, "metrics", "halves", stream)
    return [np.sort(draw.permutation(rows)[: max(1, len(rows) // 2)]) for _ in range(count)]


def interval_from_halves(
    value: float, scores: list[float], bounds: tuple[float, float] = (0.0, 1.0)
) -> tuple[float, float] | None:
    """95 % interval from the scores of :func:`half_samples`; only their spread is used, since halves are smaller."""
    from scipy.stats import t

    if not scores:
        return None
    margin = float(t.ppf((1 + LEVEL) / 2, len(scores) - 1)) * float(np.std(scores, ddof=1))
    return _clipped(value, margin, bounds)


def interval_of_accuracy(correct: Bool[np.ndarray, "test factor"]) -> tuple[float, float]:
    r"""95 % interval of the accuracy averaged over factors: of the test samples, the classifiers being given.

    Wilson's (:func:`wilson_interval`), with the variance of the samples' averages, which is p (1 − p) for one factor.
    """
    rows = correct.mean(axis=1)
    return wilson_interval(float(rows.mean()), float(rows.var()) / len(rows), float(len(rows)))


def wilson_interval(value: float, variance: float, n: float) -> tuple[float, float]:
    r"""95 % interval of a share p that was measured with this variance, s², and is worth n independent answers.

    .. math:: \frac{p + z^2/2n \pm z \sqrt{s^2 + z^2/4n^2}}{1 + z^2/n}

    Wilson's for s² = p (1 − p)/n. Unlike p ± z s it is no point where all, or none, are right, and it stays in [0, 1].
    A smaller s² says that they are worth p (1 − p)/s² answers, more than n: the interval is that of so many.

    >>> wilson_interval(1.0, 0.0, 20.0)[0] == 20 / (20 + 1.959963984540054**2)
    True
    """
    from scipy.stats import norm

    z = float(norm.ppf((1 + LEVEL) / 2))
    if variance > 0:
        n = max(n, value * (1 - value) / variance)
    centre = (value + z**2 / (2 * n)) / (1 + z**2 / n)
    margin = z * math.sqrt(variance + z**2 / (4 * n**2)) / (1 + z**2 / n)
    return _clipped(centre, margin, (0.0, 1.0))


def _clipped(value: float, margin: float, bounds: tuple[float, float]) -> tuple[float, float]:
    return float(np.clip(value - margin, *bounds)), float(np.clip(value + margin, *bounds))
