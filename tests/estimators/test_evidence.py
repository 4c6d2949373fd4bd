from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.stats import multivariate_normal, norm

from oracles import assert_mean_is, linear_model, linear_posterior, random_rotation, set_linear
from polariscope.core.errors import InputError
from polariscope.core.seeds import derive
from polariscope.estimators.evidence import log_evidence
from polariscope.models.likelihoods.gaussian import GaussianLikelihood
from polariscope.models.model import Blueprint, Model
from polariscope.models.nets.linear import LinearNet
from polariscope.models.posteriors.deterministic import DeterministicPosterior
from polariscope.models.posteriors.diagonal import DiagonalPosterior
from polariscope.models.posteriors.full import FullPosterior
from polariscope.models.priors.conditional import ConditionalPrior
from polariscope.models.priors.isotropic import IsotropicPrior

GAMMA = 0.3
# Orthogonal columns: the true posterior of the linear model is then diagonal.
W = random_rotation(4, seed=0)[:, :2] * [2.0, 0.7]
X = np.random.default_rng(1).normal(size=(40, 4))
EXACT = multivariate_normal(np.zeros(4), W @ W.T + GAMMA * np.eye(4)).logpdf(X)


def model_with(widening: float = 1.0) -> Model:
    """Its posterior is the true one, with variances ``widening`` times too large."""
    model = linear_model(4, 2, GAMMA)
    V, variance = linear_posterior(W, beta=1.0, gamma=GAMMA)
    set_linear(model, W, V, variance * widening)
    return model


def estimate(model: Model, n_draws: int, seed: int = 0, x: np.ndarray = X) -> np.ndarray:
    with torch.inference_mode():
        return log_evidence(model, torch.from_numpy(x), n_draws, seed).numpy()


@pytest.mark.parametrize("n_draws", [1, 7])
def test_with_the_true_posterior_every_draw_weighs_p_of_x(n_draws: int) -> None:
    np.testing.assert_allclose(estimate(model_with(), n_draws), EXACT, rtol=0, atol=1e-10)


def test_with_a_full_covariance_the_true_posterior_of_any_decoder_is_within_reach() -> None:
    decoder = np.random.default_rng(3).normal(size=(4, 2))  # columns at an angle
    exact = multivariate_normal(np.zeros(4), decoder @ decoder.T + GAMMA * np.eye(4)).logpdf(X)
    blueprint = Blueprint(LinearNet(), FullPosterior(), IsotropicPrior(), GaussianLikelihood(GAMMA), 2, (4,))
    model = blueprint.build(seed=0).double()
    model.decoder.head.log_variance.fill_(np.log(GAMMA))
    V, _ = linear_posterior(decoder, beta=1.0, gamma=GAMMA)
    factor = np.linalg.cholesky(np.linalg.inv(decoder.T @ decoder / GAMMA + np.eye(2)))
    head = model.encoder.head
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
        model.decoder.trunk.layers[0][0].weight.copy_(torch.from_numpy(decoder))
        head.mean.weight.copy_(torch.from_numpy(V))
        head.log_conditional_variance.bias.copy_(torch.from_numpy(2 * np.log(np.diag(factor))))
        head.below.bias.fill_(factor[1, 0])
    np.testing.assert_allclose(estimate(model, 3), exact, rtol=0, atol=1e-10)


def test_with_a_wrong_posterior_the_weights_are_unbiased_before_the_logarithm() -> None:
    # One draw for each of many seeds: their weights average to p(x) itself.
    model = model_with(widening=1.5)
    ratios = np.array([np.exp(estimate(model, 1, seed) - EXACT) for seed in range(400)])
    assert_mean_is(ratios, 1.0)


def test_one_draw_gives_the_evidence_lower_bound_and_more_draws_close_the_gap() -> None:
    # Posterior variances w times too large cost KL = ½ Σ (w − 1 − log w) in the bound, whatever x is.
    widening = 1.5
    model = model_with(widening)
    gap = 0.5 * 2 * (widening - 1 - np.log(widening))
    single = np.array([estimate(model, 1, seed) - EXACT for seed in range(400)])
    assert_mean_is(single, -gap)
    many = estimate(model, 4000) - EXACT
    # Weights have a relative variance v = (w²/(2w − 1)) − 1 over two latents: a standard error of √(v/K).
    error = np.sqrt((widening**2 / (2 * widening - 1) - 1) / 4000)
    assert np.abs(many).max() < 5 * error
    assert 5 * error < gap / 2


def test_an_observation_has_the_same_evidence_whatever_stands_beside_it() -> None:
    model = model_with(widening=2.0)
    whole = estimate(model, 5)
    np.testing.assert_allclose(estimate(model, 5, x=X[::-1].copy())[::-1], whole, rtol=0, atol=1e-12)
    np.testing.assert_allclose(estimate(model, 5, x=X[7:8])[0], whole[7], rtol=0, atol=1e-12)
    assert np.abs(estimate(model, 5, seed=1) - whole).max() > 1e-3


