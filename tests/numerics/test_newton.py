"""The shared solver of linear classifiers: its minimum is stationary, and survives separable classes."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import check_grad, minimize

from polariscope.numerics.newton import _logistic, _squared_hinge, fit


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
    labels = rng.integers(2, size=(80, 3))
    x = labels @ rng.normal(size=(3, 2)) + spread * rng.normal(size=(80, 2))
    y, cost = 2.0 * labels - 1, rng.uniform(0.5, 2, size=(80, 3))
    found = fit(x, y, cost, loss, intercept_penalty=0.5)  # type: ignore[arg-type]
    measure = _logistic if loss == "logistic" else _squared_hinge
    for k in range(3):

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
        weights = fit(x, y, np.ones((4, 1)), loss, intercept_penalty=0.0)  # type: ignore[arg-type]
        assert (y * (x @ weights[:1] + weights[1]) > 0).all()
