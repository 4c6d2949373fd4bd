"""Linear VAE and iVAE in closed form, against gradients, optimisers and Bayes' rule."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from scipy import optimize, stats
from sklearn.datasets import load_breast_cancer, load_digits, load_wine

from oracles import expected_loss, linear_model, minimise, random_rotation, set_linear
from polariscope.analysis.theory import (
    LinearSolution,
    conditional_prior,
    linear_posterior,
    linear_size,
    linear_vae,
)
from polariscope.core.errors import InputError
from polariscope.objectives.beta import BetaObjective

EIGENVALUES = np.array([3.0, 1.5, 0.6, 0.1])
DIRECTIONS = random_rotation(4, seed=1)
COVARIANCE = (DIRECTIONS * EIGENVALUES) @ DIRECTIONS.T
# (β, γ, latents): some, all and none active; fewer and more latents than features.
SETTINGS = [(1.0, 0.3, 3), (4.0, 0.2, 4), (0.5, 0.1, 2), (8.0, 0.5, 3), (2.0, 0.04, 6)]


def decoder_of(solution: LinearSolution) -> np.ndarray:
    n_latents = len(solution.singular_values)
    directions = np.pad(DIRECTIONS, ((0, 0), (0, max(0, n_latents - 4))))[:, :n_latents]
    return directions * solution.singular_values


def loss_through_the_objective(
    W: np.ndarray, V: np.ndarray, variance: np.ndarray, beta: float, gamma: float
) -> tuple[float, float]:
    """The expected loss of our own model with these weights, and its largest derivative."""
    model = linear_model(4, W.shape[1], gamma)
    set_linear(model, W, V, variance)
    loss = expected_loss(BetaObjective(beta=beta), model, COVARIANCE)
    gradients = torch.autograd.grad(loss, list(model.parameters()))
    return float(loss.detach()), max(float(gradient.abs().max()) for gradient in gradients)


@pytest.mark.parametrize(("beta", "gamma", "n_latents"), SETTINGS)
def test_at_the_solution_the_gradient_of_the_exact_loss_vanishes(
    beta: float, gamma: float, n_latents: int
) -> None:
    solution = linear_vae(EIGENVALUES, n_latents, beta=beta, gamma=gamma)
    W = decoder_of(solution)
    V = linear_posterior(W, beta=beta, gamma=gamma).mean_map
    loss, gradient = loss_through_the_objective(W, V, solution.variances, beta, gamma)
    assert gradient < 1e-10 / gamma  # derivatives carry 1/γ, and rounding with them
    assert loss == pytest.approx(solution.loss, rel=1e-12)


@pytest.mark.parametrize(("beta", "gamma", "n_latents"), SETTINGS)
def test_every_step_away_from_the_solution_costs(beta: float, gamma: float, n_latents: int) -> None:
    solution = linear_vae(EIGENVALUES, n_latents, beta=beta, gamma=gamma)
    W = decoder_of(solution)
    V = linear_posterior(W, beta=beta, gamma=gamma).mean_map
    random = np.random.default_rng(0)
    for size in (1e-3, 0.1, 1.0):
        for _ in range(3):
            away = [W + size * random.normal(size=W.shape), V + size * random.normal(size=V.shape)]
            variance = solution.variances * np.exp(size * random.normal(size=n_latents))
            assert loss_through_the_objective(*away, variance, beta, gamma)[0] > solution.loss


@pytest.mark.parametrize(("beta", "gamma", "n_latents"), SETTINGS[:3])
def test_an_optimiser_ends_where_the_closed_form_says(beta: float, gamma: float, n_latents: int) -> None:
    model = linear_model(4, n_latents, gamma, seed=3)
    head = model.encoder.head
    head.log_variance.weight.data.zero_()
    free = [parameter for parameter in model.parameters() if parameter is not head.log_variance.weight]
    objective = BetaObjective(beta=beta)
    minimise(lambda: expected_loss(objective, model, COVARIANCE), free, n_iterations=300)
    solution = linear_vae(EIGENVALUES, n_latents, beta=beta, gamma=gamma)
    assert float(expected_loss(objective, model, COVARIANCE).detach()) == pytest.approx(
        solution.loss, abs=1e-9
    )
    W = model.decoder.trunk.layers[0][0].weight.detach().numpy()
    variances = head.log_variance.bias.detach().exp().numpy()
    V = head.mean.weight.detach().numpy()
    order = np.argsort(variances)
    # The loss is flat to second order: 1e-9 in it leaves about 1e-4 in the weights.
    np.testing.assert_allclose(variances[order], solution.variances, atol=1e-4)
    np.testing.assert_allclose(np.linalg.norm(W, axis=0)[order], solution.singular_values, atol=1e-3)
    np.testing.assert_allclose(np.diag(V @ COVARIANCE @ V.T)[order], solution.mean_variances, atol=1e-4)
    assert float(variances.sum()) == pytest.approx(solution.trace, abs=1e-4)


@pytest.mark.parametrize(("beta", "gamma", "n_latents"), SETTINGS)
def test_its_numbers_belong_together(beta: float, gamma: float, n_latents: int) -> None:
    found = linear_vae(EIGENVALUES, n_latents, beta=beta, gamma=gamma)
    assert found.n_active == min(n_latents, int((beta * gamma < EIGENVALUES).sum()))
    np.testing.assert_allclose(found.variances + found.mean_variances, 1, rtol=1e-14)
    kls = 0.5 * (found.mean_variances + found.variances - np.log(found.variances) - 1)
    np.testing.assert_allclose(found.kls, kls, atol=1e-14)
    posterior = linear_posterior(decoder_of(found), beta=beta, gamma=gamma)
    np.testing.assert_allclose(posterior.covariance, np.diag(found.variances), atol=1e-12)
    moments = posterior.mean_map @ COVARIANCE @ posterior.mean_map.T
    np.testing.assert_allclose(moments, np.diag(found.mean_variances), atol=1e-12)
    passive = ~found.active
    assert (found.variances[passive] == 1).all()
    assert (found.kls[passive] == 0).all()
    assert (found.singular_values[passive] == 0).all()


@pytest.mark.parametrize(("beta", "gamma", "n_latents"), SETTINGS)
def test_the_slope_of_the_loss_in_beta_is_the_rate(beta: float, gamma: float, n_latents: int) -> None:
    # Envelope theorem: at the optimum only the explicit β counts.
    step = 1e-5
    high, low = (linear_vae(EIGENVALUES, n_latents, beta=beta + s, gamma=gamma) for s in (step, -step))
    found = linear_vae(EIGENVALUES, n_latents, beta=beta, gamma=gamma)
    assert (high.loss - low.loss) / (2 * step) == pytest.approx(found.rate, abs=1e-8)
    assert found.loss == pytest.approx(found.distortion + beta * found.rate, rel=1e-14)


def test_a_vanishing_gamma_makes_everything_that_varies_active_and_certain() -> None:
    found = linear_vae(np.array([2.0, 1.0, 0.0]), 3, gamma=1e-12)
    assert found.active.tolist() == [True, True, False]
    np.testing.assert_allclose(found.variances, [0, 0, 1], atol=1e-11)
    np.testing.assert_allclose(found.mean_variances, [1, 1, 0], atol=1e-11)
    np.testing.assert_allclose(found.singular_values, np.sqrt([2.0, 1.0, 0.0]), atol=1e-11)


def test_a_large_beta_makes_everything_passive() -> None:
    found = linear_vae(EIGENVALUES, 3, beta=1e6)
    assert found.n_active == 0
    assert found.trace == 3
    assert found.rate == 0
    assert found.loss == pytest.approx(0.5 * (4 * math.log(2 * math.pi) + EIGENVALUES.sum()), rel=1e-14)


def test_an_eigenvalue_exactly_at_the_threshold_is_passive() -> None:
    assert linear_vae(np.array([2.0, 0.5]), 2, beta=2.0, gamma=0.25).active.tolist() == [True, False]


def test_order_of_eigenvalues_and_surplus_latents_do_not_matter() -> None:
    one, other = linear_vae(EIGENVALUES, 4, gamma=0.2), linear_vae(EIGENVALUES[[2, 0, 3, 1]], 7, gamma=0.2)
    assert one.loss == pytest.approx(other.loss, rel=1e-14)
    np.testing.assert_array_equal(one.kls, other.kls[:4])
    assert other.trace == pytest.approx(one.trace + 3, rel=1e-14)  # a surplus latent adds its variance, 1


@pytest.mark.parametrize("n_latents", [1, 2, 3])
def test_the_learned_gamma_is_the_mean_of_the_discarded_eigenvalues(n_latents: int) -> None:
    found = linear_vae(EIGENVALUES, n_latents, gamma=None)
    assert found.gamma == pytest.approx(EIGENVALUES[n_latents:].mean(), rel=1e-14)

    best = optimize.minimize_scalar(
        lambda log_gamma: linear_vae(EIGENVALUES, n_latents, gamma=math.exp(log_gamma)).loss,
        bounds=(-6, 3),
        method="bounded",
        options={"xatol": 1e-9},
    )
    assert math.exp(best.x) == pytest.approx(found.gamma, rel=1e-6)
    assert best.fun == pytest.approx(found.loss, rel=1e-12)
    # Probabilistic PCA: the bound is tight, so that the loss is −E log N(x; 0, WWᵀ + γI).
    W = decoder_of(found)
    marginal = W @ W.T + found.gamma * np.eye(4)
    likelihood = 4 * math.log(2 * math.pi) + np.linalg.slogdet(marginal)[1]
    likelihood += np.trace(np.linalg.solve(marginal, COVARIANCE))
    assert found.loss == pytest.approx(0.5 * likelihood, rel=1e-12)


@pytest.mark.parametrize(("gamma", "expected"), [(0.1, (0.0244, 0.0909)), (100.0, (0.9615, 0.9901))])
@pytest.mark.parametrize("covariance", ["diagonal", "full"])
def test_t1_the_worked_example(gamma: float, expected: tuple[float, float], covariance: str) -> None:
    W = np.vstack([np.diag([2.0, 1.0]), np.zeros((1, 2))])  # Λ² = (4, 1)
    found = linear_posterior(W, gamma=gamma, covariance=covariance).covariance  # type: ignore[arg-type]
    np.testing.assert_allclose(found, np.diag(expected), atol=5e-5)


@pytest.mark.parametrize("beta", [1.0, 3.0])
def test_the_full_posterior_is_bayes_rule(beta: float) -> None:
    # β and γ enter as βγ, so that the best posterior is the true one of a decoder with variance βγ. By
    # conditioning the joint Gaussian of z and x on x: nothing of the formulas under test is used.
    random = np.random.default_rng(0)
    W, gamma, prior = random.normal(size=(4, 3)), 0.3, np.array([0.5, 1.0, 4.0])
    x, prior_mean = random.normal(size=(6, 4)), random.normal(size=(6, 3))
    found = linear_posterior(W, beta=beta, gamma=gamma, prior_variance=prior, covariance="full")
    gain = np.diag(prior) @ W.T @ np.linalg.inv(W @ np.diag(prior) @ W.T + beta * gamma * np.eye(4))
    np.testing.assert_allclose(found.covariance, np.diag(prior) - gain @ W @ np.diag(prior), atol=1e-12)
    expected = prior_mean + (x - prior_mean @ W.T) @ gain.T
    np.testing.assert_allclose(found.mean(x, prior_mean), expected, atol=1e-12)
    np.testing.assert_allclose(found.mean(x, prior_mean[0])[0], expected[0], atol=1e-12)


def test_with_the_standard_normal_the_mean_is_that_of_equation_4_8() -> None:
    W = np.random.default_rng(0).normal(size=(4, 3))
    expected = W.T @ np.linalg.inv(W @ W.T + 2.0 * 0.3 * np.eye(4))
    for covariance in ("diagonal", "full"):
        found = linear_posterior(W, beta=2.0, gamma=0.3, covariance=covariance)  # type: ignore[arg-type]
        np.testing.assert_allclose(found.mean_map, expected, atol=1e-12)


def ivae_loss(
    x: torch.Tensor,
    W: torch.Tensor,
    gamma: float,
    mean: torch.Tensor,
    covariance: torch.Tensor,
    prior_mean: torch.Tensor,
    prior_variance: torch.Tensor,
) -> torch.Tensor:
    """bonheme2023 Eq. 5.3 for centred data, averaged over samples; expectations over z in closed form."""
    m, n = W.shape
    error = ((x - mean @ W.T) ** 2).sum(1) + torch.trace(W @ covariance @ W.T)
    rec = 0.5 * (m * math.log(2 * math.pi * gamma) + error / gamma)
    square = ((mean - prior_mean) ** 2 / prior_variance).sum(1) + (
        covariance.diagonal() / prior_variance
    ).sum(-1)
    logs = torch.log(prior_variance).sum(-1) - torch.logdet(covariance)
    return (rec + 0.5 * (square + logs - n)).mean()


@pytest.mark.parametrize("covariance", ["diagonal", "full"])
def test_the_ivae_posterior_is_a_stationary_point_of_its_loss(covariance: str) -> None:
    random = np.random.default_rng(1)
    W, gamma, prior = random.normal(size=(4, 3)), 0.2, np.array([0.3, 1.0, 5.0])
    x, prior_mean = random.normal(size=(7, 4)), random.normal(size=(7, 3))
    found = linear_posterior(W, gamma=gamma, prior_variance=prior, covariance=covariance)  # type: ignore[arg-type]
    mean = torch.from_numpy(found.mean(x, prior_mean)).requires_grad_()
    sigma = torch.from_numpy(found.covariance).requires_grad_()
    fixed = [torch.from_numpy(part) for part in (x, W, prior_mean, prior)]

    def loss(at: torch.Tensor, spread: torch.Tensor) -> torch.Tensor:
        return ivae_loss(fixed[0], fixed[1], gamma, at, spread, fixed[2], fixed[3])

    by_mean, by_sigma = torch.autograd.grad(loss(mean, sigma), [mean, sigma])
    assert by_mean.abs().max() < 1e-12
    free = by_sigma if covariance == "full" else by_sigma.diagonal()
    assert free.abs().max() < 1e-11
    best = float(loss(mean, sigma).detach())
    with torch.no_grad():
        assert loss(mean + 0.01, sigma) > best
        assert loss(mean, sigma * 1.01) > best
        assert loss(mean, sigma * 0.99) > best


def small_conditional_data() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Posterior means and variances of nine samples with three values of u."""
    random = np.random.default_rng(2)
    u = np.array([[0, 1], [0, 1], [1, 0], [1, 1], [0, 1], [1, 0], [1, 1], [1, 1], [1, 1]])
    return random.normal(size=(9, 2)) + u, random.gamma(1.0, size=(9, 2)), u


