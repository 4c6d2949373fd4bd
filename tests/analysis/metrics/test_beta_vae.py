"""The β-VAE metric where it is known."""

from __future__ import annotations

import importlib
import math
from unittest import mock

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from analysis.metrics.known import grid, noise, rotated
from oracles import STANDARD_ERRORS, assert_mean_is
from polariscope.analysis.metrics.beta_vae import _correct, _relative, beta_vae, distances
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


def test_the_classifier_is_that_of_scikit_learn_on_standardised_features() -> None:
    draw = np.random.default_rng(0)
    factor = draw.integers(3, size=200)
    features = (draw.normal(size=(200, 3)) + np.eye(3)[factor]) * [1e-3, 1.0, 50.0] + [0.0, 3.0, 1.0]
    features = np.hstack([features, np.full((200, 1), 0.5)])  # and a latent whose distances never vary
    for standardise, model in (
        (True, make_pipeline(StandardScaler(), LogisticRegression(tol=1e-8))),
        (False, LogisticRegression(tol=1e-8, max_iter=10_000)),
    ):
        expected = model.fit(features[:150], factor[:150]).predict(features[150:]) == factor[150:]
        assert _correct(features, factor, 150, standardise).tolist() == expected.tolist()


def test_the_matrix_is_the_mean_distance_with_a_factor_fixed_beside_that_of_all() -> None:
    features = np.array([[0.1, 0.4, 0.0], [0.3, 0.4, 0.0], [0.5, 0.0, 0.0]])
    found = _relative(features, np.array([0, 0, 1]), 2)
    np.testing.assert_allclose(found, [[0.2 / 0.3, 0.5 / 0.3], [0.4 / (0.8 / 3), 0], [1, 1]])


def test_chance_and_halves_are_asked_about_fewer_features_never_more(factors: np.ndarray) -> None:
    module = importlib.import_module("polariscope.analysis.metrics.beta_vae")
    codes = factors.astype(float)
    for most, expected in (((3000, 3000), (60, 40)), ((30, 20), (30, 20))):
        with (
            mock.patch.multiple(module, N_HALF_TRAIN=most[0], N_HALF_TEST=most[1]),
            mock.patch.object(module, "_correct", wraps=_correct) as asked,
        ):
            beta_vae(codes, factors, n_train=60, n_test=40, batch_size=4)
        sizes = [(call.args[2], len(call.args[0]) - call.args[2]) for call in asked.call_args_list]
        assert sizes == [(60, 40)] + [expected] * 21  # all samples, shuffled ones, and 20 halves


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
        ({"factors": np.linspace(0, 1, 300)[:, None]}, "must contain integers"),
        ({"n_test": 0}, "n_test must be at least 1, got 0"),
    ],
)
def test_bad_input_is_refused_in_words(factors: np.ndarray, change: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        beta_vae(**{"codes": factors.astype(float), "factors": factors, **change})


def test_a_single_factor_which_would_be_right_every_time_is_refused() -> None:
    with pytest.raises(
        InputError, match="which factor was fixed, so with a single factor any codes would score 1"
    ):
        beta_vae(noise(200, 2), grid(4, repeats=50), n_train=100, n_test=100)
