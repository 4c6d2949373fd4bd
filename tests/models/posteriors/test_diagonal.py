"""Gaussian posterior with independent latents."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from oracles import STANDARD_ERRORS, assert_mean_is, normal_kl_by_quadrature
from polariscope.models.posteriors import kl
from polariscope.models.posteriors.diagonal import DiagonalGaussian, DiagonalPosterior
from polariscope.models.priors import AbstractPriorModule
from polariscope.models.priors.isotropic import IsotropicPrior


def gaussian(mean: object, variance: object, n_samples: int = 1) -> DiagonalGaussian:
    rows = [torch.as_tensor(value, dtype=torch.float64).expand(n_samples, -1) for value in (mean, variance)]
    return DiagonalGaussian(rows[0], rows[1].log())


class UndeclaredNormal(AbstractPriorModule):
    """N(m, s²) that does not say that it is normal, so that the KL must be estimated."""

    def __init__(self, mean: float, scale: float) -> None:
        super().__init__()
        self.n_latents, self.meaning_of_passive = 3, "nothing"
        self.distribution = torch.distributions.Normal(
            torch.tensor(mean, dtype=torch.float64), torch.tensor(scale, dtype=torch.float64)
        )

    def log_density(self, z: torch.Tensor) -> torch.Tensor:
        return self.distribution.log_prob(z)

    def sample(self, n_samples: int, generator: torch.Generator) -> torch.Tensor:
        raise AssertionError("the KL never draws from the prior")

    def passive_shape(self) -> tuple[torch.Tensor, torch.Tensor]:
        raise AssertionError("the KL never asks what passive means")


def test_log_density_is_the_normal_one() -> None:
    random = np.random.default_rng(0)
    mean, variance, z = random.normal(size=(5, 3)), random.gamma(1.0, size=(5, 3)), random.normal(size=(5, 3))
    q = DiagonalGaussian(torch.from_numpy(mean), torch.from_numpy(np.log(variance)))
    np.testing.assert_allclose(
        q.log_density(torch.from_numpy(z)).numpy(), stats.norm.logpdf(z, mean, np.sqrt(variance)), rtol=1e-12
    )
    np.testing.assert_allclose(q.variance.numpy(), variance, rtol=1e-14)


@pytest.mark.parametrize("posterior", [(0.0, 1.0), (1.3, 0.2), (-2.0, 5.0), (0.1, 0.01)])
@pytest.mark.parametrize("prior", [(0.0, 1.0), (0.5, 4.0), (-1.0, 0.25)])
def test_kl_is_the_integral_of_its_definition(
    posterior: tuple[float, float], prior: tuple[float, float]
) -> None:
    normal = (torch.tensor([value], dtype=torch.float64) for value in (prior[0], math.log(prior[1])))
    found = gaussian([posterior[0]], [posterior[1]]).kl_to_normal(*normal)
    assert float(found) == pytest.approx(normal_kl_by_quadrature(*posterior, *prior), rel=1e-9, abs=1e-10)


@settings(deadline=None, derandomize=True)
@given(st.floats(-5, 5), st.floats(-6, 6), st.floats(-5, 5), st.floats(-6, 6))
def test_kl_agrees_with_an_independent_implementation_and_is_never_negative(
    mean: float, log_variance: float, prior_mean: float, prior_log_variance: float
) -> None:
    values = [
        torch.tensor([[v]], dtype=torch.float64) for v in (mean, log_variance, prior_mean, prior_log_variance)
    ]
    found = DiagonalGaussian(*values[:2]).kl_to_normal(*values[2:])
    expected = torch.distributions.kl_divergence(
        torch.distributions.Normal(values[0], (values[1] / 2).exp()),
        torch.distributions.Normal(values[2], (values[3] / 2).exp()),
    )
    # Both subtract numbers of the size of the ratio of the variances; theirs loses to it what ours keeps.
    size = 1 + math.exp(abs(log_variance - prior_log_variance))
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-14 * size)
    assert float(found) >= 0


@pytest.mark.parametrize("scale", [0.5, 1.0, 3.0])
def test_kl_to_the_prior_itself_is_zero_with_zero_gradient(scale: float) -> None:
    prior = IsotropicPrior(scale).build(4, None, 0, torch.Generator()).double()
    mean = torch.zeros(2, 4, dtype=torch.float64, requires_grad=True)
    log_variance = prior.log_variance.repeat(2, 1).requires_grad_()
    rate = kl(DiagonalGaussian(mean, log_variance), prior, mean)
    assert rate.shape == (2, 4)
    assert (rate == 0).all()
    gradients = torch.autograd.grad(rate.sum(), [mean, log_variance])
    assert all((gradient == 0).all() for gradient in gradients)


@pytest.mark.parametrize("step", [1e-1, 1e-2, 1e-3, 1e-4])
def test_kl_of_a_nearly_passive_latent_is_precise_in_single_precision(step: float) -> None:
    # With μ = 0 and log σ² = t the KL is ½(e^t − 1 − t) = t²/4 + t³/12 + …. Near 0 even expm1(t) − t cancels:
    # its rounding error is 2⁻²⁴·t against t²/2, so a relative 1e-6 needs μ to carry the KL.
    t = torch.tensor([[step]])
    zero = torch.zeros(1)
    exact = 0.5 * (math.expm1(float(t)) - float(t))
    variance_only = float(DiagonalGaussian(torch.zeros(1, 1), t).kl_to_normal(zero, zero))
    assert variance_only == pytest.approx(exact, rel=max(1e-6, 2.0**-23 / step))
    with_mean = float(DiagonalGaussian(torch.full((1, 1), 0.1), t).kl_to_normal(zero, zero))
    mean = float(np.float32(0.1))
    assert with_mean == pytest.approx(exact + 0.5 * mean**2, rel=1e-6)


def test_the_naive_difference_loses_what_expm1_keeps() -> None:
    t = torch.tensor(1e-3)
    exact = 0.5 * (math.expm1(float(t)) - float(t))
    naive = 0.5 * (float(t.exp()) - 1 - float(t))
    ours = float(
        DiagonalGaussian(torch.zeros(1, 1), t.reshape(1, 1)).kl_to_normal(torch.zeros(1), torch.zeros(1))
    )
    assert abs(ours - exact) < 0.01 * abs(naive - exact)


def test_draws_have_the_mean_and_variance_and_no_correlation() -> None:
    mean, variance = np.array([-1.0, 0.0, 2.0]), np.array([0.01, 1.0, 4.0])
    draws = gaussian(mean, variance, 20_000).sample(torch.Generator().manual_seed(0)).numpy()
    assert_mean_is(draws, mean)
    deviations = draws - mean
    assert_mean_is(
        (deviations[:, :, None] * deviations[:, None, :]).reshape(-1, 9), np.diag(variance).ravel()
    )


def test_a_draw_is_differentiable_by_reparametrisation() -> None:
    mean = torch.zeros(1, 2, dtype=torch.float64, requires_grad=True)
    log_variance = torch.tensor([[0.0, math.log(4.0)]], dtype=torch.float64, requires_grad=True)
    z = DiagonalGaussian(mean, log_variance).sample(torch.Generator().manual_seed(3))
    by_mean, by_log_variance = torch.autograd.grad(z.sum(), [mean, log_variance])
    assert (by_mean == 1).all()
    torch.testing.assert_close(by_log_variance, z.detach() / 2)  # dz/d log σ² = ½ σ ε = ½ (z − μ)


@pytest.mark.parametrize(("prior_mean", "prior_scale"), [(0.0, 1.0), (0.4, 1.5)])
def test_the_estimated_kl_agrees_with_the_closed_form(prior_mean: float, prior_scale: float) -> None:
    q = gaussian([0.0, 1.0, -0.5], [1.0, 0.3, 2.0], 20_000)
    z = q.sample(torch.Generator().manual_seed(0))
    estimate = kl(q, UndeclaredNormal(prior_mean, prior_scale), z)
    moments = torch.full((3,), prior_mean).double(), torch.full((3,), 2 * math.log(prior_scale)).double()
    exact = q.kl_to_normal(*moments)[0].numpy()
    spread = estimate.std(0).numpy() / math.sqrt(len(estimate))
    assert (np.abs(estimate.mean(0).numpy() - exact) <= STANDARD_ERRORS * spread + 1e-12).all()
    assert (estimate < 0).any()  # as the docstring warns


@pytest.mark.parametrize("scale", [0.5, 2.0])
def test_the_kl_to_a_scaled_prior_is_that_of_scaled_latents_to_the_standard_one(scale: float) -> None:
    q = gaussian([0.3, -1.0], [0.5, 2.0])
    scaled = DiagonalGaussian(q.mean * scale, q.log_variance + 2 * math.log(scale))
    unit, wide = (IsotropicPrior(s).build(2, None, 0, torch.Generator()).double() for s in (1.0, scale))
    torch.testing.assert_close(kl(scaled, wide, scaled.mean), kl(q, unit, q.mean), rtol=1e-6, atol=0)


def test_the_covariance_is_diagonal_and_its_log_determinant_the_sum_of_log_variances() -> None:
    q = gaussian([0.3, -1.0, 0.0], [0.5, 2.0, 1e-3], n_samples=2)
    torch.testing.assert_close(
        q.covariance, torch.diag(torch.tensor([0.5, 2.0, 1e-3]).double()).repeat(2, 1, 1)
    )
    torch.testing.assert_close(q.log_determinant, torch.logdet(q.covariance))


def test_the_head_is_two_affine_maps() -> None:
    head = DiagonalPosterior().head(n_features=7, n_latents=3)
    features = torch.randn(5, 7, generator=torch.Generator().manual_seed(0))
    q = head(features)
    torch.testing.assert_close(q.mean, features @ head.mean.weight.T + head.mean.bias)
    torch.testing.assert_close(q.log_variance, features @ head.log_variance.weight.T + head.log_variance.bias)
    assert sum(p.numel() for p in head.parameters()) == 2 * (7 * 3 + 3)
