"""Newton's method: its minimum is stationary, and survives separable classes; scikit-learn finds the same."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from unittest import mock

import numpy as np
import pytest
from scipy.optimize import check_grad, minimize
from scipy.special import logsumexp
from sklearn.linear_model import LogisticRegression

from analysis.metrics.known import noise
from polariscope.analysis.metrics.probe import STRENGTHS
from polariscope.numerics import newton
from polariscope.numerics.newton import _logistic, _squared_hinge, binary_classifiers, minimise, softmax_path


@pytest.mark.parametrize("measure", [_logistic, _squared_hinge])
def test_slopes_and_curvatures_are_derivatives(measure: object) -> None:
    for m in (-3.0, -0.2, 0.4, 2.5, 30.0):
        point = np.array([m])
        assert check_grad(lambda x: measure(x)[0][0], lambda x: measure(x)[1], point) < 1e-6  # type: ignore[operator]
        assert check_grad(lambda x: measure(x)[1][0], lambda x: measure(x)[2], point) < 1e-6  # type: ignore[operator]


def losses_given(fit: Callable[[], object]) -> list[Callable[[np.ndarray], np.ndarray]]:
    """The functions of the weights that a fit asks to be minimised, which is not done: any hangs come later."""
    asked = []

    def told(weights: np.ndarray, evaluate: Callable, *_: object, **__: object) -> tuple[np.ndarray, bool]:
        asked.append(lambda at: evaluate(at)[0])
        return weights, True

    with mock.patch.object(newton, "minimise", told):
        fit()
    return asked


@pytest.mark.parametrize("size", [1.0, 1e4])  # scores of the second have no exponential
def test_what_is_minimised_is_the_penalised_cross_entropy(size: float) -> None:
    rng = np.random.default_rng(0)
    x, labels, weights = rng.normal(size=(30, 2)), rng.integers(3, size=30), size * rng.normal(size=(3, 3))
    (loss,) = losses_given(lambda: softmax_path(x, labels, (5.0,)))
    scores = x @ weights[:, :2].T + weights[:, 2]
    entropies = logsumexp(scores, axis=1) - scores[np.arange(30), labels]
    expected = entropies.mean() + (weights[:, :2] ** 2).sum() / (2 * 5.0 * 30)
    assert loss(weights) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("name", ["logistic", "squared-hinge"])
def test_what_is_minimised_is_the_penalised_loss_of_each_problem(name: str) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(30, 2)), np.where(rng.random((30, 4)) < 0.5, -1.0, 1.0)
    cost, weights = rng.uniform(0.5, 2, size=(30, 4)), rng.normal(size=(3, 4))
    (loss,) = losses_given(lambda: binary_classifiers(x, y, cost, name, intercept_penalty=0.7))  # type: ignore[arg-type]
    margin = y * (x @ weights[:2] + weights[2])
    each = np.log1p(np.exp(-margin)) if name == "logistic" else np.maximum(0, 1 - margin) ** 2
    penalty = ((weights[:2] ** 2).sum(axis=0) + 0.7 * weights[2] ** 2) / 2
    np.testing.assert_allclose(loss(weights), penalty + (cost * each).sum(axis=0), rtol=1e-12)


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


@pytest.mark.parametrize("start", [0.9, 1.2, 1.5, 3.0, -40.0])
@pytest.mark.parametrize("unit", [1e-8, 1.0, 1e8])
def test_each_step_is_the_longest_that_brings_a_quarter_of_what_its_slope_promises(
    start: float, unit: float
) -> None:
    steps = []

    def evaluate(w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        value, slope = root_of_square(w)
        return unit * value, unit * slope

    def step_of(w: np.ndarray, value: np.ndarray, slope: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        step = slope / unit * (1 + w**2) ** 1.5
        steps.append((float(w[0, 0]), float(value[0]), float(step[0, 0])))
        return None if np.abs(slope).max() < 1e-9 * unit else (step, (slope * step)[0])

    _, converged = minimise(np.array([[start]]), evaluate, step_of, max_steps=40)
    assert converged
    for (w, value, step), (reached, _, _) in itertools.pairwise(steps):
        slope = unit * w / np.sqrt(1 + w**2)
        tried = (
            size
            for size in 2.0 ** -np.arange(50)
            if unit * np.sqrt(1 + (w - size * step) ** 2) <= value * (1 + 1e-13) - 0.25 * size * slope * step
        )
        assert reached == w - next(tried) * step


def test_a_function_that_never_falls_does_not_hang() -> None:
    """A step in the wrong direction, as a wrong derivative would give: it ends where it began, and says so."""

    def uphill(w: np.ndarray, value: np.ndarray, slope: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return -slope, (slope * slope)[0]

    weights, converged = minimise(np.array([[5.0]]), root_of_square, uphill, max_steps=3)
    assert not converged
    np.testing.assert_allclose(weights, 5.0, rtol=1e-12)


def test_it_says_when_the_steps_did_not_suffice() -> None:
    weights, converged = minimise(np.array([[5.0]]), root_of_square, newton_step, max_steps=1)
    assert not converged
    assert 0 < abs(float(weights[0, 0])) < 5
