"""Trends of noisy curves in the logarithm of the step."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np
from scipy.special import stdtrit

from polariscope.core.errors import InputError

BATCHES = 10
"""Number of batches whose means are fitted, because neighbouring values are correlated and the means hardly are."""
MIN_VALUES = 4
"""Minimum number of values to fit a line."""
HALF_OCTAVE = 2**-0.5
"""Share of the steps at which the last half-octave begins."""


@dataclasses.dataclass(frozen=True)
class Trend:
    """A line in log₂(step), fitted to the end of a curve."""

    level: float
    """Value of the line at the last step."""
    slope: float
    """Change per doubling of the steps; many learning curves are straight in log₂(step)."""
    error: float
    """Standard error of the slope; infinite without degrees of freedom."""
    freedom: int
    """Degrees of freedom of the fit."""

    def limits(self, confidence: float = 0.95) -> tuple[float, float]:
        """Return the one-sided lower and upper limits of the slope; infinite without degrees of freedom.

        :param confidence: (default 0.95) confidence level of each limit.
        """
        if not self.freedom:
            return -math.inf, math.inf
        width = float(stdtrit(self.freedom, confidence)) * self.error
        return self.slope - width, self.slope + width


def trend(steps: Sequence[int], values: Sequence[float], share: float = 0.5) -> Trend:
    r"""Fit a line in :math:`x = \log_2(t / T)` to the last part of a curve, by batch means.

    The values at steps :math:`t > (1 - share)\,T` are split in order into at most 10 batches, and a line is fitted by
    least squares to the means of x and of the values in each. Means of batches are nearly independent even if
    neighbouring values are correlated, so the standard error of the slope is valid.

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
    if count < MIN_VALUES:
        raise InputError(
            "steps", f"have at least {MIN_VALUES} values in the last {share:.0%} of the steps", got=count
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


@dataclasses.dataclass(frozen=True)
class Gain:
    """Expected decrease of a curve when the number of steps is doubled, with its upper limit."""

    value: float
    limit: float
    """One-sided upper 95 % limit; infinite without degrees of freedom."""


def doubling_gain(steps: Sequence[int], values: Sequence[float]) -> Gain:
    r"""Return the expected decrease of a curve if the number of steps is doubled.

    Let :math:`d_1` and :math:`d_2` be the decreases over the last two half-octaves, :math:`(T/2, T/\sqrt 2]` and
    :math:`(T/\sqrt 2, T]`, each from a line in log₂(step), and :math:`\rho = d_2 / d_1`, at most 1. A doubling has two
    half-octaves, so a curve that slows down at a constant ratio (a power law) falls by :math:`d_2 (\rho + \rho^2)`, one
    that converges exponentially by less, and one that is straight in log₂(step), with ρ = 1, by the slope itself. The
    limit is computed from the upper limit of :math:`d_2` and the lower limit of :math:`d_1`. If these overlap, there is
    no evidence that the curve slows down, and the gain is the slope of one line through the whole last half.

    :param steps: ascending, from 1.
    :param values: the curve, finite.

    >>> steps = list(range(50, 4001, 50))
    >>> straight = doubling_gain(steps, [10 - math.log2(step) for step in steps])
    >>> slowing = doubling_gain(steps, [4 * 2 ** (-step / 1000) for step in steps])  # truth: 0.23
    >>> round(straight.value, 2), round(slowing.value, 2), slowing.limit < 0.6
    (1.0, 0.38, True)
    """
    whole = trend(steps, values)
    value, limit = -whole.slope, -whole.limits()[0]
    last = steps[-1]
    n_first = sum(last / 2 < step <= last * HALF_OCTAVE for step in steps)
    n_second = sum(step > last * HALF_OCTAVE for step in steps)
    if min(n_first, n_second) < MIN_VALUES:
        return Gain(value, limit)
    end = len(steps) - n_second
    # The window of the first part begins at half of all steps; convert it to a share of the first part.
    first = trend(steps[:end], values[:end], 1 - last / 2 / steps[end - 1])
    second = trend(steps, values, 1 - HALF_OCTAVE)

    # A slope is per doubling, so half of it is the change over a half-octave.
    later = -second.limits()[0] / 2
    if later >= -first.limits()[1] / 2:  # no evidence that it slows down
        return Gain(value, limit)
    return Gain(
        min(value, _continued(-first.slope / 2, -second.slope / 2)),
        min(limit, _continued(-first.limits()[1] / 2, later)),
    )


def _continued(earlier: float, later: float) -> float:
    """Return the decrease over two more half-octaves if the curve slows down at the same ratio as over the last two."""
    later = max(0.0, later)
    ratio = min(1.0, later / earlier) if earlier > 0 else 1.0
    return later * (ratio + ratio**2)