@pytest.mark.parametrize("learned_mean", [True, False])
def test_the_best_conditional_prior_is_what_an_optimiser_finds(learned_mean: bool) -> None:
    mean, variance, u = small_conditional_data()
    _, group = np.unique(u, axis=0, return_inverse=True)
    row = torch.from_numpy(group.ravel())
    prior_mean = torch.zeros(3, 2, dtype=torch.float64, requires_grad=learned_mean)
    log_variance = torch.zeros(3, 2, dtype=torch.float64, requires_grad=True)

    def mean_kl() -> torch.Tensor:
        prior = torch.distributions.Normal(prior_mean[row], (0.5 * log_variance).exp()[row])
        posterior = torch.distributions.Normal(torch.from_numpy(mean), torch.from_numpy(np.sqrt(variance)))
        return torch.distributions.kl_divergence(posterior, prior).sum(1).mean()

    assert minimise(mean_kl, [prior_mean, log_variance] if learned_mean else [log_variance]) < 1e-8
    found = conditional_prior(mean, variance, u, learned_mean=learned_mean)
    np.testing.assert_allclose(found[0], prior_mean.detach().numpy()[group.ravel()], atol=1e-6)
    np.testing.assert_allclose(found[1], log_variance.detach().exp().numpy()[group.ravel()], rtol=1e-6)


