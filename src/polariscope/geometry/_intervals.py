"""The uncertainty of an average over points or observations."""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Float

from polariscope.regime.divergence import NORMAL_QUANTILE


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
