"""Logistic regression against scikit-learn's, to convergence."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from analysis.metrics.known import noise
from polariscope.analysis.metrics.probe import STRENGTHS
from polariscope.numerics import classifiers as _predictors
from polariscope.numerics.classifiers import logistic_predictions, quiet_logistic, softmax_path


@pytest.fixture
def labels() -> np.ndarray:
    return np.random.default_rng(0).integers(4, size=200)


def test_the_weights_on_a_path_are_those_of_scikit_learn_for_each_strength(labels: np.ndarray) -> None:
    x = labels[:, None] * [1.0, -0.5, 0.0] + noise(200, 3)
    strengths = (0.01, 1.0, 1000.0)
    for strength, found in zip(strengths, softmax_path(x, labels, strengths), strict=True):
        model = LogisticRegression(C=strength, solver="newton-cholesky", tol=1e-10).fit(x, labels)
        assert found[:-1] == pytest.approx(
            model.coef_.T - model.coef_.T.mean(axis=1, keepdims=True), abs=1e-3
        )
        intercepts = model.intercept_ - model.intercept_.mean()
        assert found[-1] - found[-1].mean() == pytest.approx(intercepts, abs=1e-3)


@pytest.mark.parametrize("spread", [0.0, 0.01, 1.0])
def test_no_slope_is_left_where_classes_overlap_or_are_apart(spread: float, labels: np.ndarray) -> None:
    """Independently of how the minimum was found: the gradient of the mean loss, written out."""
    x = np.column_stack([labels + spread * noise(200, 1)[:, 0], np.zeros(200)])
    for strength, w in zip(STRENGTHS, softmax_path(x, labels, STRENGTHS), strict=True):
        scores = np.exp(x @ w[:-1] + w[-1])
        wrong = scores / scores.sum(axis=1, keepdims=True) - np.eye(4)[labels]
        assert np.abs(x.T @ wrong / 200 + w[:-1] / (strength * 200)).max() < 1e-5
        assert np.abs(wrong.mean(axis=0)).max() < 1e-5


def test_too_many_weights_for_newton_are_fitted_alike(labels: np.ndarray) -> None:
    x = labels[:, None] * [1.0, -0.5, 0.0] + noise(200, 3)
    with quiet_logistic():
        own = logistic_predictions(x, labels, x, STRENGTHS)
        with mock.patch.object(_predictors, "MOST_WEIGHTS", 0):
            other = logistic_predictions(x, labels, x, STRENGTHS)
    assert (own == other).mean() > 0.99


def test_classes_keep_their_names_when_some_are_missing() -> None:
    labels = np.repeat([7, 2, 5], 20)
    x = np.eye(8)[labels]
    assert logistic_predictions(x, labels, x).tolist() == [labels.tolist()]
    assert logistic_predictions(x[:20], labels[:20], x).tolist() == [[7] * 60]
