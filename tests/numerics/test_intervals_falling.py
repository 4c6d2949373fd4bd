"""Curves that still fall are told from those that have come to rest."""

from __future__ import annotations

import numpy as np

from polariscope.numerics.intervals import is_still_falling


def test_an_exponential_falls_until_it_has_come_to_rest() -> None:
    for steps, expected in ((1.0, True), (4.0, True), (20.0, False)):
        assert is_still_falling(np.exp(-np.linspace(0, steps, 40)).tolist()) is expected


def test_noise_about_a_level_is_no_fall() -> None:
    """Two standard errors: at most 2.5 % of curves of noise would be said to fall, 5 of 200."""
    rng = np.random.default_rng(0)
    falls = [is_still_falling([100.0, *rng.normal(size=100)]) for _ in range(200)]
    assert sum(falls) <= 10


def test_what_rises_or_is_too_short_does_not_fall() -> None:
    assert not is_still_falling([1.0, 2.0, 3.0, 4.0])
    assert not is_still_falling([1.0])
    assert not is_still_falling([])
    assert not is_still_falling([1.0, float("nan")])
    assert is_still_falling([2.0, 1.0])
