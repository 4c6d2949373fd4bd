"""Flat ranges of a curve of estimates over scales."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

TOLERANCE = 0.05


@dataclasses.dataclass(frozen=True)
class Plateau:
    """Smallest range of k, from ``low`` to ``high``, in which an estimate is nearly constant."""

    low: int
    high: int
    spread: float
    """(largest − smallest) / median of the estimates in the range."""
    is_stable: bool
    """If False, no range is flat enough, and this one is the flattest octave."""

    @property
    def note(self) -> str | None:
        if self.is_stable:
            return None
        return (
            f"No range of k is stable: in the flattest octave, k = {self.low}–{self.high}, the estimates differ by "
            f"{self.spread:.0%}. The dimension depends on the scale; see the curve."
        )


def plateau(k: Sequence[int], values: Sequence[float], tolerance: float = TOLERANCE) -> Plateau:
    """Find the smallest k at which a stable range of estimates begins, and the largest k of this range.

    A range is stable if it extends from k₁ to at least 2 k₁ and its estimates differ by at most ``tolerance`` of their
    median. The smallest k₁ is selected, because small balls are affected least by curvature. The range is then extended
    to the largest k₂ with which it is stable. Use the estimate at k₂, which has the least variance.

    >>> plateau([3, 4, 5, 6, 8, 10], [6.0, 5.0, 5.1, 5.0, 5.0, 3.0])
    Plateau(low=4, high=8, spread=0.0199..., is_stable=True)
    """
    orders, estimates = np.asarray(k), np.asarray(values, dtype=np.float64)
    octaves = [
        (first, last)
        for first in range(len(orders))
        # Index of the first k that is at least twice as large; an octave that the curve does not cover is
        # skipped.
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
