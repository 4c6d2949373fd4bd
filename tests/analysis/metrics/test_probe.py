"""Probes of codes from which the answer is known."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from scipy.stats import binomtest
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV
from sklearn.model_selection import KFold

from analysis.metrics.known import grid, noise
from oracles import STANDARD_ERRORS
from polariscope.analysis.metrics.probe import STRENGTHS, probe
from polariscope.analysis.metrics.support.table import Table
from polariscope.core.errors import InputError
from polariscope.numerics.classifiers import best_strength, logistic_predictions, quiet_logistic


@pytest.fixture
def factors() -> np.ndarray:
    return np.random.default_rng(0).integers(3, size=(600, 2))


def one_hot(factors: np.ndarray) -> np.ndarray:
    return (factors[:, :, None] == np.arange(3)).reshape(len(factors), -1).astype(float)


@pytest.mark.parametrize("variant", ["logistic", "boosted"])
def test_factors_as_codes_are_read_perfectly(variant: str, factors: np.ndarray) -> None:
    score = probe(one_hot(factors), factors, variant=variant)
    assert score.value == 1
    assert score.interval == pytest.approx((200 / (200 + 1.959964**2), 1))  # Wilson's, of 200 right answers
    assert score.per_factor.tolist() == [1, 1]
    assert score.details["accuracy_by_size"][100] == 1
    assert score.details["sample_efficiency"] == 1
    assert list(score.details["accuracy_by_size"]) == [10, 100, 400]
    assert "Trained on 400 samples where 10000 were asked for" in score.notes[0]


@pytest.mark.parametrize("codes", [noise(600, 3), np.zeros((600, 2))])
def test_codes_that_know_nothing_are_read_at_chance(codes: np.ndarray, factors: np.ndarray) -> None:
    score = probe(codes, factors, sizes=(400,))
    error = STANDARD_ERRORS * math.sqrt(2 / 9 / 400)  # 200 test samples, two factors of three classes
    assert score.value == pytest.approx(1 / 3, abs=error)
    assert score.chance == pytest.approx(1 / 3, abs=error)
    assert score.details["uniform_guess"] == pytest.approx([1 / 3, 1 / 3])


def test_trees_read_what_a_line_cannot() -> None:
    """Exclusive or: a line that cuts off one corner is right in three of four, two splits are enough."""
    bits = np.random.default_rng(0).integers(2, size=(600, 2))
    factors = np.hstack([bits, bits[:, :1] ^ bits[:, 1:]])
    codes = (bits * 2.0 - 1) + 0.05 * noise(600, 2)
    straight, split = (probe(codes, factors, variant=name, sizes=(400,)) for name in ("logistic", "boosted"))
    assert straight.per_factor[:2].tolist() == [1, 1]
    assert straight.per_factor[2] < 3 / 4 + STANDARD_ERRORS * math.sqrt(3 / 16 / 200)
    assert split.per_factor.tolist() == [1, 1, 1]


def test_passive_latents_are_read_at_chance_and_active_ones_as_well_as_all(factors: np.ndarray) -> None:
    codes = np.hstack([one_hot(factors) + 0.1 * noise(600, 6), noise(600, 2, seed=1)])
    variance = np.tile([0.01] * 6 + [1.0, 1.0], (600, 1))
    found = probe(codes, factors, variance=variance, sizes=(400,)).details
    assert found["types"] == ["active"] * 6 + ["passive"] * 2
    accuracy = found["accuracy_by_types"]
    assert "mixed" not in accuracy
    assert accuracy["active"] == accuracy["active+mixed"] == 1
    assert accuracy["full"] == accuracy["active+passive"] > 0.99
    error = STANDARD_ERRORS * math.sqrt(2 / 9 / 400)
    assert accuracy["passive"] == accuracy["mixed+passive"] == pytest.approx(1 / 3, abs=error)


def test_given_types_are_used_instead_of_those_of_the_variance(factors: np.ndarray) -> None:
    types = ["mixed"] * 3 + ["passive"] * 3
    found = probe(one_hot(factors), factors, types=types, variance=np.ones((600, 6)), sizes=(400,)).details
    assert found["types"] == types
    assert found["accuracy_by_types_and_factor"]["mixed"][0] == 1
    assert found["accuracy_by_types_and_factor"]["mixed"][1] < 0.6
    assert found["accuracy_by_types_and_factor"]["passive"][1] == 1


def test_without_types_nothing_is_said_of_them(factors: np.ndarray) -> None:
    score = probe(one_hot(factors), factors, sizes=(400,))
    assert score.details["accuracy_by_types"] == {}
    assert "subsets of variable types are not compared" in " ".join(score.notes)


def test_more_training_samples_read_better(factors: np.ndarray) -> None:
    codes = one_hot(factors) + 0.7 * noise(600, 6)
    found = probe(codes, factors, sizes=(4, 40, 400)).details["accuracy_by_size"]
    assert found[4] < found[40] < found[400]


def test_the_strength_is_the_one_that_scikit_learn_chooses() -> None:
    draw = np.random.default_rng(0)
    labels = draw.integers(4, size=200)
    codes = np.eye(4)[labels] + 0.8 * draw.normal(size=(200, 4))
    with quiet_logistic():
        own = best_strength(codes, labels, STRENGTHS, 5)
        predicted = logistic_predictions(codes, labels, codes, (own,))[0]
    settings = {"Cs": list(STRENGTHS), "cv": KFold(5), "l1_ratios": (0,), "use_legacy_attributes": False}
    reference = LogisticRegressionCV(**settings, scoring="accuracy", max_iter=1000).fit(codes, labels)
    assert own == pytest.approx(reference.C_)
    assert (predicted == reference.predict(codes)).mean() > 0.99


def test_a_factor_of_many_classes_is_read_as_well_as_by_a_converged_regression() -> None:
    """Strengths that were chosen from unfinished fits read ten points fewer: 0.88, where 0.9876 can be read."""
    draw = np.random.default_rng(0)
    factors = np.stack([draw.integers(32, size=1500), draw.integers(6, size=1500)], axis=1)
    codes = np.hstack([factors + 0.2 * draw.normal(size=factors.shape), draw.normal(size=(1500, 1))])
    score = probe(codes, factors, sizes=(1000,))
    shared = Table(codes, factors)
    (train, test), x = shared.split(), shared.standardised
    best = LogisticRegression(C=1e4, solver="newton-cholesky").fit(x[train], factors[train, 0])
    reference = best.score(x[test], factors[test, 0])
    assert score.per_factor[0] == pytest.approx(reference, abs=2 * math.sqrt(0.02 * 0.98 / 500))
    assert score.per_factor[1] > 0.97


def test_another_scale_in_single_precision_changes_nothing() -> None:
    """Unfinished fits chose another strength for such codes: 0.94 and 0.68."""
    draw = np.random.default_rng(1)
    codes = np.stack([draw.integers(32, size=600), draw.integers(6, size=600)], axis=1)
    first, second = (probe(z, codes, sizes=(400,)) for z in (codes / 1.0, (codes * 0.1).astype(np.float32)))
    assert second.per_factor == pytest.approx(first.per_factor, abs=0.006)  # one test sample of 200


def test_the_interval_is_that_of_the_test_samples() -> None:
    """One factor, 1 000 test samples: the interval of a share."""
    factors = np.random.default_rng(0).integers(2, size=(3_000, 1))
    score = probe(factors + noise(3_000, 1), factors, sizes=(2_000,))
    wilson = binomtest(round(1000 * score.value), 1000).proportion_ci(method="wilson")
    assert score.interval == pytest.approx(tuple(wilson))


@pytest.mark.parametrize("variant", ["logistic", "boosted"])
def test_training_samples_of_one_class_are_answered_with_it(variant: str) -> None:
    factors = (np.arange(40) >= 38).astype(int)[:, None]
    score = probe(noise(40, 1), factors, variant=variant, sizes=(2, 20))
    assert score.details["accuracy_by_size"][2] >= 11 / 14


def test_measured_factors_are_told_by_bins_where_all_are_classes() -> None:
    values = np.random.default_rng(0).uniform(size=(900, 1))
    told = {"factor_kinds": ("continuous",), "variant": "boosted", "sizes": (600,)}
    score = probe(values, values, kinds="classes", **told)
    assert score.value > 0.8
    assert score.details["uniform_guess"].tolist() == [1 / 20]
    assert probe(values, values, **told).value > 0.99


@pytest.mark.parametrize("kind", ["continuous", "ordinal"])
@pytest.mark.parametrize("size", [0.0, 0.5, 1.0])
def test_a_number_is_read_up_to_the_noise_in_the_codes(kind: str, size: float) -> None:
    """Linear regression of w on w + ε, both independent, has R² = 1/(1 + Var ε/Var w)."""
    draw = np.random.default_rng(0)
    values = draw.integers(32, size=(6000, 1))
    codes = values / values.std() + size * draw.normal(size=(6000, 1))
    score = probe(codes, values, factor_kinds=(kind,), sizes=(4000,))
    # R² is a squared correlation, with standard deviation at most 2ρ(1 − ρ²)/√n ≤ 0.77/√2000.
    assert score.value == pytest.approx(1 / (1 + size**2), abs=STANDARD_ERRORS * 0.77 / math.sqrt(2000))
    assert score.chance == 0
    assert score.interval[0] <= score.value <= score.interval[1]  # type: ignore[index]
    assert "not accuracy, for 0" in " ".join(score.notes)


def test_the_interval_of_a_number_holds_its_expectation() -> None:
    """Of 60 draws with R² = ½, 95 % intervals miss it in 3 ± 1.7; 10 would be four standard deviations."""
    missed = 0
    for seed in range(60):
        draw = np.random.default_rng(seed)
        values = draw.normal(size=(900, 1))
        codes = values + draw.normal(size=(900, 1))
        low, high = probe(codes, values, factor_kinds=("continuous",), sizes=(600,)).interval
        missed += not low <= 0.5 <= high
    assert missed < 10


def test_an_angle_is_read_from_its_sine_and_cosine_and_not_from_its_number() -> None:
    values = np.random.default_rng(0).integers(12, size=(1800, 1))
    angles = 2 * np.pi * values / 12
    round_codes = np.hstack([np.cos(angles), np.sin(angles)])
    kinds = {"factor_kinds": ("cyclic",), "sizes": (1200,)}
    assert probe(round_codes, values, **kinds).value == pytest.approx(1, abs=1e-6)
    # The best line through sin θ against θ − π leaves cos θ unread: the direction is then ±90°, so 1 − cos(θ' − θ) is
    # 1 − |sin θ| where the sign of the sine is right: a mean gain of 2/π in the limit, and (2/π)(1 − O(1/n²)) here.
    assert 0.5 < probe(values.astype(float), values, **kinds).value < 0.7
    assert probe(noise(1800, 2), values, **kinds).value < 0.05
    trees = probe(values.astype(float), values, variant="boosted", **kinds)
    assert trees.value == pytest.approx(1, abs=0.01)


def test_kinds_are_mixed_and_classes_keep_their_accuracy(factors: np.ndarray) -> None:
    codes = one_hot(factors) + 0.5 * noise(600, 6)
    both = probe(codes, factors, factor_kinds=("categorical", "ordinal"))
    classes = probe(codes, factors)
    assert both.per_factor[0] == classes.per_factor[0]
    assert both.per_factor[1] != classes.per_factor[1]
    assert both.value == pytest.approx(both.per_factor.mean())
    assert both.details["uniform_guess"].tolist() == [1 / 3, 0]
    again = probe(codes, factors, factor_kinds=("categorical", "ordinal"), kinds="classes")
    assert dataclasses.replace(again, options={}).to_dict() == classes.to_dict()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"factors": np.zeros((600, 1), dtype=int)}, "has a single value in these 600 samples"),
        ({"factors": np.zeros((599, 1), dtype=int)}, "a row for each sample, got 600 and 599"),
        ({"codes": np.full((600, 6), np.nan)}, "codes must be finite"),
        ({"sizes": ()}, "sizes must be numbers of training samples"),
        ({"sizes": (0, 10)}, "sizes must be a list of integers, each at least 1, got"),
        ({"n_selection": 1}, "n_selection must be at least 2, got 1"),
        ({"types": ["active"]}, "types must name each of the 6 latents, got 1"),
        ({"types": ["activ"] * 6}, "no variable type named 'activ'.*Did you mean 'active'"),
        ({"variance": np.ones((600, 2))}, "must have the same shape"),
    ],
)
def test_bad_input_is_refused_in_words(factors: np.ndarray, change: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        probe(**{"codes": one_hot(factors), "factors": factors, **change})


def test_a_grid_of_few_samples_is_read() -> None:
    factors = grid(2, 2, repeats=3)
    assert 0 <= probe(factors.astype(float), factors).value <= 1
