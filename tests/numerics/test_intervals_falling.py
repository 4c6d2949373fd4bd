"""Curves that still fall are told from those that have come to rest."""

from __future__ import annotations

import numpy as np
import pytest

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


def falls(values: np.ndarray) -> bool:
    """The definition, quarter by quarter."""
    size = max(1, len(values) // 4)
    third, last = values[len(values) - 2 * size : len(values) - size], values[len(values) - size :]
    fall = sum(third) / size - sum(last) / size
    error = 0.0
    if size > 1:
        squares = sum((third - third.mean()) ** 2) + sum((last - last.mean()) ** 2)
        error = (squares / (size - 1) / size) ** 0.5
    return fall > 0.02 * abs(values[0] - last.mean()) and fall > 2 * error


def test_random_curves_fall_as_defined() -> None:
    rng = np.random.default_rng(0)
    answers = []
    for _ in range(400):
        n = int(rng.integers(2, 30))
        start, slope, noise = rng.normal(scale=[20.0, 0.3, 0.5])
        curve = slope * np.arange(n) + noise * rng.normal(size=n)
        curve[0] += start
        answers.append(is_still_falling(curve.tolist()))
        assert answers[-1] == falls(curve)
    assert 100 < sum(answers) < 300


@pytest.mark.parametrize(
    ("curve", "falling"),
    [
        ([50.0, 1.0, 0.0], False),  # 1 of 50 is 2 %
        ([49.9, 1.0, 0.0], True),
        ([-50.0, 1.0, 0.0], False),
        ([3.0, 3.0, 3.0, 3.0, 2.0, 2.0, -1.0, 1.0], False),  # a fall of 2 with a standard error of √(2/2)
        ([3.0, 3.0, 3.0, 3.0, 2.1, 2.1, -1.0, 1.0], True),
    ],
)
def test_a_fall_must_exceed_both_of_its_limits(curve: list[float], falling: bool) -> None:
    assert is_still_falling(curve) is falling
