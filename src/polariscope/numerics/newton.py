"""Newton's method with step halving, and linear classifiers fitted with it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeVar

import numpy as np
from jaxtyping import Float, Int

from polariscope.core.errors import InputError

State = TypeVar("State")
MAX_STEPS = 200
MAX_HALVINGS = 60
"""Maximum number of halvings of a step, after which it is below the rounding error of the weights."""
SLOPE = 1e-6
"""Largest slope of the mean loss at which :func:`softmax_path` stops."""


def minimise(
    weights: Float[np.ndarray, "*shape"],
    evaluate: Callable[[np.ndarray], tuple[Any, State]],
    newton_step: Callable[[np.ndarray, Any, State], tuple[np.ndarray, Any] | None],
    max_steps: int = MAX_STEPS,
) -> tuple[Float[np.ndarray, "*shape"], bool]:
    """Minimise a convex function, or many at once; return the minimum and True if it was reached in ``max_steps``.

    A step is halved until the function falls by a quarter of the decrease that its slope predicts, up to rounding.

    :param weights: starting point; for many functions, the last axis is the function
    :param evaluate: function that returns the value at some weights (one for each function) and a state, from which
        derivatives are computed
    :param newton_step: function of weights, value and state that returns the step H⁻¹g, which is subtracted, and
        gᵀH⁻¹g, twice the decrease that the quadratic model predicts; None if no step is required
    :param max_steps: (default 200) maximum number of steps

    >>> def evaluate(w):
    ...     return (w**2).sum(), None
    >>> def newton_step(w, value, _):
    ...     return (w, 2 * (w**2).sum()) if w.any() else None
    >>> minimise(np.array([3.0, 4.0]), evaluate, newton_step)
    (array([0., 0.]), True)
    """
    value, state = evaluate(weights)
    for _ in range(max_steps):
        direction = newton_step(weights, value, state)
        if direction is None:
            return weights, True
        step, decrease = direction
        # Each function has its own step size.
        size = np.ones_like(value)
        for _ in range(MAX_HALVINGS):
            trial = weights - size * step
            new_value, state = evaluate(trial)
            # The last term allows for rounding; without it, steps near the minimum would be halved to nothing.
            short = new_value > value - 0.25 * size * decrease + 1e-13 * value
            if not np.any(short):
                break
            size = np.where(short, size / 2, size)
        weights, value = trial, new_value
    return weights, False


def binary_classifiers(
    x: Float[np.ndarray, "sample feature"],
    y: Float[np.ndarray, "sample problem"],
    cost: Float[np.ndarray, "sample problem"],
    loss: Literal["logistic", "squared-hinge"],
    intercept_penalty: float,
) -> Float[np.ndarray, "feature+1 problem"]:
    r"""Fit many binary problems on the same samples to rounding precision; return weights w and, last, intercepts b.

    .. math:: \min_{w, b} \tfrac12 \|w\|^2 + \tfrac\lambda2 b^2 + \sum_i c_i \, \ell(y_i (w^\top x_i + b))

    with y = ±1 and ℓ(m) = log(1 + e^−m) or max(0, 1 − m)². Both losses are convex and have second derivatives (almost
    everywhere), the penalty makes the minimum unique, and there are few features, so Newton's method converges in a few
    steps for all problems together. The Hessians are one product of the samples' curvatures with the products of their
    features.

    :param x: samples
    :param y: +1 or −1 for each sample, in each problem
    :param cost: weight cᵢ of each sample, in each problem
    :param loss: "logistic" or "squared-hinge"
    :param intercept_penalty: weight λ of b²
    """
    x = with_ones(x)
    n_features = x.shape[1]
    # Outer products of the features do not change, so each Hessian is one matrix product.
    products = (x[:, :, None] * x[:, None, :]).reshape(len(x), -1)
    penalty = np.append(np.ones(n_features - 1), intercept_penalty)[:, None]
    measure = _logistic if loss == "logistic" else _squared_hinge

    def evaluate(
        weights: Float[np.ndarray, "feature problem"],
    ) -> tuple[Float[np.ndarray, " problem"], tuple[np.ndarray, np.ndarray]]:
        """Return the loss of each problem, and slopes and curvatures of its samples."""
        losses, slopes, curvatures = measure(y * (x @ weights))
        return (penalty * weights**2).sum(axis=0) / 2 + (cost * losses).sum(axis=0), (slopes, curvatures)

    def newton_step(
        weights: np.ndarray, value: np.ndarray, state: tuple[np.ndarray, np.ndarray]
    ) -> tuple[np.ndarray, np.ndarray] | None:
        slopes, curvatures = state
        gradient = penalty * weights + x.T @ (cost * slopes * y)
        hessian = ((cost * curvatures).T @ products).reshape(-1, n_features, n_features)
        hessian += np.diag(penalty[:, 0])
        step = np.linalg.solve(hessian, gradient.T[:, :, None])[:, :, 0].T
        decrease = (gradient * step).sum(axis=0)
        return None if (decrease <= 1e-13 * value).all() else (step, decrease)

    weights, converged = minimise(np.zeros((n_features, y.shape[1])), evaluate, newton_step)
    if not converged:
        raise InputError(
            problem=f"a linear classifier did not converge in {MAX_STEPS} Newton steps",
            remedy="check the scale of the codes",
        )
    return weights


def softmax_path(
    x: Float[np.ndarray, "sample feature"], labels: Int[np.ndarray, " sample"], strengths: Sequence[float]
) -> list[Float[np.ndarray, "feature+1 label"]]:
    r"""Fit multinomial logistic regression for each strength C; return weights and, last, intercepts.

    .. math:: \min_w \frac1n \sum_i -\log p_{i y_i} + \frac{1}{2Cn} \|w\|^2, \qquad p_{ia} \propto e^{w_a^\top x_i}

    Each fit starts from the previous one. The Hessian's blocks are Σ_i (δ_ab p_ia − p_ia p_ib) x_i x_iᵀ / n, a product
    of all p_ia x_i with themselves. First-order methods require a thousand iterations if the penalty is weak; Newton's
    method requires about four steps for each strength. It stops when no slope of the mean loss exceeds 1e-6, or after
    100 steps.

    :param x: samples
    :param labels: class of each sample, from 0
    :param strengths: values of C, preferably in rising order
    """
    from scipy.linalg import cho_factor, cho_solve

    x = with_ones(x)
    (n, n_features), n_classes = x.shape, int(labels.max()) + 1
    products = (x[:, :, None] * x[:, None, :]).reshape(n, -1)
    truth = (labels[:, None] == np.arange(n_classes)).astype(np.float64)
    each = np.arange(n_classes)

    def evaluate(
        weights: Float[np.ndarray, "label feature"],
    ) -> tuple[float, Float[np.ndarray, "sample label"]]:
        """Return the loss with its penalty, and the probabilities."""
        scores = x @ weights.T
        # The probabilities do not change, and the exponential cannot overflow.
        scores -= scores.max(axis=1, keepdims=True)
        correct = np.einsum("ij,ij->i", scores, truth)
        shares = np.exp(scores, out=scores)
        total = shares.sum(axis=1)
        loss = float((np.log(total) - correct).mean() + (penalty * weights**2).sum() / 2)
        shares /= total[:, None]
        return loss, shares

    def newton_step(
        weights: np.ndarray, _: float, shares: Float[np.ndarray, "sample label"]
    ) -> tuple[np.ndarray, float] | None:
        gradient = (shares - truth).T @ x / n + penalty * weights
        if np.abs(gradient).max() <= SLOPE:
            return None
        weighted = (shares[:, :, None] * x[:, None, :]).reshape(n, -1)
        hessian = weighted.T @ weighted
        hessian /= -n
        # The blocks are a view, so the lines below change the Hessian.
        blocks = hessian.reshape(n_classes, n_features, n_classes, n_features)
        # If all answers are certain, the curvature of the intercepts vanishes; 1e-9 prevents it and only shortens
        # steps.
        ridge = np.diag(penalty + np.append(np.zeros(n_features - 1), 1e-9))
        blocks[each, :, each, :] += (shares.T @ products).reshape(-1, n_features, n_features) / n + ridge
        # Adding a constant to all intercepts changes nothing, so this direction needs a curvature to be invertible.
        blocks[:, -1, :, -1] += 1 / n_classes
        factor = cho_factor(hessian, overwrite_a=True, check_finite=False)
        step = cho_solve(factor, gradient.ravel(), check_finite=False).reshape(weights.shape)
        return step, float((gradient * step).sum())

    weights, path = np.zeros((n_classes, n_features)), []
    for strength in strengths:
        # evaluate and newton_step read this penalty; the intercepts have none.
        penalty = np.append(np.full(n_features - 1, 1 / (strength * n)), 0.0)
        weights, _ = minimise(weights, evaluate, newton_step, max_steps=100)
        path.append(weights.T)
    return path


def with_ones(x: Float[np.ndarray, "sample feature"]) -> Float[np.ndarray, "sample feature+1"]:
    """Return the samples with a last feature that is always 1, whose weight is the intercept."""
    return np.hstack([x, np.ones((len(x), 1))])


def _logistic(
    margin: Float[np.ndarray, "*shape"],
) -> tuple[Float[np.ndarray, "*shape"], Float[np.ndarray, "*shape"], Float[np.ndarray, "*shape"]]:
    """Return loss, slope and curvature, computed from e^−|m|, which cannot overflow."""
    small = np.exp(-np.abs(margin))
    wrong = np.where(margin > 0, small, 1.0) / (1 + small)
    return np.log1p(small) + np.maximum(0, -margin), -wrong, wrong * (1 - wrong)


def _squared_hinge(
    margin: Float[np.ndarray, "*shape"],
) -> tuple[Float[np.ndarray, "*shape"], Float[np.ndarray, "*shape"], Float[np.ndarray, "*shape"]]:
    slack = np.maximum(0, 1 - margin)
    return slack**2, -2 * slack, 2.0 * (slack > 0)
