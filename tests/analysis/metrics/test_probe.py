"""Probes of codes from which the answer is known."""

from __future__ import annotations

import dataclasses
import math
from unittest import mock

import numpy as np
import pytest
from scipy.stats import binomtest
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV, Ridge
from sklearn.model_selection import KFold

from analysis.metrics.known import grid, noise
from oracles import STANDARD_ERRORS
from polariscope.analysis.code_table import Table
from polariscope.analysis.metrics.probe import STRENGTHS, _gains, _interval, probe
from polariscope.analysis.metrics.support import probing
from polariscope.analysis.metrics.support.probing import make_target
from polariscope.core.errors import InputError
from polariscope.numerics.classifiers import (
    best_strength,
    boosted_trees,
    logistic_predictions,
    quiet_logistic,
)
from polariscope.numerics.intervals import interval_of_accuracy, wilson_interval


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
    assert "Predictors were trained on 400 samples, two thirds of all, instead of 10000" in score.notes[0]


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


def test_the_strength_is_chosen_from_50_samples_on_and_on_no_more_than_asked_for() -> None:
    np.testing.assert_allclose(STRENGTHS, 10.0 ** np.linspace(-4, 4, 10))
    factors = np.random.default_rng(0).integers(2, size=(150, 1))
    codes = factors + noise(150, 2)
    for options, expected in (
        ({"sizes": (49, 50, 100)}, {50, 100}),
        ({"sizes": (100,), "n_selection": 60}, {60}),
        ({"sizes": (49,)}, set()),
        ({"sizes": (100,), "variant": "boosted"}, set()),
    ):
        with mock.patch.object(probing, "best_strength", wraps=best_strength) as chosen:
            probe(codes, factors, **options)
        assert {len(call.args[0]) for call in chosen.call_args_list} == expected


def test_the_efficiency_is_the_ratio_of_100_samples_to_the_most(factors: np.ndarray) -> None:
    codes = one_hot(factors) + 0.7 * noise(600, 6)
    found = probe(codes, factors, sizes=(10, 100, 400)).details
    by_size = found["accuracy_by_size"]
    assert 0.5 < found["sample_efficiency"] == by_size[100] / by_size[400] < 1
    assert probe(codes, factors, sizes=(10, 200)).details["sample_efficiency"] is None
    unread = probe(np.zeros((600, 1)), factors, factor_kinds=["ordinal"] * 2, sizes=(100,))
    assert (unread.value, unread.details["sample_efficiency"]) == (0, None)


def test_fewer_samples_than_asked_for_are_said_and_as_many_are_not(factors: np.ndarray) -> None:
    for size, said in ((400, False), (401, True)):
        notes = probe(one_hot(factors), factors, sizes=(10, size)).notes
        assert any("Predictors were trained on 400 samples" in note for note in notes) == said


def test_gains_are_in_units_of_the_spread_and_0_where_a_constant_does_as_well() -> None:
    gains = np.array([[0.5, -3.0, 0.0, 1.0], [0.7, 1.0, 0.0, -1.0]])
    spreads = np.array([[0.5, 2.0, 0.0, 1.0], [1.0, 2.0, 0.0, 1.0]])
    expected = [[0.5 / 0.75, 0, 0, 0], [0.7 / 0.75, 0, 0, 0]]
    np.testing.assert_allclose(_gains(gains, spreads), expected)


def test_the_interval_is_wilsons_with_the_variance_of_a_ratio() -> None:
    draw = np.random.default_rng(0)
    values = np.stack([draw.integers(3, size=40), draw.integers(9, size=40)], axis=1)
    table = Table(noise(40, 1), values, factor_kinds=["categorical", "ordinal"])
    targets = [make_target(table, k, False) for k in (0, 1)]
    right = (draw.random((40, 2)) < 0.7).astype(float)
    assert _interval(right, np.ones((40, 2)), targets[:1] * 2) == interval_of_accuracy(right > 0)
    spreads = np.stack([np.ones(40), draw.uniform(0.1, 0.5, size=40), np.zeros(40)], axis=1)
    best = np.stack([right[:, 0], 0.4 + 0.3 * draw.normal(size=40), np.zeros(40)], axis=1)
    # Of a ratio of means r = g/s, the influence of a sample is (gᵢ − r sᵢ)/s; best is gᵢ/s.
    influence = [
        best[:, k] - best[:, k].mean() * (spreads[:, k] / spreads[:, k].mean() if k < 2 else 1)
        for k in range(3)
    ]
    variance = (np.mean(influence, axis=0) ** 2).mean() / 40
    expected = wilson_interval(float(best.mean()), float(variance), 40.0)
    assert _interval(best, spreads, [*targets, targets[1]]) == pytest.approx(expected)


