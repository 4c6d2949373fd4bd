"""The uncertainty of an average over points or observations."""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Float

NORMAL_QUANTILE = 1.959963984540054  # 97.5 % of a standard normal: two-sided 95 %


def interval_of_mean(
    values: Float[np.ndarray, " sample"], lowest: float = -math.inf
) -> tuple[float, float] | None:
    """95 % interval of the mean, by the normal approximation; None for a single value.

    >>> low, high = interval_of_mean(np.array([1.0, 3.0]))
    >>> round(low, 3), round(high, 3)
    (0.04, 3.96)
    """
    n = len(values)
    if n < 2:
        return None
    mean, half = float(values.mean()), NORMAL_QUANTILE * float(values.std(ddof=1)) / math.sqrt(n)
    return max(lowest, mean - half), mean + half


def mean_with_interval(
    values: Float[np.ndarray, "sample latent"], *, at_least: float = -np.inf
) -> tuple[Float[np.ndarray, " latent"], Float[np.ndarray, "latent 2"]]:
    r"""Mean over samples and its 95 % interval, mean ± 1.96 · std / √n, cut off below ``at_least``.

    A latent with an infinite value has the mean ∞ and the interval [∞, ∞].
    """
    finite = np.isfinite(values).all(axis=0)
    mean = np.full(values.shape[1], np.inf)
    mean[finite] = values[:, finite].mean(axis=0)
    half = np.zeros_like(mean)
    half[finite] = NORMAL_QUANTILE * values[:, finite].std(axis=0, ddof=1) / np.sqrt(len(values))
    return mean, np.stack([np.maximum(mean - half, at_least), mean + half], axis=1)