def test_where_u_identifies_x_the_prior_follows_the_posterior() -> None:
    mean, variance, _ = small_conditional_data()
    u = np.arange(9)[:, None]
    learned, fixed = (conditional_prior(mean, variance, u, learned_mean=learn) for learn in (True, False))
    np.testing.assert_allclose(learned[0], mean, rtol=1e-15)
    np.testing.assert_allclose(learned[1], variance, rtol=1e-15)  # so that every KL is 0
    assert (fixed[0] == 0).all()
    np.testing.assert_allclose(
        fixed[1], variance + mean**2, rtol=1e-15
    )  # Eq. 5.6 for one sample, with μ† = 0


def test_where_u_says_nothing_the_prior_is_the_gaussian_nearest_to_the_aggregate() -> None:
    mean, variance, _ = small_conditional_data()
    found = conditional_prior(mean, variance, np.zeros((9, 1)))
    # Law of total variance: that of a mixture is the mean of the variances and the variance of the means.
    np.testing.assert_allclose(found[0], np.tile(mean.mean(0), (9, 1)), rtol=1e-12)
    np.testing.assert_allclose(found[1], np.tile(variance.mean(0) + mean.var(0), (9, 1)), rtol=1e-12)


def loss_of_one(W: np.ndarray, gamma: float, *row: np.ndarray) -> float:
    """Eq. 5.3 for one sample: x, posterior mean and variance, prior mean and variance."""
    x, mean, variance, prior_mean, prior_variance = (torch.from_numpy(part) for part in row)
    covariance = torch.diag(variance)
    return float(
        ivae_loss(
            x[None], torch.from_numpy(W), gamma, mean[None], covariance, prior_mean[None], prior_variance
        )
    )


