"""Intervals of scores against what is known of means."""

from __future__ import annotations

import numpy as np
import pytest

from analysis.metrics.known import noise
from polariscope.analysis.metrics.support.resampling import (
    half_samples,
    interval_from_halves,
    interval_of_accuracy,
    recentred_interval,
)
from polariscope.analysis.metrics.support.shared import Shared


def test_the_interval_keeps_the_spread_and_drops_the_bias_of_resampling() -> None:
    replicates = np.linspace(10, 11, 1001)
    assert recentred_interval(3.0, replicates) == pytest.approx((3 - 0.475, 3 + 0.475))
    assert recentred_interval(0.1, replicates, (0, 0.3)) == pytest.approx((0, 0.3))


def test_means_of_halves_spread_as_the_mean_does_over_new_samples() -> None:
    # Without replacement: s²/m (1 − m/n) = s²/n for m = n/2, exactly in expectation.
    values = noise(200, 1)[:, 0]
    halves = half_samples(np.arange(200), Shared(noise(200, 2), None), "test", count=4000)
    spread = np.var([values[half].mean() for half in halves], ddof=1)
    assert spread == pytest.approx(values.var(ddof=1) / 200, rel=4 * np.sqrt(2 / 4000))
    assert all(len(half) == len(set(half)) == 100 for half in halves)


def test_an_interval_from_halves_covers_as_often_as_it_says() -> None:
    shared = Shared(noise(100, 2), None)
    halves = half_samples(np.arange(100), shared, "test")
    draw = np.random.default_rng(0)
    covered = 0
    for _ in range(400):
        values = draw.normal(size=100)
        interval = interval_from_halves(values.mean(), [values[half].mean() for half in halves], (-9.0, 9.0))
        assert interval is not None
        covered += interval[0] <= 0 <= interval[1]
    assert pytest.approx(covered / 400, abs=4 * np.sqrt(0.95 * 0.05 / 400)) == 0.95
    assert interval_from_halves(0.5, []) is None


def test_the_interval_of_one_factors_accuracy_is_wilsons() -> None:
    from scipy.stats import binomtest

    for right, n in ((75, 100), (50, 50), (0, 20), (1, 1)):
        wilson = binomtest(right, n).proportion_ci(method="wilson")
        assert interval_of_accuracy(np.arange(n)[:, None] < right) == pytest.approx(tuple(wilson), abs=1e-12)


def test_factors_that_err_together_are_no_more_certain_than_one() -> None:
    one = np.random.default_rng(0).random((400, 1)) < 0.8
    assert interval_of_accuracy(np.repeat(one, 5, axis=1)) == pytest.approx(interval_of_accuracy(one))
    apart = np.random.default_rng(1).random((400, 5)) < 0.8
    low, high = interval_of_accuracy(apart)
    assert high - low == pytest.approx(2 * 1.96 * np.sqrt(0.8 * 0.2 / 400 / 5), rel=0.1)


def test_near_one_the_interval_of_many_factors_covers_from_above_too() -> None:
    """100 samples of five factors are worth 500 answers; pulled to one half as if 100, it would end below 0.99."""
    draw = np.random.default_rng(0)
    found = [interval_of_accuracy(draw.random((100, 5)) < 0.99) for _ in range(400)]
    covered = np.mean([low <= 0.99 <= high for low, high in found])
    assert covered == pytest.approx(0.95, abs=4 * np.sqrt(0.95 * 0.05 / 400))
