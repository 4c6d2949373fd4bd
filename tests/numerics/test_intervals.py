"""Intervals against closed forms, SciPy, and how often they cover."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import norm, t

from polariscope.numerics.intervals import (
    LEVEL,
    NORMAL_QUANTILE,
    bootstrap_interval_of_mean,
    interval_from_halves,
    interval_of_accuracy,
    interval_of_mean,
    jackknife_interval,
    mean_with_interval,
    percentile_interval,
    recentred_interval,
    t_interval,
    wilson_interval,
)


def test_the_quantile_is_that_of_the_level() -> None:
    assert norm.ppf((1 + LEVEL) / 2) == NORMAL_QUANTILE


def test_the_interval_of_a_mean_is_the_same_for_one_column_and_for_many() -> None:
    values = np.random.default_rng(0).exponential(size=(50, 3))
    means, intervals = mean_with_interval(values, at_least=0.9)
    for column, mean, interval in zip(values.T, means, intervals, strict=True):
        half = 1.959963984540054 * column.std(ddof=1) / math.sqrt(50)
        assert tuple(interval) == pytest.approx((max(0.9, mean - half), mean + half), rel=1e-14)
        assert interval_of_mean(column, at_least=0.9) == pytest.approx(tuple(interval), rel=1e-14)
    assert interval_of_mean(np.array([1.0])) is None
    assert interval_of_mean(np.array([1.0, 3.0])) == pytest.approx((2 - NORMAL_QUANTILE, 2 + NORMAL_QUANTILE))


def test_an_infinite_value_has_an_infinite_mean_and_leaves_the_other_columns() -> None:
    means, intervals = mean_with_interval(np.array([[1.0, np.inf], [3.0, 2.0]]))
    assert means.tolist() == [2.0, np.inf]
    assert intervals[1].tolist() == [np.inf, np.inf]
    assert np.isfinite(intervals[0]).all()


def test_percentiles_hold_their_share_and_always_the_value() -> None:
    estimates = np.random.default_rng(0).permutation(np.linspace(0, 1, 1001))
    assert percentile_interval(0.5, estimates) == pytest.approx((0.025, 0.975))
    assert percentile_interval(0.5, estimates, level=0.5) == pytest.approx((0.25, 0.75))
    assert percentile_interval(2, estimates) == pytest.approx((0.025, 2.0))
    assert percentile_interval(-2.0, estimates) == pytest.approx((-2.0, 0.975))


def test_percentiles_that_are_estimates_themselves_survive_infinite_ones() -> None:
    estimates = np.array([*np.arange(17.0), np.inf, np.inf, np.inf])
    assert percentile_interval(5.0, estimates, interpolate=False) == (0.0, np.inf)
    assert percentile_interval(5.0, estimates, level=0.5, interpolate=False) == (4.0, 14.0)


def test_a_jackknife_of_a_mean_has_its_standard_error() -> None:
    # Leaving out one of n values moves the mean by (mean − x)/(n − 1): the variance is exactly s²/n.
    values = np.random.default_rng(0).normal(size=40)
    left_out = (values.sum() - values) / 39
    assert jackknife_interval(values.mean(), left_out) == pytest.approx(interval_of_mean(values), rel=1e-12)
    assert jackknife_interval(0.0, left_out, (0.0, 0.01)) == (0.0, 0.01)


def test_an_interval_from_halves_uses_their_spread_alone() -> None:
    # Two scores: t with one degree of freedom, tan(0.475 π), times |a − b|/√2.
    half = math.tan(0.475 * math.pi) * 0.01 / math.sqrt(2)
    found = interval_from_halves(0.5, [0.1, 0.11])
    assert found == pytest.approx((0.5 - half, 0.5 + half), rel=1e-9)
    assert interval_from_halves(0.99, [0.1, 0.11]) == pytest.approx((0.99 - half, 1.0), rel=1e-9)
    assert interval_from_halves(0.5, []) is None


def test_wilsons_interval_of_a_share_that_is_known_better_is_that_of_more_answers() -> None:
    assert wilson_interval(0.8, 0.8 * 0.2 / 400, 100.0) == pytest.approx(
        wilson_interval(0.8, 0.8 * 0.2 / 400, 400.0)
    )


def test_the_interval_keeps_the_spread_and_drops_the_bias_of_resampling() -> None:
    replicates = np.linspace(10, 11, 1001)
    assert recentred_interval(3.0, replicates) == pytest.approx((3 - 0.475, 3 + 0.475))
    assert recentred_interval(0.1, replicates, (0, 0.3)) == pytest.approx((0, 0.3))


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


@pytest.mark.parametrize("level", [0.5, 0.95])
def test_few_normal_values_have_students_interval(level: float) -> None:
    for n in (2, 3, 10):
        values = np.random.default_rng(n).normal(3, 2, size=n)
        error = values.std(ddof=1) / math.sqrt(n)
        assert t_interval(values, level) == pytest.approx(t.interval(level, n - 1, values.mean(), error))
    assert t_interval(np.array([1.0]), level) is None


def test_a_bootstrapped_mean_has_its_standard_error() -> None:
    values = np.random.default_rng(0).exponential(size=400)
    found = bootstrap_interval_of_mean(values, np.random.default_rng(1), n_bootstrap=20_000)
    # Resamples have the population variance; a percentile of 20,000 has a standard error of 1.9 % of the deviation,
    # and the skewness of the mean, 2/√400, moves both ends by (1.96² − 1)/6 of itself.
    half = NORMAL_QUANTILE * values.std() / 20
    tolerance = (5 * 0.019 + 0.1 * (NORMAL_QUANTILE**2 - 1) / 6) * values.std() / 20
    assert found == pytest.approx((values.mean() - half, values.mean() + half), abs=tolerance)


def test_every_value_is_drawn_by_the_bootstrap_and_one_alone_has_no_interval() -> None:
    """Of two values a quarter of the resamples are one of them twice."""
    for values in (np.array([0.0, 1.0]), np.array([1.0, 0.0])):
        assert bootstrap_interval_of_mean(values, np.random.default_rng(0)) == (0.0, 1.0)
    assert bootstrap_interval_of_mean(np.array([1.0]), np.random.default_rng(0)) is None
