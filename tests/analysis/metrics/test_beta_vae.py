"""The β-VAE metric where it is known."""

from __future__ import annotations

import math

import numpy as np
import pytest

from analysis.metrics.known import grid, noise, rotated
from oracles import STANDARD_ERRORS, assert_mean_is
from polariscope.analysis.metrics.beta_vae import beta_vae, distances
from polariscope.analysis.metrics.support.batches import Groups
from polariscope.core.errors import InputError

FEW = {"n_train": 400, "n_test": 400, "batch_size": 32}
ERROR = STANDARD_ERRORS * math.sqrt(0.25 / 400)  # at most, of a share of 400 features


@pytest.fixture
def factors() -> np.ndarray:
    return grid(3, 4, 5, repeats=5)


def test_factors_as_codes_score_one_in_any_order_and_scale(factors: np.ndarray) -> None:
    codes = (factors * [1.0, -30.0, 0.001] + 5)[:, [2, 0, 1]]
    score = beta_vae(codes, factors, **FEW)
    assert score.value == 1
    assert score.interval == (1, 1)
    assert (score.matrix == 0).tolist() == (np.eye(3)[[2, 0, 1]] == 1).tolist()


def test_without_standardising_a_latent_of_small_scale_is_not_seen(factors: np.ndarray) -> None:
    codes = factors * [1.0, 1.0, 1e-6]
    assert beta_vae(codes[:, 1:], factors[:, 1:], **FEW).value == 1
    assert beta_vae(1e-6 * codes, factors, variant="raw", **FEW).value < 0.5


def test_duplicated_latents_and_latents_of_noise_cost_nothing(factors: np.ndarray) -> None:
    codes = np.hstack([factors, factors, noise(len(factors), 2)])
    assert beta_vae(codes, factors, **FEW).value == 1


@pytest.mark.parametrize("codes", [np.zeros((300, 2)), np.ones((300, 1))])
def test_constant_codes_score_chance(factors: np.ndarray, codes: np.ndarray) -> None:
    score = beta_vae(codes, factors, **FEW)
    assert score.value == pytest.approx(1 / 3, abs=ERROR)
    assert (score.matrix == 1).all()


def test_noise_scores_little_more_than_chance(factors: np.ndarray) -> None:
    score = beta_vae(noise(300, 3), factors, **FEW)
    assert 1 / 3 - ERROR < score.value < 0.5
    assert 1 / 3 - ERROR < score.chance < 0.5


def test_a_rotation_of_two_like_factors_by_45_degrees_scores_chance() -> None:
    """With a fixed, both latents move by b; with b fixed, by a: distances of the same distribution."""
    factors = grid(5, 5, repeats=20)
    assert beta_vae(rotated(factors.astype(float)), factors, **FEW).value == pytest.approx(1 / 2, abs=ERROR)


def test_a_single_latent_that_codes_two_factors_scores_one_all_the_same() -> None:
    """10a + b moves by a little when a is fixed and by a lot when b is: the known weakness of the metric."""
    factors = grid(4, 4, repeats=10)
    assert beta_vae(factors @ np.array([[10.0], [1.0]]), factors, **FEW).value == 1


def test_features_average_to_the_enumerated_distance() -> None:
    """Over every ordered pair of different rows that share a value, rows with a value of its own left out."""
    draw = np.random.default_rng(0)
    classes = np.array([0, 0, 0, 1, 1, 2])[:, None]
    z = draw.normal(size=(6, 2))
    rows = []
    for i in range(5):
        others = [j for j in range(6) if j != i and classes[j] == classes[i]]
        rows.append(np.mean([np.abs(z[i] - z[j]) for j in others], axis=0))
    found = distances(z, Groups(classes, ("a",)), np.zeros(3_000, dtype=int), 16, draw)
    assert_mean_is(found, np.mean(rows, axis=0))


def test_partial_grids_are_scored() -> None:
    factors = grid(6, 6, repeats=10)
    band = factors[np.abs(factors[:, 0] - factors[:, 1]) <= 2]
    score = beta_vae(band.astype(float), band, **FEW)
    assert score.value == 1
    assert "depend on each other" in " ".join(score.notes)


def test_the_same_seed_gives_the_same_score(factors: np.ndarray) -> None:
    codes = factors + 2 * noise(len(factors), 3)
    scores = [beta_vae(codes, factors, seed=seed, **FEW) for seed in (1, 1, 2)]
    assert scores[0].to_dict() == scores[1].to_dict()
    assert not np.array_equal(scores[0].matrix, scores[2].matrix)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"factors": np.zeros((300, 1), dtype=int)}, "has a single value in these 300 samples"),
        ({"factors": np.zeros((299, 1), dtype=int)}, "a row for each sample, got 300 and 299"),
        ({"codes": np.full((300, 2), np.inf)}, "codes must be finite"),
        ({"factors": np.arange(300)[:, None]}, "has 300 classes in 300 samples"),
        ({"factors": np.linspace(0, 1, 300)[:, None]}, "must hold integers"),
        ({"n_test": 0}, "n_test must be at least 1, got 0"),
    ],
)
def test_bad_input_is_refused_in_words(factors: np.ndarray, change: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        beta_vae(**{"codes": factors.astype(float), "factors": factors, **change})


def test_a_single_factor_which_would_be_right_every_time_is_refused() -> None:
    with pytest.raises(
        InputError, match="which factor was held fixed, and there is a single one: any codes would score 1"
    ):
        beta_vae(noise(200, 2), grid(4, repeats=50), n_train=100, n_test=100)
