"""Negative binomial likelihood of counts."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats

from oracles import assert_mean_is
from polariscope.models.likelihoods.negative_binomial import (
    NegativeBinomialDistribution,
    NegativeBinomialLikelihood,
    log_rising,
)
from polariscope.models.likelihoods.poisson import PoissonDistribution

X = torch.tensor([[3, 0, 7, 2], [0, 0, 0, 0], [1, 1, 0, 50]], dtype=torch.float64)
LOGITS = torch.tensor([[0.3, -1.0, 2.0, 0.0]], dtype=torch.float64).repeat(3, 1)


def of(kind: type, mean: torch.Tensor, **more: Any) -> Any:
    """Counts with these means."""
    one = torch.ones((), dtype=mean.dtype)
    return kind(torch.log(mean), one, has_sizes=False, **more)


def negative_binomial(mean: torch.Tensor, theta: float) -> NegativeBinomialDistribution:
    return of(
        NegativeBinomialDistribution, mean, log_dispersion=torch.tensor(math.log(theta), dtype=mean.dtype)
    )


@pytest.mark.parametrize("theta", [0.01, 1.0, 15.9, 16.1, 1e4])
def test_the_log_density_is_that_of_a_negative_binomial_with_mean_size_times_proportion(theta: float) -> None:
    head = NegativeBinomialLikelihood(dispersion=theta).head((4,)).double()
    with torch.no_grad():
        head.log_dispersion.fill_(math.log(theta))  # made in float32
    found = head(LOGITS).log_density(X).detach().numpy()
    mean = np.array([[12.0], [1.0], [52.0]]) * torch.softmax(LOGITS, 1).numpy()  # an empty row has size 1
    expected = stats.nbinom.logpmf(X.numpy(), theta, theta / (theta + mean)).sum(1)
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_a_large_dispersion_is_poisson_in_double_and_single_precision() -> None:
    for dtype, tolerance in ((torch.float64, 1e-9), (torch.float32, 2e-5)):
        x, mean = X.to(dtype), 1 + X.to(dtype)
        limit = of(PoissonDistribution, mean).log_density(x)
        found = negative_binomial(mean, 1e12).log_density(x)
        torch.testing.assert_close(found, limit, rtol=tolerance, atol=tolerance)


def test_it_is_poisson_with_a_rate_from_a_gamma_distribution() -> None:
    theta, mean = 2.5, 4.0
    rates = np.linspace(0, 120, 100_001)
    density = stats.gamma.pdf(rates, theta, scale=mean / theta)
    for x in (0.0, 1.0, 6.0, 20.0):
        mixture = np.trapezoid(stats.poisson.pmf(x, rates) * density, rates)
        count = torch.tensor([[x]], dtype=torch.float64)
        found = negative_binomial(torch.full_like(count, mean), theta).log_density(count)
        assert math.exp(float(found)) == pytest.approx(mixture, rel=1e-6)


def test_probabilities_add_up_to_one() -> None:
    counts = torch.arange(3000, dtype=torch.float64)[:, None]
    for theta in (0.3, 3.0, 300.0):
        density = torch.exp(negative_binomial(torch.full_like(counts, 9.0), theta).log_density(counts))
        assert float(density.sum()) == pytest.approx(1, abs=1e-12)


def test_draws_have_variance_mean_plus_its_square_over_theta() -> None:
    mean, theta = 3.0, 2.0
    p = negative_binomial(torch.full((40_000, 1), mean, dtype=torch.float64), theta)
    draws = p.sample(torch.Generator().manual_seed(0)).numpy()
    assert_mean_is(draws, mean)
    assert_mean_is((draws - mean) ** 2, mean + mean**2 / theta)


def test_the_gradient_vanishes_at_the_best_dispersion_and_at_the_best_mean() -> None:
    # For one value in many samples the best mean is the average, whatever θ. The best θ solves a score equation, whose
    # expectation is 0 at the θ that drew the counts: here the sum over all counts, weighted by their probability.
    counts = torch.arange(2000, dtype=torch.float64)[:, None]
    log_theta = torch.tensor(math.log(1.7), dtype=torch.float64, requires_grad=True)
    log_mean = torch.tensor(math.log(5.0), dtype=torch.float64, requires_grad=True)
    one = torch.ones((), dtype=torch.float64)
    p = NegativeBinomialDistribution(log_mean.expand(2000, 1), one, has_sizes=False, log_dispersion=log_theta)
    log_density = p.log_density(counts)
    (torch.exp(log_density.detach()) * log_density).sum().backward()
    assert abs(float(log_theta.grad)) < 1e-10
    assert abs(float(log_mean.grad)) < 1e-10


def test_the_gamma_ratio_neither_cancels_nor_jumps() -> None:
    x = torch.arange(1, 60, dtype=torch.float64)
    for theta in (15.999, 16.0, 16.001, 1e3, 1e8):
        exact = torch.tensor(
            [sum(math.log(theta + k) for k in range(int(n))) for n in x], dtype=torch.float64
        )
        torch.testing.assert_close(log_rising(torch.full_like(x, theta), x), exact, rtol=1e-11, atol=1e-10)
        single = log_rising(torch.full_like(x, theta).float(), x.float())
        torch.testing.assert_close(single.double(), exact, rtol=3e-6, atol=1e-4)


def test_values_and_gradients_are_finite_in_single_precision() -> None:
    raw = torch.tensor([[80.0, -80.0, 0.0]]).repeat(2, 1).requires_grad_()
    x = torch.tensor([[0.0, 1e6, 3.0], [0.0, 0.0, 0.0]])
    for theta in (1e-6, 1.0, 1e8):
        head = NegativeBinomialLikelihood(dispersion=theta).head((3,))
        found = head(raw).log_density(x)
        assert torch.isfinite(found).all()
        gradients = torch.autograd.grad(found.sum(), [raw, head.log_dispersion])
        assert all(torch.isfinite(gradient).all() for gradient in gradients)


@pytest.mark.parametrize(
    ("learned", "shapes", "words"),
    [
        ("no", [], "dispersion fixed at 2"),
        ("shared", [()], "dispersion learned, one for all values (initially 2)"),
        ("per-feature", [(3,)], "dispersion learned, one for each feature (initially 2)"),
    ],
)
def test_the_dispersion_is_fixed_shared_or_one_for_each_feature(
    learned: Any, shapes: list[tuple[int, ...]], words: str
) -> None:
    likelihood = NegativeBinomialLikelihood(dispersion=2.0, learned=learned)
    assert [tuple(p.shape) for p in likelihood.head((3,)).parameters()] == shapes
    assert likelihood.scale_in_words == words
