"""Linear classifiers of each class against the rest, all classes at once, to rounding."""

from __future__ import annotations

from typing import Literal

import numpy as np
from jaxtyping import Float

from polariscope.core.errors import InputError

MAX_STEPS = 200


def fit(
    x: Float[np.ndarray, "sample feature"],
    y: Float[np.ndarray, "sample problem"],
    cost: Float[np.ndarray, "sample problem"],
    loss: Literal["logistic", "squared-hinge"],
    intercept_penalty: float,
) -> Float[np.ndarray, "feature+1 problem"]:
    r"""Weights w, and below them the intercept b, of many binary problems on the same samples.

    .. math:: \min_{w, b} \tfrac12 \|w\|^2 + \tfrac\lambda2 b^2 + \sum_i c_i \, \ell(y_i (w^\top x_i + b))

    with y = ±1 and ℓ(m) = log(1 + e^−m) or max(0, 1 − m)². Both losses are convex and have second derivatives (almost
    everywhere), the penalty makes the minimum unique, and there are few features: Newton's method with step halving
    ends there after a few steps, for all problems together. The Hessians are one product of the samples' curvatures
    with the products of their features.
    """
    x = np.hstack([x, np.ones((len(x), 1))])
    n_features = x.shape[1]
    products = (x[:, :, None] * x[:, None, :]).reshape(len(x), -1)
    penalty = np.append(np.ones(n_features - 1), intercept_penalty)[:, None]
    measure = _logistic if loss == "logistic" else _squared_hinge
    weights = np.zeros((n_features, y.shape[1]))

    def evaluate(
        weights: Float[np.ndarray, "feature problem"],
    ) -> tuple[
        Float[np.ndarray, " problem"],
        Float[np.ndarray, "sample problem"],
        Float[np.ndarray, "sample problem"],
    ]:
        """The loss of each problem, slopes and curvatures of its samples."""
        losses, slopes, curvatures = measure(y * (x @ weights))
        return (penalty * weights**2).sum(axis=0) / 2 + (cost * losses).sum(axis=0), slopes, curvatures

    value, slopes, curvatures = evaluate(weights)
    for _ in range(MAX_STEPS):
        gradient = penalty * weights + x.T @ (cost * slopes * y)
        hessian = ((cost * curvatures).T @ products).reshape(-1, n_features, n_features)
        hessian += np.diag(penalty[:, 0])
        step = np.linalg.solve(hessian, gradient.T[:, :, None])[:, :, 0].T
        decrease = (gradient * step).sum(axis=0)  # twice what the quadratic model promises
        if (decrease <= 1e-13 * value).all():
            return weights
        size = np.ones_like(value)
        while True:
            new_value, slopes, curvatures = evaluate(weights - size * step)
            short = new_value > value - 0.25 * size * decrease + 1e-13 * value
            if not short.any():
                break
            size = np.where(short, size / 2, size)
        weights, value = weights - size * step, new_value
    raise InputError(
        f"a linear classifier did not converge in {MAX_STEPS} Newton steps; are the codes of a sane scale?"
    )


def _logistic(
    margin: Float[np.ndarray, "*shape"],
) -> tuple[Float[np.ndarray, "*shape"], Float[np.ndarray, "*shape"], Float[np.ndarray, "*shape"]]:
    """Loss, slope and curvature; from e^−|m|, which cannot overflow."""
    small = np.exp(-np.abs(margin))
    wrong = np.where(margin > 0, small, 1.0) / (1 + small)
    return np.log1p(small) + np.maximum(0, -margin), -wrong, wrong * (1 - wrong)


def _squared_hinge(
    margin: Float[np.ndarray, "*shape"],
) -> tuple[Float[np.ndarray, "*shape"], Float[np.ndarray, "*shape"], Float[np.ndarray, "*shape"]]:
    slack = np.maximum(0, 1 - margin)
    return slack**2, -2 * slack, 2.0 * (slack > 0)
