"""Interventional robustness: the definition, its extremes, what noise gets."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from analysis.metrics.known import grid, noise, rotated
from polariscope.analysis.metrics.irs import irs
from polariscope.core.errors import InputError


@pytest.mark.parametrize("variant", ["locatello", "matched"])
@pytest.mark.parametrize("quantile", [0.5, 0.99, 1.0])
def test_it_is_the_definition(variant: str, quantile: float) -> None:
    rng = np.random.default_rng(0)
    factors = rng.integers([3, 5], size=(200, 2))
    codes = factors @ rng.normal(size=(2, 3)) + rng.normal(size=(200, 3))
    reach = np.quantile(np.abs(codes - codes.mean(axis=0)), quantile if variant == "matched" else 1, axis=0)
    table = np.empty((3, 2))
    for k, w in enumerate(factors.T):
        groups = [codes[w == v] for v in np.unique(w)]
        moves = [np.quantile(np.abs(g - g.mean(axis=0)), quantile, axis=0) for g in groups]
        table[:, k] = 1 - np.mean(moves, axis=0) / reach
    table = np.maximum(table, 0)
    score = irs(codes, factors, variant=variant, quantile=quantile)
    np.testing.assert_allclose(score.matrix, table, atol=1e-12)
    assert score.value == pytest.approx(np.average(table.max(axis=1), weights=reach))


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
