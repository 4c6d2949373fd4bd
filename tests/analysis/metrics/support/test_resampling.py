"""Intervals of scores against what is known of means."""

from __future__ import annotations

import numpy as np
import pytest

from analysis.metrics.known import noise
from polariscope.analysis.code_table import Table
from polariscope.analysis.metrics.support.resampling import half_samples
from polariscope.numerics.intervals import interval_from_halves


def test_means_of_halves_spread_as_the_mean_does_over_new_samples() -> None:
    # Without replacement: s²/m (1 − m/n) = s²/n for m = n/2, exactly in expectation.
    values = noise(200, 1)[:, 0]
    halves = half_samples(np.arange(200), Table(noise(200, 2), None), "test", count=4000)
    spread = np.var([values[half].mean() for half in halves], ddof=1)
    assert spread == pytest.approx(values.var(ddof=1) / 200, rel=4 * np.sqrt(2 / 4000))
    assert all(len(half) == len(set(half)) == 100 for half in halves)
    assert [half.tolist() for half in half_samples(np.array([7]), Table(noise(2, 1), None), "test", 2)] == [
        [7]
    ] * 2


def test_an_interval_from_halves_covers_as_often_as_it_says() -> None:
    shared = Table(noise(100, 2), None)
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