def test_the_constant_guess_is_the_most_frequent_class_of_the_training_samples() -> None:
    table = Table(noise(7, 1), np.array([0, 1, 1, 1, 1, 1, 0])[:, None])
    assert make_target(table, 0, True).constant_guess(np.arange(4), np.arange(4, 7)) == pytest.approx(2 / 3)


@pytest.mark.parametrize("strength", [0.1, None])
def test_targets_gain_what_their_error_is_below_that_of_the_best_constant(strength: float | None) -> None:
    draw = np.random.default_rng(0)
    values = np.stack([draw.integers([3, 5, 7], size=(60, 3))[:, k] for k in range(3)], axis=1)
    codes = values + draw.normal(size=(60, 3))
    table = Table(codes, values, factor_kinds=["categorical", "ordinal", "cyclic"])
    train, test = np.arange(40), np.arange(40, 60)
    classes, number, angle = (make_target(table, k, False) for k in range(3))
    assert isinstance(make_target(table, 2, True), type(classes))
    assert [target.uniform_guess for target in (classes, number, angle)] == [1 / 3, 0, 0]
    assert [target.is_classes for target in (classes, number, angle)] == [True, False, False]

    def numbers(columns: np.ndarray) -> np.ndarray:
        if strength is None:
            found = [boosted_trees(codes[train], w[train], codes[test], n_classes=None)[1] for w in columns.T]
            return np.stack(found, axis=1)
        return (
            Ridge(alpha=1 / strength).fit(codes[train], columns[train]).predict(codes[test]).reshape(20, -1)
        )

    with quiet_logistic():
        found = [target.gain(codes, train, test, strength) for target in (classes, number, angle)]
        if strength is None:
            told = boosted_trees(codes[train], values[train, 0], codes[test], n_classes=3)[1]
        else:
            told = logistic_predictions(codes[train], values[train, 0], codes[test], (strength,))[0]
    np.testing.assert_array_equal(found[0], told == values[test, 0])
    np.testing.assert_array_equal(classes.spread(test), np.ones(20))
    most = np.bincount(values[train, 0]).argmax()
    guesses = [target.constant_guess(train, test) for target in (classes, number, angle)]
    assert guesses == [(values[test, 0] == most).mean(), 0, 0]

    w = values[:, 1:2].astype(float)
    spread = (w[test].mean() - w[test, 0]) ** 2
    np.testing.assert_allclose(number.spread(test), spread)
    np.testing.assert_allclose(found[1], spread - (numbers(w)[:, 0] - w[test, 0]) ** 2, atol=1e-8)

    points = np.exp(2j * np.pi * values[:, 2] / 7)
    middle = points[test].mean() / abs(points[test].mean())
    guess = numbers(np.stack([points.real, points.imag], axis=1)) @ [1, 1j]
    spread = np.abs(points[test] - middle) ** 2
    np.testing.assert_allclose(angle.spread(test), spread, atol=1e-8)
    np.testing.assert_allclose(
        found[2], spread - np.abs(points[test] - guess / np.abs(guess)) ** 2, atol=1e-7
    )


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
        ({"sizes": ()}, "sizes must contain at least one number of training samples"),
        ({"sizes": (0, 10)}, "sizes must be a list of integers, each at least 1, got"),
        ({"n_selection": 1}, "n_selection must be at least 2, got 1"),
        ({"types": ["active"]}, "types must have one entry for each of the 6 latents, got 1"),
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
