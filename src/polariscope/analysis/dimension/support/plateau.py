"""Where a curve of estimates over scales is flat."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

TOLERANCE = 0.05


@dataclasses.dataclass(frozen=True)
class Plateau:
    """The smallest range of k, from ``low`` to ``high``, over which an estimate hardly moves."""

    low: int
    high: int
    spread: float
    """(largest − smallest) / median of the estimates in the range."""
    is_stable: bool
    """False: no range was flat enough, and this one, of all octaves, is the flattest."""

    @property
    def note(self) -> str | None:
        if self.is_stable:
            return None
        return (
            f"no range of k is stable: the flattest octave, k = {self.low}–{self.high}, still spreads by "
            f"{self.spread:.0%}; the dimension depends on the scale, see the curve."
        )


def plateau(k: Sequence[int], values: Sequence[float], tolerance: float = TOLERANCE) -> Plateau:
    """The smallest k from which on an octave of estimates agrees, and how far that goes.

    A range is stable when it reaches from k₁ to at least 2 k₁ and its estimates spread by at most ``tolerance``
    of their median. The smallest k₁ wins, as small balls are bent least; the range is then extended to the
    largest k₂ with which it stays stable. Estimates are best read at k₂, where they vary least by chance.

    >>> plateau([3, 4, 5, 6, 8, 10], [6.0, 5.0, 5.1, 5.0, 5.0, 3.0])
    Plateau(low=4, high=8, spread=0.0199..., is_stable=True)
    """
    orders, estimates = np.asarray(k), np.asarray(values, dtype=np.float64)
    octaves = [
        (first, last)
        for first in range(len(orders))
        if (last := int(np.searchsorted(orders, 2 * orders[first]))) < len(orders)
    ]
    spreads = [_spread(estimates[first : last + 1]) for first, last in octaves]
    for (first, last), spread in zip(octaves, spreads, strict=True):
        if spread <= tolerance:
            while last + 1 < len(orders) and _spread(estimates[first : last + 2]) <= tolerance:
                last += 1
            return Plateau(int(orders[first]), int(orders[last]), _spread(estimates[first : last + 1]), True)
    flattest = int(np.argmin(spreads))
    first, last = octaves[flattest]
    return Plateau(int(orders[first]), int(orders[last]), spreads[flattest], False)


def _spread(estimates: np.ndarray) -> float:
    return float(np.ptp(estimates) / np.median(estimates))
