"""The linear β-VAE, whose optimum is known in closed form, through the real objective.

Expectations over data and noise are exact: see
``oracles.expected_loss``.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import stats

from oracles import (
    diagonal_loss,
    expected_loss,
    full_covariance_loss,
    linear_model,
    linear_posterior,
    minimise,
    optimal_decoder,
    optimal_linear_loss,
    random_rotation,
    set_linear,
)
from polariscope.objectives.beta import BetaObjective
from polariscope.objectives.vae import VaeObjective

EIGENVALUES = np.array([4.0, 2.0, 1.0, 0.5, 0.1])
DIRECTIONS = random_rotation(5, seed=0)
COVARIANCE = (DIRECTIONS * EIGENVALUES) @ DIRECTIONS.T
# (β, γ, number of latents): nothing to everything active; fewer and more latents than directions.
SETTINGS = [(1.0, 0.3, 3), (4.0, 0.2, 5), (1.0, 0.05, 4), (0.5, 3.0, 7), (8.0, 1.0, 3), (2.0, 0.04, 6)]


def gradients(loss: torch.Tensor, model: torch.nn.Module) -> float:
    """Largest derivative by any weight."""
    return max(float(g.abs().max()) for g in torch.autograd.grad(loss, list(model.parameters())))


@pytest.mark.parametrize(("gamma", "expected"), [(0.1, (0.02439, 0.09091)), (100.0, (0.96154, 0.99010))])
def test_t1_the_best_posterior_variances_are_those_of_the_worked_example(
    gamma: float, expected: tuple[float, float]
) -> None:
    W = np.vstack([np.diag([2.0, 1.0]), np.zeros((1, 2))])  # Λ² = (4, 1)
    V, _ = linear_posterior(W, beta=1.0, gamma=gamma)
    model = linear_model(3, 2, gamma)
    set_linear(model, W, V, np.array([0.5, 0.5]))
    log_variance = model.encoder.head.log_variance.bias
    assert minimise(lambda: expected_loss(VaeObjective(), model, np.eye(3)), [log_variance]) < 1e-8
    found = log_variance.detach().exp().numpy()
    np.testing.assert_allclose(found, 1 / (np.array([4.0, 1.0]) / gamma + 1), rtol=1e-8)
    np.testing.assert_allclose(found, expected, atol=5e-6)  # as printed, five digits


@pytest.mark.parametrize(("beta", "gamma", "n_latents"), SETTINGS)
def test_t2_no_weight_can_improve_the_closed_form_optimum(beta: float, gamma: float, n_latents: int) -> None:
    W = optimal_decoder(EIGENVALUES, DIRECTIONS, n_latents, beta, gamma)
    V, variance = linear_posterior(W, beta, gamma)
    model = linear_model(5, n_latents, gamma)
    set_linear(model, W, V, variance)
    objective = BetaObjective(beta=beta)
    best = expected_loss(objective, model, COVARIANCE)
    assert float(best.detach()) == pytest.approx(
        optimal_linear_loss(EIGENVALUES, n_latents, beta, gamma), rel=1e-12
    )
    assert gradients(best, model) < 1e-10 / gamma  # derivatives carry 1/γ, and rounding with them
    draw = torch.Generator().manual_seed(1)
    for size in (1e-3, 1e-1, 1.0):
        for _ in range(5):
            set_linear(model, W, V, variance)
            with torch.no_grad():
                for parameter in model.parameters():
                    noise = torch.randn(parameter.shape, generator=draw, dtype=torch.float64)
                    parameter.add_(noise, alpha=size)
                # The log-variance must not depend on x for the expectation to stay exact.
                model.encoder.head.log_variance.weight.zero_()
                assert float(expected_loss(objective, model, COVARIANCE)) > float(best.detach())


@pytest.mark.parametrize(("beta", "gamma", "n_latents"), SETTINGS)
def test_t2_moments_at_the_optimum_follow_the_eigenvalues(beta: float, gamma: float, n_latents: int) -> None:
    W = optimal_decoder(EIGENVALUES, DIRECTIONS, n_latents, beta, gamma)
    V, variance = linear_posterior(W, beta, gamma)
    eigenvalues = np.concatenate([EIGENVALUES, np.zeros(max(0, n_latents - 5))])[:n_latents]
    expected = np.minimum(1, beta * gamma / np.maximum(eigenvalues, 1e-300))
    np.testing.assert_allclose(variance, expected, rtol=1e-12)
    np.testing.assert_allclose(np.diag(V @ COVARIANCE @ V.T) + variance, 1, rtol=1e-12)
    active = int((variance < 1 - 1e-9).sum())
    assert active == min(n_latents, int((beta * gamma < EIGENVALUES).sum()))


@pytest.mark.parametrize(("beta", "gamma", "n_latents"), [(1.0, 0.3, 3), (4.0, 0.2, 5), (1.0, 0.7, 7)])
def test_t10_training_a_linear_vae_finds_the_principal_directions(
    beta: float, gamma: float, n_latents: int
) -> None:
    model = linear_model(5, n_latents, gamma, seed=3)
    model.encoder.head.log_variance.weight.data.zero_()
    free = [p for p in model.parameters() if p is not model.encoder.head.log_variance.weight]
    minimise(lambda: expected_loss(BetaObjective(beta=beta), model, COVARIANCE), free)
    loss = float(expected_loss(BetaObjective(beta=beta), model, COVARIANCE).detach())
    assert loss == pytest.approx(optimal_linear_loss(EIGENVALUES, n_latents, beta, gamma), abs=1e-9)

    W = model.decoder.trunk.layers[0][0].weight.detach().numpy()
    squares = (W**2).sum(0)
    order = np.argsort(squares)[::-1]
    expected = np.pad(np.maximum(0, EIGENVALUES - beta * gamma), (0, 2))[:n_latents]
    np.testing.assert_allclose(squares[order], expected, atol=1e-4)
    variance = model.encoder.head.log_variance.bias.detach().exp().numpy()[order]
    np.testing.assert_allclose(variance, 1 / (expected / (beta * gamma) + 1), atol=1e-4)
    for direction, column in zip(DIRECTIONS.T, W[:, order[expected > 0]].T, strict=False):
        # Signed permutation of the principal directions: |cos| = 1.
        assert abs(direction @ column) / np.linalg.norm(column) == pytest.approx(1, abs=1e-6)


def test_the_vae_bound_is_tight_where_the_true_posterior_is_diagonal() -> None:
    gamma = 0.3
    W = optimal_decoder(EIGENVALUES, DIRECTIONS, 3, 1.0, gamma)
    model = linear_model(5, 3, gamma)
    set_linear(model, W, *linear_posterior(W, 1.0, gamma))
    x = np.random.default_rng(0).multivariate_normal(np.zeros(5), COVARIANCE, size=8)
    marginal = stats.multivariate_normal(np.zeros(5), W @ W.T + gamma * np.eye(5))
    for row in x:
        # One observation: its second moment is x xᵀ, and the loss holds only second moments.
        loss = expected_loss(VaeObjective(), model, np.outer(row, row))
        assert float(loss.detach()) == pytest.approx(-marginal.logpdf(row), rel=1e-10)


@pytest.mark.parametrize("beta", [1.0, 3.0])
def test_t3_rotating_the_latents_is_free_with_a_full_covariance_only(beta: float) -> None:
    gamma, n_latents = 0.2, 3
    W = optimal_decoder(EIGENVALUES, DIRECTIONS, n_latents, beta, gamma)
    R = random_rotation(n_latents, seed=4)
    full = full_covariance_loss(W, COVARIANCE, beta, gamma)
    assert full_covariance_loss(W @ R, COVARIANCE, beta, gamma) == pytest.approx(full, rel=1e-12)
    assert diagonal_loss(W, COVARIANCE, beta, gamma) == pytest.approx(full, rel=1e-12)
    assert diagonal_loss(W @ R, COVARIANCE, beta, gamma) > full + 1e-3
    permutation = np.eye(n_latents)[[2, 0, 1]] * [1, -1, 1]
    assert diagonal_loss(W @ permutation, COVARIANCE, beta, gamma) == pytest.approx(full, rel=1e-12)


@pytest.mark.parametrize("beta", [1.0, 3.0])
@pytest.mark.parametrize("seed", range(3))
def test_t3_our_diagonal_posterior_pays_the_hadamard_gap(beta: float, seed: int) -> None:
    # min over diagonal Σ exceeds min over full Σ by ½β(Σ log A_jj − log det A), A = WᵀW/βγ + I.
    gamma = 0.2
    W = np.random.default_rng(seed).normal(size=(5, 3))
    model = linear_model(5, 3, gamma)
    set_linear(model, W, *linear_posterior(W, beta, gamma))
    ours = float(expected_loss(BetaObjective(beta=beta), model, COVARIANCE).detach())
    A = W.T @ W / (beta * gamma) + np.eye(3)
    gap = 0.5 * beta * (np.log(np.diag(A)).sum() - np.linalg.slogdet(A)[1])
    assert gap > 0.01
    assert ours == pytest.approx(full_covariance_loss(W, COVARIANCE, beta, gamma) + gap, rel=1e-11)
    assert ours == pytest.approx(diagonal_loss(W, COVARIANCE, beta, gamma), rel=1e-11)


def test_equal_eigenvalues_leave_the_rotation_free() -> None:
    # zietlow2022 Prop. 1: distinct singular values are needed; within an eigenspace any rotation is optimal.
    covariance, R = 2 * np.eye(3), random_rotation(3, seed=5)
    model = linear_model(3, 3, gamma=0.5)
    losses = []
    for directions in (np.eye(3), R):
        W = optimal_decoder(np.full(3, 2.0), directions, 3, 1.0, 0.5)
        set_linear(model, W, *linear_posterior(W, 1.0, 0.5))
        losses.append(float(expected_loss(VaeObjective(), model, covariance).detach()))
    assert losses[0] == pytest.approx(losses[1], rel=1e-12)


def test_the_exact_expectation_agrees_with_an_average_over_random_noise() -> None:
    # The one test that would notice if the prepared noise were not what the objective draws.
    from oracles import STANDARD_ERRORS
    from polariscope.objectives import Batch, Step

    model = linear_model(5, 3, gamma=0.5, seed=2)
    model.encoder.head.log_variance.weight.data.zero_()
    exact = float(expected_loss(BetaObjective(beta=2.0), model, COVARIANCE).detach())
    root = DIRECTIONS * np.sqrt(EIGENVALUES)
    x = torch.from_numpy(np.random.default_rng(0).normal(size=(20_000, 5)) @ root.T)
    terms = BetaObjective(beta=2.0).terms(Step(model, Batch(x, step=0), torch.Generator().manual_seed(0)))
    losses = (terms["reconstruction"].value + 2.0 * terms["rate"].value.sum(1)).detach().numpy()
    assert abs(losses.mean() - exact) < STANDARD_ERRORS * losses.std() / np.sqrt(len(losses))
