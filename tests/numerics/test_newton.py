"""Newton's method: its minimum is stationary, and survives separable classes; scikit-learn finds the same."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import check_grad, minimize
from sklearn.linear_model import LogisticRegression

from analysis.metrics.known import noise
from polariscope.analysis.metrics.probe import STRENGTHS
from polariscope.numerics.newton import _logistic, _squared_hinge, binary_classifiers, minimise, softmax_path


@pytest.mark.parametrize("measure", [_logistic, _squared_hinge])
def test_slopes_and_curvatures_are_derivatives(measure: object) -> None:
    for m in (-3.0, -0.2, 0.4, 2.5, 30.0):
        point = np.array([m])
        assert check_grad(lambda x: measure(x)[0][0], lambda x: measure(x)[1], point) < 1e-6  # type: ignore[operator]
        assert check_grad(lambda x: measure(x)[1][0], lambda x: measure(x)[2], point) < 1e-6  # type: ignore[operator]


@pytest.mark.parametrize("loss", ["logistic", "squared-hinge"])
@pytest.mark.parametrize("spread", [0.01, 1.0])
def test_the_weights_are_the_minimum_that_a_general_optimiser_finds(loss: str, spread: float) -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(
        2, size=(80, 4)
    )  # as many problems as weights would hide a sum over the wrong of them
    x = labels @ rng.normal(size=(4, 2)) + spread * rng.normal(size=(80, 2))
    y, cost = 2.0 * labels - 1, rng.uniform(0.5, 2, size=(80, 4))
    found = binary_classifiers(x, y, cost, loss, intercept_penalty=0.5)  # type: ignore[arg-type]
    measure = _logistic if loss == "logistic" else _squared_hinge
    for k in range(4):

        def total(v: np.ndarray, k: int = k) -> float:
            penalty = (v[:2] @ v[:2] + 0.5 * v[2] ** 2) / 2
            return penalty + (cost[:, k] * measure(y[:, k] * (x @ v[:2] + v[2]))[0]).sum()

        best = minimize(total, np.zeros(3), method="BFGS", options={"gtol": 1e-6})
        assert total(found[:, k]) <= best.fun + 1e-12
        np.testing.assert_allclose(found[:, k], best.x, atol=1e-4)


def test_separable_classes_and_huge_codes_converge() -> None:
    x = np.array([[-1e6], [-2e6], [1e6], [3e6]])
    y = np.array([[-1.0], [-1.0], [1.0], [1.0]])
    for loss in ("logistic", "squared-hinge"):
        weights = binary_classifiers(x, y, np.ones((4, 1)), loss, intercept_penalty=0.0)  # type: ignore[arg-type]
        assert (y * (x @ weights[:1] + weights[1]) > 0).all()


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


def root_of_square(w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """√(1 + w²) of each w, on which full Newton steps w ↦ −w³ run away from |w| > 1; and its slope."""
    return np.sqrt(1 + w[0] ** 2), w / np.sqrt(1 + w**2)


def newton_step(w: np.ndarray, value: np.ndarray, slope: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    step = slope * (1 + w**2) ** 1.5
    return None if np.abs(slope).max() < 1e-12 else (step, (slope * step)[0])


def test_steps_are_halved_where_full_ones_would_run_away_each_problem_for_itself() -> None:
    start = np.array([[0.5, 5.0, -40.0, 0.0]])
    weights, converged = minimise(start, root_of_square, newton_step)
    assert converged
    np.testing.assert_allclose(weights, 0, atol=1e-12)
    for k in range(4):
        alone, _ = minimise(start[:, [k]], root_of_square, newton_step)
        np.testing.assert_allclose(alone, 0, atol=1e-12)


def test_it_says_when_the_steps_did_not_suffice() -> None:
    weights, converged = minimise(np.array([[5.0]]), root_of_square, newton_step, most_steps=1)
    assert not converged
    assert 0 < abs(float(weights[0, 0])) < 5
