"""The FactorVAE metric where it is known."""

from __future__ import annotations

import importlib
import math
from unittest import mock

import numpy as np
import pytest

from analysis.metrics.known import grid, noise, rotated
from oracles import STANDARD_ERRORS
from polariscope.analysis.metrics.factor_vae import _score, factor_vae, vote
from polariscope.analysis.metrics.support.batches import Groups
from polariscope.core.errors import InputError

FEW = {"n_train": 1_000, "n_test": 1_000, "batch_size": 32}
ERROR = STANDARD_ERRORS * math.sqrt(0.25 / 1_000)  # at most, of a share of 1 000 votes


@pytest.fixture
def factors() -> np.ndarray:
    return grid(3, 4, 5, repeats=5)


def test_factors_as_codes_score_one_in_any_order_and_scale(factors: np.ndarray) -> None:
    codes = (factors * [1.0, -30.0, 0.2] + 5)[:, [2, 0, 1]]
    score = factor_vae(codes, factors, **FEW)
    assert score.value == 1
    assert score.interval == (1, 1)
    assert np.array_equal(score.matrix, np.eye(3)[[2, 0, 1]])
    assert score.per_factor.tolist() == [1, 1, 1]


def test_duplicated_latents_and_latents_of_noise_cost_nothing(factors: np.ndarray) -> None:
    codes = np.hstack([factors, factors, noise(len(factors), 2)])
    assert factor_vae(codes, factors, **FEW).value == 1


def test_noise_scores_chance(factors: np.ndarray) -> None:
    score = factor_vae(noise(len(factors), 4), factors, **FEW)
    # A table of 300 codes has some structure by accident, of which the majority of each latent makes use.
    assert 1 / 3 - ERROR < score.value < 0.5
    assert 1 / 3 - ERROR < score.chance < 0.5


def test_a_rotation_of_two_factors_by_45_degrees_scores_chance() -> None:
    """Fixing either factor leaves half of the variance of either latent."""
    factors = grid(5, 5, repeats=20)
    codes = rotated(factors.astype(float)) + 0.01 * noise(500, 2)
    assert factor_vae(codes, factors, **FEW).value == pytest.approx(1 / 2, abs=2 * ERROR)


def test_a_latent_that_codes_two_factors_votes_for_one_of_them() -> None:
    """z = 10a + b stands still with a (a 100th of its variance is left) and hardly with b; noise moves either way."""
    factors = grid(4, 4, repeats=20)
    codes = np.hstack([factors @ np.array([[10.0], [1.0]]), noise(320, 1)])
    score = factor_vae(codes, factors, **FEW)
    assert score.per_factor[0] == 1
    assert score.matrix[0, 0] == 1


def test_the_vote_is_the_smallest_variance_of_the_batch() -> None:
    """A value with two rows: its batches of two hold a pair, or one row twice (variance 0 everywhere: the first)."""
    z = np.array([[0.0, 0.0], [2.0, 1.0], [9.0, 9.0]])
    groups = Groups(np.array([[0], [0], [1]]), ("a",))
    votes = vote(z, groups, np.zeros(4_000, dtype=int), 2, np.random.default_rng(0))
    assert votes.mean() == pytest.approx(1 / 2, abs=STANDARD_ERRORS * math.sqrt(0.25 / 4_000))


@pytest.mark.parametrize(
    ("n_train", "n_test", "right"),
    [
        (6, 0, [1, 1, 0, 1, 1, 0]),  # the first latent stands for factor 0, the second for 1
        (4, 2, [1, 0]),
        (1, 5, [1, 0, 0, 0, 0]),  # the second has not voted: for the first factor
    ],
)
def test_the_majority_of_the_first_votes_is_asked_about_the_others_or_about_itself(
    n_train: int, n_test: int, right: list[int]
) -> None:
    factor, winner = np.array([0, 0, 1, 1, 1, 1]), np.array([0, 0, 0, 1, 1, 0])
    draw = mock.create_autospec(np.random.Generator, instance=True)
    draw.integers.return_value = factor
    groups = Groups(grid(2, 2, repeats=2), ("a", "b"))
    module = importlib.import_module("polariscope.analysis.metrics.factor_vae")
    with mock.patch.object(module, "vote", return_value=winner):
        value, votes, per_factor = _score(np.zeros((8, 3)), groups, 2, n_train, n_test, draw)
    draw.integers.assert_called_once_with(2, size=6)
    counted = np.zeros((3, 2), dtype=int)
    np.add.at(counted, (winner[:n_train], factor[:n_train]), 1)
    assert votes.tolist() == counted.tolist()
    assert value == pytest.approx(np.mean(right))
    asked = factor[-len(right) :]
    expected = [np.mean(np.array(right)[asked == k]) if k in asked else 0 for k in (0, 1)]
    assert per_factor == pytest.approx(expected)


def test_votes_are_asked_for_as_often_as_said(factors: np.ndarray) -> None:
    module = importlib.import_module("polariscope.analysis.metrics.factor_vae")
    sizes = {"n_train": 30, "n_test": 20, "batch_size": 4}
    for variant, most, expected in (
        ("held-out", 2000, [(30, 20)] * 2 + [(30, 0)] * 20),
        ("in-sample", 10, [(30, 0)] * 2 + [(10, 0)] * 20),
    ):
        with (
            mock.patch.object(module, "N_HALF_VOTES", most),
            mock.patch.object(module, "_score", wraps=_score) as asked,
        ):
            factor_vae(factors.astype(float), factors, variant=variant, **sizes)
        assert [call.args[3:5] for call in asked.call_args_list] == expected


