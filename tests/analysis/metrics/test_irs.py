"""Interventional robustness: the definition, its extremes, what noise gets."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from analysis.metrics.known import grid, noise, rotated
from polariscope.analysis.code_table import Table
from polariscope.analysis.metrics.irs import irs
from polariscope.core.errors import InputError
from polariscope.numerics.intervals import recentred_interval


def by_definition(
    codes: np.ndarray, factors: np.ndarray, variant: str, quantile: float
) -> tuple[float, np.ndarray, np.ndarray]:
    """The score, 1 − d/D for each latent and factor, and D; 0 where nothing moves."""
    reach = np.quantile(np.abs(codes - codes.mean(axis=0)), quantile if variant == "matched" else 1, axis=0)
    table = np.zeros((codes.shape[1], factors.shape[1]))
    for k, w in enumerate(factors.T):
        groups = [codes[w == v] for v in np.unique(w)]
        moves = np.mean([np.quantile(np.abs(g - g.mean(axis=0)), quantile, axis=0) for g in groups], axis=0)
        table[reach > 0, k] = np.maximum(0, 1 - moves[reach > 0] / reach[reach > 0])
    return (np.average(table.max(axis=1), weights=reach) if reach.any() else 0.0), table, reach


@pytest.mark.parametrize("variant", ["locatello", "matched"])
@pytest.mark.parametrize("quantile", [0.5, 0.99, 1.0])
@pytest.mark.parametrize("scale", [1.0, 0.01])
def test_it_is_the_definition(variant: str, quantile: float, scale: float) -> None:
    rng = np.random.default_rng(0)
    factors = rng.integers([3, 5], size=(60, 2))
    codes = scale * (factors @ rng.normal(size=(2, 3)) + rng.normal(size=(60, 3)))
    expected, matrix, reach = by_definition(codes, factors, variant, quantile)
    score = irs(codes, factors, variant=variant, quantile=quantile)
    np.testing.assert_allclose(score.matrix, matrix, atol=1e-12)
    assert score.value == pytest.approx(expected)
    np.testing.assert_allclose(score.per_latent, matrix.max(axis=1), atol=1e-12)
    assert score.details["factor"].tolist() == matrix.argmax(axis=1).tolist()
    np.testing.assert_allclose(score.details["weights"], reach / reach.sum())


@pytest.mark.parametrize("n", [4, 40])
def test_interval_and_chance_are_those_of_resampled_and_shuffled_samples(n: int) -> None:
    # Of four samples with two codes, one in eight resamples does not move at all.
    factors = grid(2, 2, repeats=n // 4)
    codes = 0.25 * factors[:, :1] if n == 4 else 0.25 * factors[:, :1] + 0.1 * noise(n, 2)
    table = Table(codes, factors)
    score = irs(codes, factors)
    rows = [np.repeat(np.arange(n), times) for times in table.resamples[:50]]
    assert n > 4 or any(np.ptp(codes[each]) == 0 for each in rows)
    replicates = [by_definition(codes[each], factors[each], "locatello", 0.99)[0] for each in rows]
    assert score.interval == pytest.approx(recentred_interval(score.value, np.array(replicates), (0, 1)))
    shuffled = [by_definition(codes[order], factors, "locatello", 0.99)[0] for order in table.permutations]
    assert score.chance == pytest.approx(np.mean(shuffled))


def test_functions_of_one_factor_score_one_and_constants_do_not_count() -> None:
    factors = grid(3, 4, repeats=2)
    codes = np.hstack([factors, factors**2, np.ones((24, 1))]).astype(float)
    score = irs(codes, factors)
    assert score.value == pytest.approx(1, abs=1e-12)
    assert score.per_latent.tolist() == pytest.approx([1, 1, 1, 1, 0])  # type: ignore[union-attr]


def test_a_latent_that_codes_two_factors_moves_half_as_far_when_one_is_held() -> None:
    # a + b with a, b in {−1, 1} reaches 2; with a held it moves by 1.
    factors = grid(2, 2, repeats=5)
    codes = (2.0 * factors - 1).sum(axis=1, keepdims=True)
    assert irs(codes, factors).value == pytest.approx(0.5)
    assert irs(rotated(2.0 * factors - 1), factors).value == pytest.approx(0.5)


def test_noise_scores_by_quantile_and_maximum() -> None:
    codes = noise(8000, 3)
    factors = np.random.default_rng(1).integers(2, size=(8000, 2))
    reach = np.abs(codes - codes.mean(axis=0)).max(axis=0)
    score = irs(codes, factors)
    # Within a class the 0.99 quantile of |z| is 2.576; its error is √(0.01 · 0.99 / 4000) / density ≈ 0.05.
    assert score.value == pytest.approx(np.average(1 - norm.ppf(0.995) / reach, weights=reach), abs=0.05)
    assert score.chance == pytest.approx(score.value, abs=0.05)
    assert irs(codes, factors, variant="matched").value < 0.05


def test_constants_and_impossible_quantiles_are_refused() -> None:
    with pytest.raises(InputError, match="all codes are constant"):
        irs(np.ones((12, 2)), grid(3, 4))
    with pytest.raises(InputError, match="quantile must be above 0 and at most 1, got 0"):
        irs(noise(12, 2), grid(3, 4), quantile=0.0)