@pytest.mark.parametrize("log_variance", [-5000.0, -800.0, 0.0, 300.0])
def test_of_an_outlier_it_is_what_the_formula_says_however_extreme_the_posterior(log_variance: float) -> None:
    """exp(5000) is no number, but log q(z|x) = −½ (n log 2πσ² + ‖ε‖²) is, since the noise ε is known."""
    model = model_with()
    with torch.no_grad():
        model.encoder.head.log_variance.bias.fill_(log_variance)
    noise = torch.randn(
        (1, 2), generator=torch.Generator().manual_seed(derive(0, "evidence")), dtype=torch.float64
    ).numpy()
    x = np.array([[1e4, 0.0, 0.0, 0.0]])
    V, _ = linear_posterior(W, beta=1.0, gamma=GAMMA)
    z = x @ V.T + np.exp(log_variance / 2) * noise
    exact = norm(0, 1).logpdf(z).sum() + norm(z @ W.T, np.sqrt(GAMMA)).logpdf(x).sum()
    exact += 0.5 * (2 * (np.log(2 * np.pi) + log_variance) + (noise**2).sum())
    np.testing.assert_allclose(estimate(model, 1, x=x), [exact], rtol=1e-10)


def test_what_is_beyond_all_numbers_is_impossible_not_nan() -> None:
    model = model_with()
    for log_variance in (1e5, 1e300):
        with torch.no_grad():
            model.encoder.head.log_variance.bias.fill_(log_variance)
        assert (estimate(model, 3) == -np.inf).all()
    assert estimate(model_with(), 3, x=np.full((1, 4), 1e200)) == -np.inf


U = np.random.default_rng(2).normal(size=(40, 1))
SLOPE, SHIFT, VARIANCE = np.array([1.5, -0.5]), np.array([0.2, 0.3]), np.array([0.4, 2.5])


def conditional_model(slope: float = 0.0) -> Model:
    """p(z|u) = N(SLOPE u + SHIFT, VARIANCE exp(slope u)), with the true posterior for a slope of 0."""
    prior = ConditionalPrior(mean="learned", widths=())
    blueprint = Blueprint(
        LinearNet(), DiagonalPosterior(), prior, GaussianLikelihood(GAMMA), 2, (4,), n_auxiliary=1
    )
    model = blueprint.build(seed=0).double()
    model.decoder.head.log_variance.fill_(np.log(GAMMA))
    variance = 1 / (np.diag(W.T @ W) / GAMMA + 1 / VARIANCE)
    head, networks = model.encoder.head, model.prior
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
        model.decoder.trunk.layers[0][0].weight.copy_(torch.from_numpy(W))
        networks.mean[0].weight.copy_(torch.from_numpy(SLOPE[:, None]))
        networks.mean[0].bias.copy_(torch.from_numpy(SHIFT))
        networks.log_variance[0].weight.fill_(slope)
        networks.log_variance[0].bias.copy_(torch.from_numpy(np.log(VARIANCE)))
        by_u = (variance * SLOPE / VARIANCE)[:, None]
        head.mean.weight.copy_(torch.from_numpy(np.hstack([variance[:, None] * W.T / GAMMA, by_u])))
        head.mean.bias.copy_(torch.from_numpy(variance * SHIFT / VARIANCE))
        head.log_variance.bias.copy_(torch.from_numpy(np.log(variance)))
    return model


def exact_given_u(slope: float = 0.0) -> np.ndarray:
    """log N(x; W m(u), W diag s(u) Wᵀ + γI)."""
    found = []
    for x, u in zip(X, U[:, 0], strict=True):
        covariance = W * (VARIANCE * np.exp(slope * u)) @ W.T + GAMMA * np.eye(4)
        found.append(multivariate_normal(W @ (SLOPE * u + SHIFT), covariance).logpdf(x))
    return np.array(found)


@pytest.mark.parametrize("n_draws", [1, 7])
def test_under_a_conditional_prior_it_is_the_evidence_given_u(n_draws: int) -> None:
    with torch.inference_mode():
        found = log_evidence(conditional_model(), torch.from_numpy(X), n_draws, 0, torch.from_numpy(U))
    np.testing.assert_allclose(found.numpy(), exact_given_u(), rtol=0, atol=1e-10)


def test_under_a_conditional_prior_whose_variance_follows_u_the_weights_are_unbiased() -> None:
    model, x, u, exact = conditional_model(0.1), torch.from_numpy(X), torch.from_numpy(U), exact_given_u(0.1)
    with torch.inference_mode():
        ratios = np.array([np.exp(log_evidence(model, x, 1, seed, u).numpy() - exact) for seed in range(400)])
    assert_mean_is(ratios, 1.0)


def test_a_conditional_prior_without_u_is_refused_with_the_remedy() -> None:
    with pytest.raises(InputError, match=r"auxiliary must contain 1 values"):
        estimate(conditional_model(), 1)


def test_what_has_no_density_and_no_draws_are_refused() -> None:
    blueprint = Blueprint(
        LinearNet(), DeterministicPosterior(), IsotropicPrior(), GaussianLikelihood(), 2, (4,)
    )
    with pytest.raises(
        InputError, match="requires a posterior with a density, and this encoder is deterministic"
    ):
        estimate(blueprint.build(seed=0).double(), 1)
    for wrong in (0, 2.5, True):
        with pytest.raises(InputError, match="n_draws must be an integer of at least 1"):
            estimate(model_with(), wrong)  # type: ignore[arg-type]
