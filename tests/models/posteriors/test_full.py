"""Gaussian posterior with a full covariance matrix."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy import stats

from oracles import minimise, normal_kl_by_quadrature, random_rotation
from polariscope.models.likelihoods.gaussian import GaussianLikelihood
from polariscope.models.model import Blueprint
from polariscope.models.nets.mlp import MlpNet
from polariscope.models.posteriors import kl
from polariscope.models.posteriors.diagonal import DiagonalGaussian, DiagonalPosterior
from polariscope.models.posteriors.full import FullGaussian, FullHead, FullPosterior
from polariscope.models.priors.isotropic import IsotropicPrior

N_LATENTS = 4


def full(mean: np.ndarray, covariance: np.ndarray) -> FullGaussian:
    """N(mean, covariance), by NumPy's Cholesky factor."""
    factor = torch.from_numpy(np.linalg.cholesky(covariance))
    log_variance = 2 * torch.diagonal(factor, dim1=-2, dim2=-1).log()
    return FullGaussian(torch.from_numpy(mean), log_variance, torch.tril(factor, -1))


@pytest.fixture
def moments() -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of five samples, the last of which is badly scaled."""
    random = np.random.default_rng(0)
    roots = random.normal(size=(5, N_LATENTS, N_LATENTS))
    roots[4] *= [[0.05], [1.0], [3.0], [0.1]]
    return random.normal(size=(5, N_LATENTS)), roots @ roots.transpose(0, 2, 1)


def test_it_has_the_covariance_it_was_made_from(moments: tuple[np.ndarray, np.ndarray]) -> None:
    q = full(*moments)
    np.testing.assert_allclose(q.covariance.numpy(), moments[1], rtol=1e-9, atol=1e-14)
    np.testing.assert_allclose(q.variance.numpy(), np.diagonal(moments[1], axis1=1, axis2=2), rtol=1e-12)
    np.testing.assert_allclose(q.log_determinant.numpy(), np.linalg.slogdet(moments[1])[1], rtol=1e-9)


def test_a_row_of_the_log_density_sums_to_that_of_the_multivariate_normal(
    moments: tuple[np.ndarray, np.ndarray],
) -> None:
    z = np.random.default_rng(1).normal(size=(5, N_LATENTS))
    found = full(*moments).log_density(torch.from_numpy(z)).sum(1).numpy()
    expected = [stats.multivariate_normal.logpdf(*row) for row in zip(z, *moments, strict=True)]
    np.testing.assert_allclose(found, expected, rtol=1e-8)


def test_a_column_of_the_log_density_is_that_latent_given_those_before_it(
    moments: tuple[np.ndarray, np.ndarray],
) -> None:
    # log q(z_j | z_<j) = log q(z_1 … z_j) − log q(z_1 … z_{j−1}), of marginals, which are sub-blocks.
    z = np.random.default_rng(1).normal(size=(5, N_LATENTS))
    found = full(*moments).log_density(torch.from_numpy(z)).numpy()
    for row, (point, mean, covariance) in enumerate(zip(z, *moments, strict=True)):
        joint = [
            stats.multivariate_normal.logpdf(point[:j], mean[:j], covariance[:j, :j])
            for j in range(1, N_LATENTS + 1)
        ]
        np.testing.assert_allclose(found[row], np.diff(joint, prepend=0.0), rtol=1e-7, atol=1e-7)


def test_the_kl_agrees_with_an_independent_implementation_and_with_the_formula(
    moments: tuple[np.ndarray, np.ndarray],
) -> None:
    q = full(*moments)
    prior_mean = torch.tensor([0.5, 0.0, -1.0, 2.0]).double()
    prior_log_variance = torch.tensor([0.3, 0.0, -1.0, 2.0]).double()
    found = q.kl_to_normal(prior_mean, prior_log_variance).sum(1)
    theirs = torch.distributions.kl_divergence(
        torch.distributions.MultivariateNormal(q.mean, scale_tril=q.factor),
        torch.distributions.MultivariateNormal(prior_mean, torch.diag(prior_log_variance.exp())),
    )
    torch.testing.assert_close(found, theirs, rtol=1e-10, atol=1e-12)

    zeros = torch.zeros(N_LATENTS).double()
    mean, covariance = moments
    traces = np.trace(covariance, axis1=1, axis2=2)
    formula = 0.5 * ((mean**2).sum(1) + traces - np.linalg.slogdet(covariance)[1] - N_LATENTS)
    np.testing.assert_allclose(q.kl_to_normal(zeros, zeros).sum(1).numpy(), formula, rtol=1e-9)


def test_each_column_of_the_kl_is_at_least_the_kl_of_its_marginal(
    moments: tuple[np.ndarray, np.ndarray],
) -> None:
    # The excess is what the latent shares, given x, with those before it: ½ log(Σ_jj / L_jj²); none for the first.
    q = full(*moments)
    zeros = torch.zeros(N_LATENTS).double()
    excess = q.kl_to_normal(zeros, zeros) - DiagonalGaussian(q.mean, q.log_variance).kl_to_normal(
        zeros, zeros
    )
    torch.testing.assert_close(excess, 0.5 * (q.log_variance - q.log_conditional_variance))
    assert (excess[:, 0].abs() < 1e-12).all()
    assert (excess[:, 1:] > 0).all()
    # Their sum is the total correlation of the latents given x.
    correlation = q.covariance / torch.sqrt(q.variance[:, :, None] * q.variance[:, None, :])
    torch.testing.assert_close(excess.sum(1), -0.5 * torch.logdet(correlation), rtol=1e-8, atol=1e-8)


def test_one_latent_has_the_kl_of_the_integral() -> None:
    q = full(np.array([[1.3]]), np.array([[[0.2]]]))
    normal = (torch.tensor([value], dtype=torch.float64) for value in (0.5, math.log(4.0)))
    assert float(q.kl_to_normal(*normal)) == pytest.approx(
        normal_kl_by_quadrature(1.3, 0.2, 0.5, 4.0), rel=1e-9
    )


def test_without_entries_below_the_diagonal_it_is_the_diagonal_posterior() -> None:
    random = np.random.default_rng(0)
    mean, log_variance, z = (torch.from_numpy(random.normal(size=(6, 3))) for _ in range(3))
    q, diagonal = (
        FullGaussian(mean, log_variance, torch.zeros(6, 3, 3).double()),
        DiagonalGaussian(mean, log_variance),
    )
    prior = (torch.tensor([0.1, 0.0, 2.0]).double(), torch.tensor([0.5, 0.0, -1.0]).double())
    torch.testing.assert_close(q.log_density(z), diagonal.log_density(z))
    assert torch.equal(q.kl_to_normal(*prior), diagonal.kl_to_normal(*prior))
    assert torch.equal(q.log_determinant, diagonal.log_determinant)
    torch.testing.assert_close(q.covariance, diagonal.covariance)
    torch.testing.assert_close(q.log_variance, diagonal.log_variance)
    draws = [p.sample(torch.Generator().manual_seed(0)) for p in (q, diagonal)]
    assert torch.equal(*draws)


def test_the_kl_to_an_isotropic_prior_does_not_change_when_the_latents_are_rotated(
    moments: tuple[np.ndarray, np.ndarray],
) -> None:
    mean, covariance = moments[0][:4], moments[1][:4]
    R = random_rotation(N_LATENTS, seed=1)
    prior = IsotropicPrior(scale=1.5).build(N_LATENTS, None, 0, torch.Generator()).double()
    before, after = full(mean, covariance), full(mean @ R.T, R @ covariance @ R.T)
    rates = [kl(q, prior, q.mean) for q in (before, after)]
    torch.testing.assert_close(rates[0].sum(1), rates[1].sum(1), rtol=1e-9, atol=0)
    assert (rates[0] - rates[1]).abs().max() > 0.1  # the columns do change: their order is part of the split


def test_the_order_of_the_latents_changes_the_split_but_not_the_kl(
    moments: tuple[np.ndarray, np.ndarray],
) -> None:
    order = [2, 0, 3, 1]
    zeros = torch.zeros(N_LATENTS).double()
    mean, covariance = moments
    rates = full(mean, covariance).kl_to_normal(zeros, zeros)
    permuted = full(mean[:, order], covariance[:, order][:, :, order]).kl_to_normal(zeros, zeros)
    torch.testing.assert_close(rates.sum(1), permuted.sum(1), rtol=1e-9, atol=1e-9)
    assert (rates[:, order] - permuted).abs().max() > 0.1


def test_nearest_to_a_correlated_normal_it_finds_that_normal() -> None:
    # argmin over q of KL(q ‖ N(m, C)) is N(m, C): free entries and exp diagonal reach every covariance.
    random = np.random.default_rng(3)
    root = random.normal(size=(3, 3))
    target = torch.distributions.MultivariateNormal(
        torch.from_numpy(random.normal(size=3)), torch.from_numpy(root @ root.T + 0.1 * np.eye(3))
    )
    head = FullHead(n_features=1, n_latents=3).double()
    free = [head.mean.bias, head.log_conditional_variance.bias, head.below.bias]
    nothing = torch.zeros(1, 1).double()

    def divergence() -> torch.Tensor:
        q = head(nothing)
        return torch.distributions.kl_divergence(
            torch.distributions.MultivariateNormal(q.mean, scale_tril=q.factor), target
        ).sum()

    assert minimise(divergence, free) < 1e-6
    q = head(nothing)
    torch.testing.assert_close(q.mean[0], target.mean)
    torch.testing.assert_close(q.covariance[0], target.covariance_matrix)


@pytest.mark.parametrize("initialisation", ["glorot", "kaiming", "torch"])
def test_training_starts_from_the_diagonal_posterior_of_the_same_seed(initialisation: str) -> None:
    models = [
        Blueprint(
            MlpNet((8,), (8,)), recipe, IsotropicPrior(), GaussianLikelihood(), 3, (5,), initialisation
        ).build(seed=7)
        for recipe in (FullPosterior(), DiagonalPosterior())
    ]
    x = torch.randn(6, 5, generator=torch.Generator().manual_seed(0))
    q, diagonal = (model.encode(x) for model in models)
    assert torch.equal(q.mean, diagonal.mean)
    assert torch.equal(q.log_determinant, diagonal.log_determinant)
    assert (q.below == 0).all()
    # … and leaves it: the first gradient below the diagonal is not 0.
    z = q.sample(torch.Generator().manual_seed(1))
    (-models[0].decode(z).log_density(x)).mean().backward()
    assert (models[0].encoder.head.below.weight.grad != 0).any()


@pytest.mark.parametrize("n_latents", [1, 2, 5])
def test_the_head_has_as_many_outputs_as_mean_and_triangle(n_latents: int) -> None:
    head = FullPosterior().head(n_features=7, n_latents=n_latents)
    n_outputs = n_latents + n_latents * (n_latents + 1) // 2
    assert sum(p.numel() for p in head.parameters()) == (7 + 1) * n_outputs
