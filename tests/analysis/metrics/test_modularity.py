"""Modularity on representations with known answers."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chi2

from analysis.metrics.known import grid, noise, rotated
from polariscope.analysis.code_table import Table
from polariscope.analysis.metrics.modularity import modularity
from polariscope.analysis.metrics.support.resampling import half_samples
from polariscope.core.errors import InputError
from polariscope.numerics.information import information
from polariscope.numerics.intervals import interval_from_halves, recentred_interval


def test_latents_that_know_one_factor_each_score_one_even_when_several_know_the_same() -> None:
    factors = grid(3, 4, repeats=2)
    codes = np.hstack([factors, -factors, factors**2]).astype(float)
    assert modularity(codes, factors).value == pytest.approx(1, abs=1e-12)


def test_a_latent_that_knows_two_of_three_factors_equally_scores_a_half() -> None:
    factors = grid(3, 3, 3, repeats=2)
    both = factors[:, [0]] * 3.0 + factors[:, [1]]
    assert modularity(both, factors).value == pytest.approx(0.5, abs=1e-12)
    assert modularity(both, factors[:, :2]).value == pytest.approx(0, abs=1e-12)


def test_a_rotation_by_45_degrees_scores_zero() -> None:
    factors = grid(5, 5, repeats=2)
    assert modularity(rotated(factors - 2.0), factors).value == pytest.approx(0, abs=1e-12)


def test_unequal_knowledge_follows_the_formula() -> None:
    # All of a factor with 4 values and one bit of another: I = log 4 and log 2, m = 1 − (log 2 / log 4)².
    factors = grid(4, 4, repeats=2)
    codes = (factors[:, 0] * 2.0 + factors[:, 1] // 2)[:, None]
    assert modularity(codes, factors).value == pytest.approx(1 - 0.25, abs=1e-12)


def related(n: int = 90) -> tuple[np.ndarray, np.ndarray]:
    draw = np.random.default_rng(0)
    factors = np.stack([np.arange(n) % 3, np.arange(n) % 2, draw.integers(4, size=n)], axis=1)
    mixed = factors @ np.array([[1.0, 0.3, 0.0, 0.0], [0.2, 0.1, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]])
    return mixed + draw.normal(size=(n, 4)) * [0.5, 0.5, 1.0, 0.0], factors


def per_latent(informations: np.ndarray) -> np.ndarray:
    squares = np.sort(informations**2, axis=1)
    most = squares[:, -1]
    known = most > 1e-24  # what is less is rounding
    result = np.zeros(len(squares))
    result[known] = 1 - squares[known, :-1].sum(axis=1) / ((squares.shape[1] - 1) * most[known])
    return result


def test_interval_and_chance_are_those_of_resampled_and_shuffled_samples() -> None:
    codes, factors = related()
    table, score = Table(codes, factors), modularity(codes, factors, n_bins=4)
    bins = table.discretised(4)
    np.testing.assert_allclose(score.per_latent, per_latent(information(bins, factors)[0]))
    assert score.details["factor"].tolist() == score.matrix.argmax(axis=1).tolist()  # type: ignore[union-attr]
    rows = [np.repeat(np.arange(90), times) for times in table.resamples]
    replicates = [per_latent(information(bins[each], factors[each])[0]).mean() for each in rows]
    assert score.interval == pytest.approx(recentred_interval(score.value, np.array(replicates), (0, 1)))
    shuffled = [per_latent(information(bins[order], factors)[0]).mean() for order in table.permutations]
    assert score.chance == pytest.approx(np.mean(shuffled))


def test_informative_latents_are_those_of_a_corrected_g_test_and_so_are_those_of_halves() -> None:
    codes, factors = related()
    table, score = Table(codes, factors), modularity(codes, factors, variant="informative", n_bins=4)
    bins, sizes = table.discretised(4), (3, 2, 4)
    freedom = np.array([[(len(np.unique(z)) - 1) * (size - 1) for size in sizes] for z in bins.T])
    assert freedom.tolist() == [[6, 3, 9]] * 3 + [[0, 0, 0]]

    def counted(informations: np.ndarray, shuffled: np.ndarray) -> np.ndarray:
        """2nI against its mean in shuffled rows times the quantile of χ² in units of its mean, shared by 12 pairs."""
        limits = shuffled[:3] * chi2.isf(0.05 / 12, freedom[:3]) / freedom[:3]
        return np.append((informations[:3] > limits).any(axis=1), False)

    def averaged(informations: np.ndarray, chosen: np.ndarray) -> float:
        return float(per_latent(informations)[chosen].mean()) if chosen.any() else 0.0

    shuffled = np.array([information(bins[order], factors)[0] for order in table.permutations])
    expected = counted(information(bins, factors)[0], shuffled.mean(axis=0))
    assert expected.tolist() == [True, True, False, False]
    assert score.details["counted"].tolist() == expected.tolist()
    assert score.value == pytest.approx(averaged(information(bins, factors)[0], expected))
    chances = [averaged(each, counted(each, shuffled.mean(axis=0))) for each in shuffled]
    assert score.chance == pytest.approx(np.mean(chances))
    halves = half_samples(np.arange(90), table, "modularity")
    mixed = bins[table.permutations[0]]
    expected_level = np.mean([information(mixed[half], factors[half])[0] for half in halves], axis=0)
    tables = [information(bins[half], factors[half])[0] for half in halves]
    values = [averaged(each, counted(each, expected_level)) for each in tables]
    assert len({round(value, 6) for value in values}) > 1
    assert score.interval == pytest.approx(interval_from_halves(score.value, values))


def test_constant_latents_count_as_zero_or_not_at_all() -> None:
    factors = grid(4, 4, repeats=10)
    codes = np.hstack([factors, np.zeros((160, 2))]).astype(float)
    assert modularity(codes, factors).value == pytest.approx(0.5)
    score = modularity(codes, factors, variant="informative")
    assert score.value == pytest.approx(1)
    assert score.details["counted"].tolist() == [True, True, False, False]
    assert modularity(np.zeros((16, 2)), grid(4, 4), variant="informative").value == 0


def test_noise_scores_what_the_numbers_of_classes_give() -> None:
    # Plug-in information of noise is (bins − 1)(K − 1)/2n on average; with few bins and many samples each of the
    # squares is near that: 1 − (1/10)² for factors of 2 and 11 classes if there were no spread.
    rng = np.random.default_rng(0)
    factors = np.stack([rng.integers(2, size=10_000), rng.integers(11, size=10_000)], axis=1)
    score = modularity(noise(10_000, 10), factors, n_bins=5)
    assert score.chance == pytest.approx(0.98, abs=0.02)
    assert score.value == pytest.approx(score.chance, abs=0.02)


def test_a_single_factor_is_refused() -> None:
    with pytest.raises(InputError, match="at least 2 factors are required, got 1"):
        modularity(noise(12, 2), np.arange(12)[:, None] % 3)


def test_the_chance_level_of_informative_latents_is_that_of_informative_latents() -> None:
    draw = np.random.default_rng(0)
    factors, codes = draw.integers(6, size=(800, 2)), draw.normal(size=(800, 1))
    # One in twenty of such codes has a latent that counts, by at most 1.
    informative, every = (
        modularity(codes, factors, variant=name).chance for name in ("informative", "locatello")
    )
    assert informative <= 0.2
    assert informative < every


def test_a_constant_latent_says_nothing_in_every_resample() -> None:
    # On a full grid each of three latents knows its factor alone, the fourth nothing: 3/4, whatever is resampled.
    factors = np.stack(np.meshgrid(range(3), range(4), range(5), indexing="ij"), axis=-1).reshape(-1, 3)
    codes = np.column_stack([np.repeat(factors, 20, axis=0), np.ones(20 * len(factors))]).astype(float)
    found = modularity(codes, np.repeat(factors, 20, axis=0))
    assert found.value == pytest.approx(0.75)
    assert found.interval == pytest.approx((0.75, 0.75), abs=0.005)


def test_noise_counts_as_informative_in_one_of_twenty_codes_and_not_for_each_factor() -> None:
    """Bonferroni: at most 5 % over all latents and factors, also where cells hold one sample and χ² is off."""
    counted = 0
    for seed in range(40):
        draw = np.random.default_rng(seed)
        sizes, n = ((4, 4, 4), 2000) if seed % 2 else ((3, 6, 40), 400)
        score = modularity(draw.normal(size=(n, 4)), draw.integers(sizes, size=(n, 3)), variant="informative")
        counted += score.details["counted"].any()
        assert score.value == 0 or score.details["counted"].any()
    assert counted <= 6  # of 40 by 5 %: more in one of a hundred repetitions


def test_the_interval_of_informative_latents_covers_though_they_are_chosen() -> None:
    """A latent that is barely informative is counted in some halves and not in others."""
    scores = []
    for seed in range(20):
        draw = np.random.default_rng(seed)
        factors = draw.integers(4, size=(600, 3))
        codes = factors[:, :2] * [0.25, 1.0] + 0.1 * factors[:, 1:] + draw.normal(size=(600, 2))
        codes = np.hstack([codes, draw.normal(size=(600, 2))])
        scores.append(modularity(codes, factors, variant="informative"))
    middle = np.median([score.value for score in scores])
    assert len({tuple(score.details["counted"]) for score in scores}) > 1
    covered = [score.interval[0] <= middle <= score.interval[1] for score in scores]
    assert sum(covered) >= 16  # of 20 by 95 %: fewer in one of four hundred repetitions
