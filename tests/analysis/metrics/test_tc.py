"""Total correlation as a metric: closed forms, chance, interval."""

from __future__ import annotations

import math

import numpy as np
import pytest

from analysis.metrics.known import noise
from polariscope.analysis.code_table import Table
from polariscope.analysis.metrics.tc import _replicates, tc
from polariscope.core.seeds import generator
from polariscope.numerics.dependence import total_correlation, total_correlation_of
from polariscope.numerics.intervals import recentred_interval


def correlated(n: int, rho: float, seed: int = 0) -> np.ndarray:
    z = noise(n, 2, seed)
    return np.stack([z[:, 0], rho * z[:, 0] + math.sqrt(1 - rho**2) * z[:, 1]], axis=1)


def test_it_is_that_of_the_regime_and_covers_the_closed_form() -> None:
    codes = correlated(5000, 0.8)
    score = tc(codes)
    assert score.value == pytest.approx(total_correlation(codes), abs=1e-12)
    low, high = score.interval  # type: ignore[misc]
    truth = -0.5 * math.log(1 - 0.8**2)
    # The standard error of −½ log(1 − r²) is about r/√n.
    assert abs(score.value - truth) < 5 * 0.8 / math.sqrt(5000)
    assert 0.8 < (high - low) / (2 * 1.96 * 0.8 / math.sqrt(5000)) < 1.2


def test_independent_codes_score_the_known_chance() -> None:
    score = tc(noise(2000, 6))
    assert score.chance == pytest.approx(6 * 5 / (4 * 2000), rel=0.5)
    assert abs(score.value - score.chance) < 0.005  # type: ignore[operator]


def test_noise_of_the_posterior_dilutes_the_correlation() -> None:
    codes = correlated(4000, 0.9)
    score = tc(codes, variant="noise-free", variance=np.full((4000, 2), 1.0))
    covariance = np.cov(codes.T) + np.eye(2)
    rho = covariance[0, 1] / math.sqrt(covariance[0, 0] * covariance[1, 1])
    assert score.value == pytest.approx(-0.5 * math.log(1 - rho**2), abs=1e-12)
    np.testing.assert_allclose(score.matrix, [[1, rho], [rho, 1]], atol=1e-12)


def test_a_copied_latent_makes_it_infinite_and_says_so() -> None:
    codes = noise(100, 2)
    score = tc(np.hstack([codes, codes]))
    assert score.value == math.inf
    assert score.interval == (math.inf, math.inf)
    assert "linear function of others" in score.notes[0]
    assert score.to_dict()["value"] == "Infinity"


def test_constants_add_nothing() -> None:
    codes = correlated(200, 0.5)
    assert tc(np.hstack([codes, np.ones((200, 1))])).value == pytest.approx(tc(codes).value, abs=1e-12)
    assert tc(np.ones((20, 3))).value == 0


def test_weighted_moments_are_those_of_repeated_samples() -> None:
    # Squares of the offset have an error of 1e-4, which must not be left in the moments.
    # What varies by rounding only is constant.
    rounded = np.where(np.arange(50) % 2, 0.1, np.nextafter(0.1, 1))[:, None]
    codes = np.hstack([noise(50, 3) + 1e6, rounded])
    variance = np.random.default_rng(1).uniform(0.5, 1.5, size=(50, 4))
    times = np.random.default_rng(0).multinomial(50, np.full(50, 1 / 50), size=3).astype(np.uint8)
    rows = [np.repeat(np.arange(50), row) for row in times]
    found = _replicates(codes, np.zeros_like(codes), times)
    np.testing.assert_allclose(found, [total_correlation(codes[row]) for row in rows], rtol=1e-7)
    diluted = [
        total_correlation_of(np.cov(codes[row].T) + np.diag(variance[row].mean(axis=0))) for row in rows
    ]
    np.testing.assert_allclose(_replicates(codes, variance, times), diluted, rtol=1e-7)


@pytest.mark.parametrize("variant", ["gaussian", "noise-free"])
def test_interval_and_chance_are_those_of_resampled_rows_and_of_columns_shuffled_apart(variant: str) -> None:
    codes, variance = correlated(60, 0.7) * [1.0, 5.0], np.full((60, 2), [0.5, 2.0])
    score = tc(codes, variant=variant, variance=variance)
    noises = np.diag([0.5, 2.0]) if variant == "noise-free" else np.zeros((2, 2))
    table = Table(codes)
    rows = [np.repeat(np.arange(60), times) for times in table.resamples]
    replicates = np.array([total_correlation_of(np.cov(codes[row].T) + noises) for row in rows])
    assert score.interval == pytest.approx(recentred_interval(score.value, replicates, (0, np.inf)))
    draw = generator(0, "metrics", "columns")
    shuffled = [np.cov(draw.permuted(codes, axis=0).T) + noises for _ in range(10)]
    assert score.chance == pytest.approx(np.mean([total_correlation_of(each) for each in shuffled]))
    assert score.details["bits"] == pytest.approx(score.value / math.log(2))


def test_the_interval_has_no_end_where_resamples_of_few_samples_are_singular() -> None:
    score = tc(noise(5, 3))
    assert math.isfinite(score.value)
    assert score.interval == (score.value, math.inf)
