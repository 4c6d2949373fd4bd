"""Intervals of scores whose measurement is too long to repeat hundreds of times."""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Bool, Int

from polariscope.metrics._shared import LEVEL, Shared
from polariscope.seeds import generator

N_HALVES = 20


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
    """95 % interval of the accuracy averaged over factors: of the test samples, the classifiers being given."""
    from scipy.stats import norm

    rows = correct.mean(axis=1)
    margin = float(norm.ppf((1 + LEVEL) / 2)) * float(rows.std(ddof=1)) / math.sqrt(len(rows))
    return _clipped(float(rows.mean()), margin if len(rows) > 1 else 1.0, (0.0, 1.0))


def _clipped(value: float, margin: float, bounds: tuple[float, float]) -> tuple[float, float]:
    return float(np.clip(value - margin, *bounds)), float(np.clip(value + margin, *bounds))
