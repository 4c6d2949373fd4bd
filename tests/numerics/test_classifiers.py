"""Predictors against each other and for missing classes."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pytest

from analysis.metrics.known import noise
from polariscope.analysis.metrics.probe import STRENGTHS
from polariscope.numerics import classifiers as _predictors
from polariscope.numerics.classifiers import (
    best_ridge_strength,
    best_strength,
    boosted_trees,
    logistic_predictions,
    quiet_logistic,
    ridge_predictions,
)


@pytest.fixture
def labels() -> np.ndarray:
    return np.random.default_rng(0).integers(4, size=200)


def test_too_many_weights_for_newton_are_fitted_alike(labels: np.ndarray) -> None:
    x = labels[:, None] * [1.0, -0.5, 0.0] + noise(200, 3)
    with quiet_logistic():
        own = logistic_predictions(x, labels, x, STRENGTHS)
        with mock.patch.object(_predictors, "MAX_WEIGHTS", 0):
            other = logistic_predictions(x, labels, x, STRENGTHS)
    assert (own == other).mean() > 0.99


def test_classes_keep_their_names_when_some_are_missing() -> None:
    labels = np.repeat([7, 2, 5], 20)
    x = np.eye(8)[labels]
    assert logistic_predictions(x, labels, x).tolist() == [labels.tolist()]
    for max_weights in (_predictors.MAX_WEIGHTS, 0):
        with mock.patch.object(_predictors, "MAX_WEIGHTS", max_weights):
            assert logistic_predictions(x[:20], labels[:20], x).tolist() == [[7] * 60]
    assert logistic_predictions(x[:1], labels[:1], x, (1.0, 10.0)).tolist() == [[7] * 60] * 2


def test_ridge_regression_is_that_of_scikit_learn_and_chooses_its_strength() -> None:
    from sklearn.linear_model import Ridge, RidgeCV
    from sklearn.model_selection import KFold

    draw = np.random.default_rng(0)
    x = 3 + draw.normal(size=(80, 4)) * [1, 1, 1, 0]
    y = x @ draw.normal(size=(4, 2)) + draw.normal(size=(80, 2))
    own = ridge_predictions(x[:60], y[:60], x[60:], STRENGTHS)
    for strength, predicted in zip(STRENGTHS, own, strict=True):
        expected = Ridge(alpha=1 / strength).fit(x[:60], y[:60]).predict(x[60:])
        np.testing.assert_allclose(predicted, expected, atol=1e-8)
    settings = {"alphas": [1 / strength for strength in STRENGTHS], "cv": KFold(5)}
    reference = RidgeCV(**settings, scoring="neg_mean_squared_error").fit(x, y)
    assert best_ridge_strength(x, y, STRENGTHS, 5) == pytest.approx(1 / reference.alpha_)


def test_ridge_regression_is_that_of_scikit_learn_for_features_that_spread_little() -> None:
    from sklearn.linear_model import Ridge

    draw = np.random.default_rng(1)
    x, y = 0.01 * draw.normal(size=(30, 2)), draw.normal(size=(30, 1)) + 5
    for strength, predicted in zip(STRENGTHS, ridge_predictions(x, y, x, STRENGTHS), strict=True):
        np.testing.assert_allclose(predicted, Ridge(alpha=1 / strength).fit(x, y).predict(x).reshape(-1, 1))


def test_the_best_strength_has_most_right_over_contiguous_folds_and_of_equals_the_weakest() -> None:
    draw = np.random.default_rng(0)
    labels = draw.integers(2, size=24)
    x = np.column_stack([labels + draw.normal(size=24), draw.normal(size=(24, 6))])
    strengths = (1e-4, 0.1, 1e3)
    for n_folds in (3, 100):  # no more folds than samples
        right = [0, 0, 0]
        for fold in np.array_split(np.arange(24), min(n_folds, 24)):
            rest = [row for row in range(24) if row not in fold]
            for place, predicted in enumerate(
                logistic_predictions(x[rest], labels[rest], x[fold], strengths)
            ):
                right[place] += int((predicted == labels[fold]).sum())
        assert right[0] > max(right[1:])
        for order in (strengths, tuple(reversed(strengths))):
            with mock.patch.object(_predictors, "logistic_predictions", wraps=logistic_predictions) as fits:
                assert best_strength(x, labels, order, n_folds) == strengths[0]
            assert fits.call_count == min(n_folds, 24)
    apart = np.repeat([-1.0, 1.0], 12)[draw.permutation(24), None]
    assert best_strength(apart, (apart[:, 0] > 0).astype(int), (1.0, 10.0), 3) == 1.0


def test_the_best_ridge_strength_has_the_least_error_over_contiguous_folds_and_of_equals_the_weakest() -> (
    None
):
    draw = np.random.default_rng(0)
    x, y = draw.normal(size=(12, 3)), draw.normal(size=(12, 2))
    strengths = (10.0, 1e-3, 0.1)
    for n_folds in (3, 100):  # no more folds than samples
        errors = [0.0, 0.0, 0.0]
        for fold in np.array_split(np.arange(12), min(n_folds, 12)):
            rest = [row for row in range(12) if row not in fold]
            for place, predicted in enumerate(ridge_predictions(x[rest], y[rest], x[fold], strengths)):
                errors[place] += float(((predicted - y[fold]) ** 2).sum())
        assert errors[1] < min(errors[0], errors[2])  # nothing is to be learnt
        with mock.patch.object(_predictors, "ridge_predictions", wraps=ridge_predictions) as fits:
            assert best_ridge_strength(x, y, strengths, n_folds) == strengths[1]
        assert fits.call_count == min(n_folds, 12)
    assert best_ridge_strength(np.zeros((12, 1)), y, (1.0, 10.0), 3) == 1.0


def test_of_two_classes_that_no_feature_tells_apart_trees_answer_the_first() -> None:
    x, labels = np.array([[0.0], [1.0], [0.0], [1.0]]), np.array([0, 0, 1, 1])
    importance, predicted = boosted_trees(x, labels, x, n_classes=2, n_trees=3)
    assert importance.tolist() == [0]
    assert predicted.tolist() == [0] * 4


@pytest.mark.parametrize("n_classes", [2, 3, None])
def test_trees_read_classes_and_numbers_off_the_feature_that_has_them(n_classes: int | None) -> None:
    known = np.random.default_rng(0).integers(n_classes or 5, size=300)
    x = np.column_stack([np.full(300, 7.0), known])
    target = known if n_classes else 0.5 * known - 1
    importance, predicted = boosted_trees(x[:200], target[:200], x[200:], n_classes=n_classes, n_trees=60)
    np.testing.assert_allclose(importance, [0, 1])
    # Each tree takes a tenth of what is left, at most 2: 2 · 0.9⁶⁰ = 0.004; classes are exact.
    np.testing.assert_allclose(predicted, target[200:], atol=0 if n_classes else 0.01)


@pytest.mark.parametrize("n_classes", [2, 3, None])
def test_trees_without_a_feature_answer_what_is_most_frequent_or_the_mean(n_classes: int | None) -> None:
    target = np.array([0, 1, 1, 0, 1]) if n_classes else np.array([0.0, 1.0, 5.0, 2.0, 2.0])
    importance, predicted = boosted_trees(np.ones((5, 2)), target, np.ones((4, 2)), n_classes=n_classes)
    np.testing.assert_array_equal(importance, [0, 0])
    np.testing.assert_array_equal(predicted, [1 if n_classes else 2] * 4)


def test_importances_sum_to_1_for_a_target_that_varies_little() -> None:
    # Gains of all trees together are below 40 · 0.05² / (1 − 0.9²) = 0.53.
    x = np.tile([0.0, 1.0], 20)[:, None]
    importance, predicted = boosted_trees(x, 0.1 * x[:, 0], x[:2], n_classes=None)
    np.testing.assert_allclose(importance, [1])
    np.testing.assert_allclose(predicted, [0, 0.1], atol=0.01)


def test_trees_of_a_target_that_never_varies_find_no_feature_important() -> None:
    x = np.random.default_rng(0).normal(size=(50, 2))
    importance, predicted = boosted_trees(x, np.full(50, 2.0), x[:3], n_classes=None, n_trees=5)
    np.testing.assert_array_equal(importance, [0, 0])
    np.testing.assert_array_equal(predicted, [2, 2, 2])