def test_a_factor_that_was_never_fixed_has_no_shares(factors: np.ndarray) -> None:
    score = factor_vae(factors.astype(float), factors, n_train=1, n_test=1)
    assert sorted(score.matrix.sum(axis=0)) == [0, 0, 1]


def test_a_latent_at_the_threshold_is_kept(factors: np.ndarray) -> None:
    codes = noise(len(factors), 2) * [1.0, 3.0]
    threshold = float(codes.std(axis=0, ddof=1)[0])
    assert factor_vae(codes, factors, threshold=threshold, **FEW).details["latents_used"] == [0, 1]


def test_the_vote_does_not_see_where_a_latent_is() -> None:
    """Variances within a value are 0.01 and 1, wherever the latents lie: the first wins every vote."""
    draw = np.random.default_rng(0)
    classes = np.repeat(np.arange(4), 50)[:, None]
    z = draw.normal(size=(200, 2)) * [0.1, 1.0] + [3.0, 0.0] * (1 + classes)
    assert not vote(z, Groups(classes, ("a",)), np.zeros(50, dtype=int), 16, draw).any()


def test_latents_that_hardly_vary_are_pruned_and_counted(factors: np.ndarray) -> None:
    """Without pruning, a latent of tiny copies of a factor votes like the factor itself."""
    codes = np.hstack([factors[:, 1:], 0.001 * factors[:, :1]])
    pruned = factor_vae(codes, factors, **FEW)
    assert pruned.details == {"latents_used": [0, 1], "latents_pruned": [2]}
    assert pruned.matrix[2].tolist() == [0, 0, 0]
    assert pruned.value < 0.8
    assert factor_vae(codes, factors, threshold=0.0, **FEW).value == 1


def test_codes_that_never_vary_score_zero_and_say_why(factors: np.ndarray) -> None:
    score = factor_vae(np.zeros((len(factors), 2)), factors, threshold=0.0)
    assert score.value == 0
    assert score.details["latents_used"] == []
    assert "there is no vote" in score.notes[-1]


def test_votes_in_sample_are_never_worse_than_the_most_frequent_factor(factors: np.ndarray) -> None:
    score = factor_vae(noise(len(factors), 3), factors, variant="in-sample", n_train=300)
    assert score.variant == "in-sample"
    assert score.value >= 1 / 3


def test_partial_grids_are_scored() -> None:
    """Only the diagonal band of the grid occurs; the latents of the two factors still move least with their own."""
    factors = grid(6, 6, repeats=30)
    band = factors[np.abs(factors[:, 0] - factors[:, 1]) <= 2]
    score = factor_vae(band.astype(float), band, **FEW)
    assert score.value == 1
    assert "depend on each other" in " ".join(score.notes)


def test_the_same_seed_gives_the_same_score(factors: np.ndarray) -> None:
    codes = factors + noise(len(factors), 3)
    scores = [factor_vae(codes, factors, seed=seed, **FEW) for seed in (1, 1, 2)]
    assert scores[0].to_dict() == scores[1].to_dict()
    assert scores[0].value != scores[2].value


def test_the_interval_covers_what_other_samples_give() -> None:
    """Over new tables of 500 samples, the interval around the score of one holds most of the others' scores."""

    def measured(seed: int) -> object:
        draw = np.random.default_rng(seed)
        factors = draw.integers(4, size=(500, 2))
        return factor_vae(factors + 1.2 * draw.normal(size=(500, 2)), factors, seed=seed, **FEW)

    scores = [measured(seed) for seed in range(8)]
    centre = np.mean([score.value for score in scores])
    covered = sum(score.interval[0] <= centre <= score.interval[1] for score in scores)
    assert covered >= 6  # of 8 at 95 %: fewer once in 170 times, for exact intervals
    assert all(score.interval[1] - score.interval[0] < 0.3 for score in scores)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"factors": np.zeros((300, 1), dtype=int)}, "has a single value in these 300 samples"),
        ({"factors": np.zeros((299, 1), dtype=int)}, "a row for each sample, got 300 and 299"),
        ({"codes": np.full((300, 2), np.nan)}, "codes must be finite"),
        ({"factors": np.arange(300)[:, None]}, "has 300 classes in 300 samples"),
        ({"batch_size": 1}, "batch_size must be at least 2, got 1"),
        ({"n_train": 0}, "n_train must be at least 1, got 0"),
        ({"threshold": -1.0}, "threshold must not be negative, got -"),
    ],
)
def test_bad_input_is_refused_in_words(factors: np.ndarray, change: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        factor_vae(**{"codes": factors.astype(float), "factors": factors, **change})


def test_a_single_factor_which_would_be_right_every_time_is_refused() -> None:
    with pytest.raises(
        InputError, match="which factor was fixed, so with a single factor any codes would score 1"
    ):
        factor_vae(noise(200, 2), grid(4, repeats=50), n_train=100, n_test=100)
