"""Trends of noisy curves in the logarithm of the step."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np
from scipy.special import stdtrit

from polariscope.core.errors import InputError

BATCHES = 10
"""Number of batches whose means are fitted: neighbouring values of a training curve are correlated, means hardly."""
FEWEST = 4
"""Values below which no line is fitted."""


@dataclasses.dataclass(frozen=True)
class Trend:
    """A line in log₂(step), fitted to the end of a curve."""

    level: float
    """Value of the line at the last step."""
    slope: float
    """Change when the number of steps is doubled: many learning curves are straight in log₂(step)."""
    error: float
    """Standard error of the slope; infinite if the line has no degrees of freedom left."""
    freedom: int
    """Degrees of freedom of the fit."""

    def limits(self, confidence: float = 0.95) -> tuple[float, float]:
        """Return one-sided limits of the slope, from below and from above; infinite without degrees of freedom.

        :param confidence: (default 0.95) of each limit.
        """
        if not self.freedom:
            return -math.inf, math.inf
        width = float(stdtrit(self.freedom, confidence)) * self.error
        return self.slope - width, self.slope + width


def trend(steps: Sequence[int], values: Sequence[float], share: float = 0.5) -> Trend:
    r"""Fit a line in :math:`x = \log_2(t / T)` to the last part of a curve, by batch means.

    The values at steps :math:`t > (1 - share)\,T` are split into at most 10 batches in their order, and least squares
    are fitted to the means of x and of the values in each. Means of batches are nearly independent even if
    neighbouring values are correlated, so the standard error of the slope is honest.

    :param steps: ascending, from 1.
    :param values: the curve, finite.
    :param share: (default 0.5) share of the steps, counted from the last, that is fitted.

    >>> steps = [100, 200, 400, 800, 1000, 1200, 1400, 1600]
    >>> line = trend(steps, [7.0, 6.0, 5.0, 4.0, 3.68, 3.42, 3.19, 3.0], share=0.9)
    >>> round(line.level, 2), round(line.slope, 2)
    (3.0, -1.0)
    """
    t, y = np.asarray(steps, dtype=np.float64), np.asarray(values, dtype=np.float64)
    window = t > (1 - share) * t[-1] if len(t) else np.zeros(0, dtype=bool)
    count = int(window.sum())
    if count < FEWEST:
        raise InputError(
            "steps", f"hold at least {FEWEST} values in the last {share:.0%} of the steps", got=count
        )
    x, y = np.log2(t[window] / t[-1]), y[window]
    n_batches = min(BATCHES, count)
    x, y = (np.array([part.mean() for part in np.array_split(a, n_batches)]) for a in (x, y))
    centred = x - x.mean()
    spread = float((centred**2).sum())
    slope = float(centred @ y / spread)
    level = float(y.mean() - slope * x.mean())
    freedom = n_batches - 2
    residual = y - level - slope * x
    error = math.sqrt(float((residual**2).sum()) / freedom / spread) if freedom else math.inf
    return Trend(level, slope, error, freedom)
