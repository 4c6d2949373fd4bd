"""The mean correlation coefficient against enumeration and known representations."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.stats import pearsonr, spearmanr

from analysis.metrics.known import grid, noise, rotated
from polariscope.analysis.code_table import Table, correlations
from polariscope.analysis.metrics.mcc import mcc
from polariscope.numerics.intervals import recentred_interval


@pytest.mark.parametrize(("variant", "coefficient"), [("pearson", pearsonr), ("spearman", spearmanr)])
def test_it_is_the_best_of_all_assignments(variant: str, coefficient: object) -> None:
    rng = np.random.default_rng(0)
    factors = rng.integers(5, size=(60, 3))
    codes = factors @ rng.normal(size=(3, 4)) + rng.normal(size=(60, 4))
    table = np.array([[abs(coefficient(z, w)[0]) for w in factors.T] for z in codes.T])  # type: ignore[operator]
    best = max(
        np.mean([table[j, k] for k, j in enumerate(chosen)]) for chosen in itertools.permutations(range(4), 3)
    )
    score = mcc(codes, factors, variant=variant)
    assert score.value == pytest.approx(best, abs=1e-12)
    np.testing.assert_allclose(score.matrix, table, atol=1e-12)


def test_codes_that_are_the_factors_in_another_order_score_one() -> None:
    factors = grid(3, 4, 5)
    score = mcc(1 - 2.0 * factors[:, [2, 0, 1]], factors)
    assert score.value == pytest.approx(1, abs=1e-12)
    assert score.details["matched_latent"].tolist() == [1, 2, 0]


def test_a_monotone_map_matters_to_pearson_only() -> None:
    factors = grid(5, 5)
    codes = np.exp(factors)
    assert mcc(codes, factors, variant="spearman").value == pytest.approx(1, abs=1e-12)
    assert mcc(codes, factors).value < 0.95


def test_a_factor_without_a_latent_counts_zero() -> None:
    factors = grid(3, 3)
    score = mcc(factors[:, :1].astype(float), factors)
    assert score.value == pytest.approx(0.5)
    assert score.details["matched_latent"].tolist() == [0, -1]


def test_a_latent_serves_one_factor_only() -> None:
    factors = grid(3, 3)
    codes = np.stack([factors.sum(axis=1), np.zeros(9)], axis=1)
    assert mcc(codes, factors).value == pytest.approx(np.sqrt(0.5) / 2)


def test_a_rotation_by_45_degrees_scores_the_cosine() -> None:
    factors = grid(5, 5)
    assert mcc(rotated(factors - 2.0), factors).value == pytest.approx(np.sqrt(0.5))


def test_constants_score_zero_and_noise_its_chance() -> None:
    factors = np.random.default_rng(1).integers(4, size=(4000, 2))
    assert mcc(np.ones((4000, 3)), factors).value == 0
    score = mcc(noise(4000, 3), factors)
    # Correlations of noise have standard deviation 1/√n.
    assert abs(score.value - score.chance) < 5 / np.sqrt(4000)  # type: ignore[operator]
    assert 0 < score.chance < 3 / np.sqrt(4000)  # type: ignore[operator]


def test_weighted_correlations_are_those_of_repeated_samples() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(40, 2)) + 100, rng.normal(size=(40, 3))
    times = rng.integers(0, 3, size=(4, 40)).astype(np.uint8)
    for weights, found in zip(times, correlations(x, y, times), strict=True):
        rows = np.repeat(np.arange(40), weights)
        expected = np.corrcoef(x[rows].T, y[rows].T)[:2, 2:]
        np.testing.assert_allclose(found, expected, atol=1e-12)


def test_interval_and_chance_are_those_of_resampled_and_shuffled_samples() -> None:
    rng = np.random.default_rng(0)
    factors = rng.integers(4, size=(30, 2))
    codes = factors @ rng.normal(size=(2, 3)) + rng.normal(size=(30, 3))
    table, score = Table(codes, factors), mcc(codes, factors)

    def best(x: np.ndarray, y: np.ndarray) -> float:
        r = np.abs(np.corrcoef(x.T, y.T)[:3, 3:])
        return max(r[i, 0] + r[j, 1] for i, j in itertools.permutations(range(3), 2)) / 2

    rows = [np.repeat(np.arange(30), times) for times in table.resamples]
    replicates = np.array([best(codes[each], factors[each]) for each in rows])
    assert score.interval == pytest.approx(recentred_interval(score.value, replicates, (0, 1)))
    chances = [best(codes[order], factors) for order in table.permutations]
    assert score.chance == pytest.approx(np.mean(chances))


def test_classes_without_order_are_pointed_out() -> None:
    factors = grid(2, 3)
    assert "factor shape" in mcc(noise(6, 2), factors, factor_names=("flip", "shape")).notes[-1]
    assert mcc(noise(6, 2), factors, factor_kinds=("categorical", "continuous")).notes == ()


def test_correlations_do_not_suffer_from_an_offset():
    """Values on a grid of powers of two are exact in floats, with the offset too."""
    rng = np.random.default_rng(0)
    x, y = (rng.integers(-8, 8, size=(50, 2)) / 8 for _ in range(2))
    once = np.ones((1, 50), dtype=np.uint64)
    shifted = correlations(x + 2.0**40, y - 2.0**40, once)
    np.testing.assert_allclose(shifted, correlations(x, y, once), atol=1e-12)
