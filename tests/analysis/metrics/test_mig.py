"""The mutual information gap against definitions, known representations and scikit-learn."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.metrics import mutual_info_score

from analysis.metrics.known import grid, noise, rotated
from polariscope.analysis.code_table import Table
from polariscope.analysis.metrics.mig import _too_narrow, mig
from polariscope.core.errors import InputError
from polariscope.core.seeds import generator
from polariscope.numerics.information import discretise, information
from polariscope.numerics.intervals import recentred_interval


@pytest.mark.parametrize("variant", ["locatello", "rebinned"])
def test_codes_that_are_the_factors_score_one_and_extra_constants_do_not_matter(variant: str) -> None:
    factors = grid(3, 4, 5, repeats=2)
    codes = np.hstack([2.0 - 3.0 * factors[:, ::-1], np.ones((len(factors), 2))])
    score = mig(codes, factors, variant=variant)
    assert score.value == pytest.approx(1, abs=1e-12)
    assert score.details["best_latent"].tolist() == [2, 1, 0]
    assert score.per_factor == pytest.approx(np.ones(3))


def test_constant_codes_score_zero() -> None:
    assert mig(np.zeros((12, 2)), grid(3, 4)).value == 0


def test_factors_that_are_coded_twice_have_no_gap() -> None:
    factors = grid(3, 4, repeats=2)
    assert mig(np.hstack([factors, factors]).astype(float), factors).value == pytest.approx(0, abs=1e-12)


def test_one_latent_that_codes_two_factors_scores_as_if_there_were_two_latents() -> None:
    factors = grid(3, 4, repeats=2)
    both = factors @ np.array([4.0, 1.0])  # 12 values in 20 bins: nothing is lost
    assert mig(np.stack([both, np.zeros(24)], axis=1), factors).value == pytest.approx(1, abs=1e-12)


def test_a_rotation_by_45_degrees_leaves_no_gap() -> None:
    # z1 = a + b and z2 = a − b of two equal grids have the same information about each factor, by symmetry.
    factors = grid(5, 5, repeats=2)
    assert mig(rotated(factors - 2.0), factors).value == pytest.approx(0, abs=1e-12)


def test_half_of_the_information_in_a_second_latent_halves_the_gap() -> None:
    # The first latent has all log 4 of the factor, the second its upper bit, log 2.
    factors = np.repeat(np.arange(4), 5)[:, None]
    codes = np.hstack([factors, factors // 2]).astype(float)
    assert mig(codes, factors).value == pytest.approx(0.5, abs=1e-12)


def test_noise_scores_its_chance_level() -> None:
    rng = np.random.default_rng(1)
    factors = rng.integers(6, size=(2000, 2))
    score = mig(noise(2000, 5), factors)
    # Gaps of plug-in informations, each about (19 · 5 ± √(2 · 95))/(2 · 2000) = 0.024 ± 0.003.
    assert score.chance is not None
    assert abs(score.value - score.chance) < 5 * 0.0035 / math.log(6)
    assert score.chance < 0.01


def test_the_table_is_that_of_scikit_learn() -> None:
    rng = np.random.default_rng(0)
    factors = rng.integers([3, 6, 40], size=(500, 3))
    codes = factors + rng.normal(size=(500, 3))
    shared = Table(codes, factors)
    expected = [[mutual_info_score(z, w) for w in factors.T] for z in shared.discretised().T]
    np.testing.assert_allclose(mig(codes, factors).matrix, expected, rtol=0, atol=1e-13)


def test_weights_are_repetitions_of_samples() -> None:
    rng = np.random.default_rng(0)
    bins, classes = rng.integers(4, size=(30, 2)), rng.integers(3, size=(30, 2))
    times = rng.integers(0, 4, size=(5, 30)).astype(np.uint8)
    tables, entropies = information(bins, classes, times)
    for weights, table, entropy in zip(times, tables, entropies, strict=True):
        rows = np.repeat(np.arange(30), weights)
        expected = information(bins[rows], classes[rows])
        np.testing.assert_allclose(table, expected[0], atol=1e-13)
        np.testing.assert_allclose(entropy, expected[1], atol=1e-13)


def test_the_interval_is_as_wide_as_the_spread_over_draws() -> None:
    rng = np.random.default_rng(0)

    def draw() -> tuple[np.ndarray, np.ndarray]:
        factors = rng.integers(4, size=(1000, 2))
        # Bounded noise: the range, and so the bins, are nearly the same in every draw, as in its resamples.
        return factors + 1.5 * rng.uniform(size=(1000, 2)), factors

    scores = [mig(*draw()) for _ in range(20)]
    widths = [score.interval[1] - score.interval[0] for score in scores if score.interval]
    spread = np.std([score.value for score in scores], ddof=1)
    # 20 draws tell their standard deviation to 16 %.
    assert np.mean(widths) / (2 * 1.96) == pytest.approx(spread, rel=0.5)


@pytest.mark.parametrize("variant", ["locatello", "rebinned"])
@pytest.mark.parametrize("n", [6, 60])
def test_interval_and_chance_are_those_of_resampled_and_shuffled_samples(variant: str, n: int) -> None:
    # Of six samples, some resamples have a single class: their gap is 0.
    rng = np.random.default_rng(0)
    factors = np.stack([np.arange(n) % 3, np.arange(n) % 2], axis=1)
    codes = factors @ rng.normal(size=(2, 3)) + 0.5 * rng.normal(size=(n, 3))
    table, score = Table(codes, factors), mig(codes, factors, variant=variant, n_bins=2)
    bins = table.discretised(2)
    classes = discretise(factors.astype(float), 2) if variant == "rebinned" else factors

    def by_definition(rows: np.ndarray, order: np.ndarray) -> list[float]:
        known, entropies = information(bins[order], classes[rows])
        best, second = np.sort(known, axis=0)[:-3:-1]
        pairs = zip(best - second, entropies, strict=True)
        return [gap / entropy if entropy > 0 else 0.0 for gap, entropy in pairs]

    everything = np.arange(n)
    assert score.per_factor == pytest.approx(by_definition(everything, everything))
    rows = [np.repeat(everything, times) for times in table.resamples]
    assert n == 60 or any(len(np.unique(classes[each, 1])) == 1 for each in rows)
    replicates = np.array([np.mean(by_definition(each, each)) for each in rows])
    assert score.interval == pytest.approx(recentred_interval(score.value, replicates, (0, 1)))
    chances = [by_definition(everything, order) for order in table.permutations]
    assert score.chance == pytest.approx(np.mean(chances))


def test_the_details_name_the_two_best_latents_and_the_bins() -> None:
    factors = np.repeat(np.arange(4), 5)[:, None]
    codes = np.hstack([np.zeros((20, 1)), factors // 2, factors]).astype(float)
    details = mig(codes, factors, n_bins=7).details
    assert (details["best_latent"].tolist(), details["second_latent"].tolist()) == ([2], [1])
    assert details["bins"] == 7
    assert mig(codes, factors, variant="chen", variance=np.ones((20, 3))).details["bins"] is None


def test_rebinned_factors_have_the_entropy_of_their_bins() -> None:
    factors = np.repeat(np.arange(40), 2)[:, None]
    codes = np.hstack([factors.astype(float), np.zeros((80, 1))])
    score = mig(codes, factors, variant="rebinned", n_bins=10)
    assert score.details["factor_entropies"] == pytest.approx([math.log(10)])
    assert score.value == pytest.approx(1)
    assert mig(codes, factors, n_bins=10).value == pytest.approx(math.log(10) / math.log(40))


def test_chens_information_of_separated_posteriors_is_the_entropy() -> None:
    # Every class has its own narrow peak: z says which, so that I = H(w) whatever the draw.
    factors = grid(3, 4, repeats=10)
    codes = np.hstack([10.0 * factors, np.zeros((120, 1))])
    score = mig(codes, factors, variant="chen", variance=np.full(codes.shape, 0.01))
    np.testing.assert_allclose(score.matrix[[0, 1], [0, 1]], np.log([3, 4]), atol=1e-9)
    assert score.value == pytest.approx(1, abs=1e-9)


def test_chens_information_of_two_overlapping_peaks_is_that_of_quadrature() -> None:
    # z = ±1 + noise of variance 1 for two equal classes; every posterior of a class is the same, so that the
    # mixtures are exact and only the draws are random.
    n = 4000
    factors = np.tile([0, 1], n // 2)[:, None]
    codes = np.hstack([2.0 * factors - 1, np.zeros((n, 1))])
    score = mig(codes, factors, variant="chen", variance=np.ones((n, 2)), n_samples=n)
    z = np.linspace(-12, 12, 20_001)
    peak = np.exp(-((z - 1) ** 2) / 2) / math.sqrt(2 * math.pi)
    ratio = np.log(2 / (1 + np.exp(-2 * z)))  # log p(z|1) / p(z)
    expected = np.trapezoid(peak * ratio, z)
    error = math.sqrt(np.trapezoid(peak * ratio**2, z) - expected**2) / math.sqrt(n)
    assert abs(score.matrix[0, 0] - expected) < 5 * error
    assert score.matrix[1, 0] == pytest.approx(0, abs=1e-12)


def test_chens_information_does_not_depend_on_scale_and_shift_and_its_mixtures_may_be_of_some_samples() -> (
    None
):
    rng = np.random.default_rng(0)
    factors = grid(2, 3, repeats=10)
    codes, variance = factors + 0.3 * rng.normal(size=(60, 2)), rng.uniform(0.2, 0.6, size=(60, 2))
    score = mig(codes, factors, variant="chen", variance=variance)
    assert not any("Mixtures" in note for note in score.notes)
    moved = mig(100 * codes + 3, factors, variant="chen", variance=1e4 * variance)
    np.testing.assert_allclose(moved.matrix, score.matrix, atol=1e-9)
    some = mig(codes, factors, variant="chen", variance=variance, n_samples=40)
    assert "The mixtures include 40 of the 60 samples." in some.notes
    assert not any(
        "Mixtures" in n for n in mig(codes, factors, variant="chen", variance=variance, n_samples=60).notes
    )


def test_chens_interval_and_chance_are_those_of_resampled_draws_and_shuffled_factors() -> None:
    # Two classes, each with one posterior for all: of z, log q(z|w) − log q(z) is known.
    factors = np.tile([0, 1], 50)[:, None]
    codes = np.hstack([3.0 * factors, 0.5 * factors, 0 * factors])
    score = mig(codes, factors, variant="chen", variance=np.ones((100, 3)))
    table = Table(codes, factors)
    z = codes + generator(0, "sampled").standard_normal((100, 3))

    def log_ratio(labels: np.ndarray) -> np.ndarray:
        each = np.exp(-0.5 * (z[:, :, None] - codes.T[None]) ** 2)  # draw, latent, posterior
        same = labels[:, None] == labels
        within = np.stack([(each[:, j] * same).sum(axis=1) / same.sum(axis=1) for j in range(3)], axis=1)
        return np.log(within) - np.log(each.mean(axis=2))

    ratios = log_ratio(factors[:, 0])
    np.testing.assert_allclose(score.matrix[:, 0], ratios.mean(axis=0), atol=1e-9)  # type: ignore[index]
    informations = np.sort(table.resamples / 100 @ ratios, axis=1)
    replicates = (informations[:, 2] - informations[:, 1]) / math.log(2)
    assert score.interval == pytest.approx(recentred_interval(score.value, replicates, (0, 1)))
    shuffled = np.sort(log_ratio(factors[table.permutations[0], 0]).mean(axis=0))
    assert score.chance == pytest.approx(np.clip((shuffled[2] - shuffled[1]) / math.log(2), 0, 1))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"variant": "chen"}, "this variant requires posterior variances"),
        ({"variant": "chen", "variance": np.zeros((12, 2))}, "variance must be positive"),
        ({"variant": "chen", "variance": np.eye(12)[:, :2]}, "variance must be positive"),
        (
            {"variant": "chen", "variance": np.ones((12, 2)), "n_samples": 1},
            "n_samples must be at least 2, got 1",
        ),
        ({"n_bins": 1}, "n_bins must lie between 2 and 1,000, got 1"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict, words: str) -> None:
    with pytest.raises(InputError, match=words):
        mig(grid(3, 4).astype(float), grid(3, 4), **options)


def test_a_single_latent_has_no_gap() -> None:
    with pytest.raises(InputError, match="at least 2 latents, got 1"):
        mig(np.arange(12.0)[:, None], grid(3, 4))


def test_chens_information_of_equal_means_does_not_depend_on_how_narrow_the_posteriors_are() -> None:
    """Samples of a class share a mean: its peak is n/K posteriors high, and I = H(w) down to any width."""
    factors = grid(3, 4, repeats=10)
    codes = np.hstack([0.1 + 10.0 * factors, np.zeros((120, 1))])
    for variance in (1e-2, 1e-20, 1e-40, 1e-300):
        score = mig(codes, factors, variant="chen", variance=np.full(codes.shape, variance))
        np.testing.assert_allclose(score.matrix[[0, 1], [0, 1]], np.log([3, 4]), atol=1e-9)
        assert score.value == pytest.approx(1, abs=1e-9)
        assert not any("too narrow" in note for note in score.notes)


def test_a_latent_that_seems_to_know_over_a_tenth_of_any_factor_in_shuffled_rows_is_named() -> None:
    (note,) = _too_narrow(np.array([[0.05, 0.3], [0.05, 0.1]]), 50)
    assert note.startswith("The posteriors of latent 0 are too narrow for 50 samples")
    assert "up to 30% of a factor's entropy" in note
    assert _too_narrow(np.array([[0.1, 0.02]]), 50) == ()


def test_posteriors_that_tell_samples_apart_seem_to_know_every_factor_and_a_note_says_so() -> None:
    """Narrower than the gaps between means, the mixture is each sample's own peak: I = log n − log n_class = H."""
    rng = np.random.default_rng(0)
    factors = grid(4, 4, repeats=20)
    codes = np.hstack([factors + 0.3 * rng.normal(size=factors.shape), rng.normal(size=(320, 1))])
    wide, narrow = (
        mig(codes, factors, variant="chen", variance=np.full(codes.shape, variance))
        for variance in (0.05, 1e-16)
    )
    assert wide.value > 0.5
    assert not any("too narrow" in note for note in wide.notes)
    np.testing.assert_allclose(narrow.matrix, math.log(4), atol=1e-9)
    assert narrow.value == pytest.approx(0, abs=1e-9)
    assert "The posteriors of latents 0, 1, 2 are too narrow for 320 samples" in narrow.notes[-1]
    assert "100% of a factor's entropy" in narrow.notes[-1]