def test_alternating_posterior_and_prior_never_raises_the_ivae_loss() -> None:
    # Each is the exact minimiser given the other, on data with two values of u.
    random = np.random.default_rng(3)
    u = np.repeat([[0], [1]], 10, axis=0)
    W, gamma = random.normal(size=(4, 2)), 0.3
    x = random.normal(size=(20, 4)) + 2 * u
    prior_mean, prior_variance = np.zeros((20, 2)), np.ones((20, 2))
    losses = []
    for _ in range(6):
        mean, variance = np.empty((20, 2)), np.empty((20, 2))
        for value in (0, 1):
            rows = u[:, 0] == value
            found = linear_posterior(W, gamma=gamma, prior_variance=prior_variance[rows][0])
            mean[rows] = found.mean(x[rows], prior_mean[rows])
            variance[rows] = found.covariance.diagonal()
        for step in ("posterior", "prior"):
            if step == "prior":
                prior_mean, prior_variance = conditional_prior(mean, variance, u)
            rows = zip(x, mean, variance, prior_mean, prior_variance, strict=True)
            losses.append(np.mean([loss_of_one(W, gamma, *row) for row in rows]))
    assert (np.diff(losses) < 1e-12).all()
    assert losses[0] - losses[-1] > 0.1


def test_the_rate_of_draws_from_the_solution_is_its_kl() -> None:
    # The aggregate posterior of every latent is N(0, 1): what a representation at the optimum looks like.
    found = linear_vae(EIGENVALUES, 3, gamma=0.2)
    random = np.random.default_rng(0)
    mean = random.normal(size=(20_000, 3)) * np.sqrt(found.mean_variances)
    z = mean + np.sqrt(found.variances) * random.normal(size=mean.shape)
    log_ratio = stats.norm.logpdf(z, mean, np.sqrt(found.variances)) - stats.norm.logpdf(z)
    error = log_ratio.std(axis=0) / math.sqrt(len(z))
    assert (np.abs(log_ratio.mean(axis=0) - found.kls) <= 5 * error + 1e-12).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_latents": 0}, "n_latents must be at least 1, got 0"),
        ({"beta": 0.0}, "beta must be positive, got 0.0; 1 is the VAE"),
        ({"beta": -1.0}, "beta must be positive"),
        ({"gamma": 0.0}, "gamma must be positive, got 0.0; it is the variance of the decoder"),
        ({"gamma": math.inf}, "gamma must be positive"),
        ({"eigenvalues": np.array([1.0, -0.1])}, r"eigenvalues must be finite and not negative.*np\.linalg"),
        ({"eigenvalues": np.array([])}, "eigenvalues must be finite"),
        (
            {"gamma": None, "beta": 2.0},
            "has a closed form only for beta = 1, got beta = 2.0; pass gamma",
        ),
        ({"gamma": None, "n_latents": 4}, "is 0 if all discarded directions are constant.*fewer latents"),
        (
            {"gamma": None, "eigenvalues": np.array([1.0, 0.5, 0.0])},
            "is 0 if all discarded directions are constant",
        ),
    ],
)
def test_impossible_models_are_refused(arguments: dict, message: str) -> None:
    eigenvalues = arguments.pop("eigenvalues", EIGENVALUES)
    n_latents = arguments.pop("n_latents", 2)
    with pytest.raises(InputError, match=message):
        linear_vae(eigenvalues, n_latents, **arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"gamma": -1.0}, "gamma must be positive"),
        ({"beta": 0.0}, "beta must be positive"),
        (
            {"prior_variance": np.ones(2)},
            "prior_variance must be positive, one number for each of the 3 latents",
        ),
        ({"prior_variance": np.array([1.0, 0.0, 1.0])}, "prior_variance must be positive"),
    ],
)
def test_impossible_posteriors_are_refused(arguments: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        linear_posterior(np.ones((4, 3)), **arguments)


def test_priors_of_other_samples_are_refused() -> None:
    mean, variance, u = small_conditional_data()
    with pytest.raises(
        InputError, match=r"must describe the same samples, got shapes \(9, 2\), \(9, 2\) and \(8, 2"
    ):
        conditional_prior(mean, variance, u[:8])


# How many latents a linear VAE needs.


def standardised_eigenvalues(load: Callable[[], Any]) -> tuple[np.ndarray, int]:
    rows = load().data
    deviation = rows.std(axis=0)
    values = (rows - rows.mean(axis=0)) / np.where(deviation > 0, deviation, 1)
    return np.maximum(np.linalg.eigvalsh(values.T @ values / len(values)), 0), len(rows)


@pytest.mark.parametrize(
    ("load", "learned", "fixed"),
    [(load_breast_cancer, 14, [3, 6, 9]), (load_wine, 4, [2, 4, 8]), (load_digits, 6, [4, 9, 18])],
)
def test_the_sizes_of_real_tables(load: Callable[[], Any], learned: int, fixed: list[int]) -> None:
    """By hand from the eigenvalues; constant pixels of the digits stay 0 when they are standardised."""
    values, n_samples = standardised_eigenvalues(load)
    assert linear_size(values, n_samples=n_samples).n_latents == learned
    assert [linear_size(values, n_samples=n_samples, gamma=g).n_latents for g in (1.0, 0.3, 0.1)] == fixed


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("gamma", [None, 0.05, 0.5, 3.0])
def test_the_sums_are_those_of_the_linear_vae_for_each_n(seed: int, gamma: float | None) -> None:
    values = np.random.default_rng(seed).gamma(0.7, size=12) + 1e-3
    found = linear_size(values, gamma=gamma, floor=1e-12)
    solutions = [linear_vae(values, n, gamma=gamma) for n in range(1, 12)]
    np.testing.assert_allclose(found.traces, [each.trace for each in solutions], rtol=1e-10)
    np.testing.assert_allclose(found.gammas, [each.gamma for each in solutions], rtol=1e-10)
    fits = [each.trace <= 1 for each in solutions]
    first = fits.index(False) if False in fits else 11
    assert found.n_latents == first
    assert found.gamma == pytest.approx(solutions[max(first, 1) - 1].gamma, rel=1e-10)


def test_the_answer_is_the_end_of_the_first_stretch_although_more_latents_fit_again() -> None:
    values, n_samples = standardised_eigenvalues(load_breast_cancer)
    found = linear_size(values, n_samples=n_samples)
    fits = found.traces <= 1
    assert fits[:14].all()
    assert not fits[14:26].any()
    assert fits[26:].all()  # 27, 28 and 29 of 30 features: γ has become tiny
    assert found.n_latents == 14
    assert not found.is_at_end


def test_data_without_noise_need_as_many_latents_as_they_have_directions() -> None:
    found = linear_size(np.array([5.0, 2.0, 1.0, 0.0, 0.0, 0.0]))
    assert found.n_latents == 3
    assert found.gamma == pytest.approx(1e-4 * 8 / 6)  # the floor
    assert linear_size(np.array([3.0])).n_latents == 1


def test_no_more_latents_than_samples_leave_something_over() -> None:
    values = np.append(np.full(10, 50.0), np.full(90, 1e-3))
    assert linear_size(values).n_latents == 10
    found = linear_size(values, n_samples=6)
    assert found.n_latents == len(found.traces) == 5 or not found.is_at_end
    assert len(found.traces) == 5


def test_noise_alone_needs_no_latent() -> None:
    # γ_1 is all but the largest eigenvalue, so a single latent has a posterior variance of almost 1.
    assert linear_size(np.full(20, 1.0), threshold=0.5).n_latents == 0


def test_sizes_that_make_no_sense_are_refused() -> None:
    with pytest.raises(InputError, match="threshold must be positive"):
        linear_size(np.ones(3), 0.0)
    with pytest.raises(InputError, match="n_samples must be at least 2, got 1"):
        linear_size(np.ones(3), n_samples=1)
    with pytest.raises(InputError, match="eigenvalues must not all be 0; constant data need no latent"):
        linear_size(np.zeros(3))
