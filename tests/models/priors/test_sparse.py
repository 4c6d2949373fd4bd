"""Spike and slab."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy import optimize, stats

from oracles import assert_mean_is, random_rotation
from polariscope.core.errors import InputError
from polariscope.models.posteriors import kl
from polariscope.models.posteriors.diagonal import DiagonalGaussian
from polariscope.models.priors.sparse import SparsePrior, SparsePriorModule, nearest_variances

SHAPES = [(0.9, 0.05), (0.8, 0.05), (0.5, 0.3), (0.1, 0.01), (0.9, math.sqrt(0.05))]


def built(weight: float, scale: float, n_latents: int = 2) -> SparsePriorModule:
    return SparsePrior(weight, scale).build(n_latents, None, 0, torch.Generator()).double()


def log_density(z: np.ndarray, weight: float, scale: float) -> np.ndarray:
    return np.logaddexp(
        np.log(1 - weight) + stats.norm.logpdf(z), np.log(weight) + stats.norm.logpdf(z, 0, scale)
    )


def expected_kl(log_variance: float, weight: float, scale: float) -> float:
    """KL(N(0, s²) ‖ p) on a grid that is fine where the spike is."""
    s = math.exp(log_variance / 2)
    u = np.linspace(-14, math.log(14), 8001)
    z = s * np.exp(u)
    masses = 2 * stats.norm.pdf(np.exp(u)) * np.exp(u) * (u[1] - u[0])
    return float(masses @ (stats.norm.logpdf(z, 0, s) - log_density(z, weight, scale)))


@pytest.mark.parametrize(("weight", "scale"), SHAPES)
def test_log_density_is_that_of_the_two_normals(weight: float, scale: float) -> None:
    z = np.concatenate([np.random.default_rng(0).normal(size=(50, 2)) * s for s in (scale, 1, 20)])
    found = built(weight, scale).log_density(torch.from_numpy(z)).numpy()
    np.testing.assert_allclose(found, log_density(z, weight, scale), rtol=1e-12)


@pytest.mark.parametrize(("weight", "scale"), SHAPES)
def test_draws_have_the_moments_of_the_two_normals_and_independent_latents(
    weight: float, scale: float
) -> None:
    draws = built(weight, scale).sample(40_000, torch.Generator().manual_seed(0)).numpy()
    second = 1 - weight + weight * scale**2
    fourth = 3 * (1 - weight + weight * scale**4)
    assert_mean_is(draws, 0.0)
    assert_mean_is(draws**2, second)
    assert_mean_is(draws**4, fourth)
    assert_mean_is((draws[:, 0] ** 2 - second) * (draws[:, 1] ** 2 - second), 0.0)


@pytest.mark.parametrize(("weight", "scale", "normal"), [(0.0, 0.05, 1.0), (0.7, 1.0, 1.0), (1.0, 0.2, 0.2)])
def test_without_spike_or_slab_it_is_a_normal_with_an_exact_kl(
    weight: float, scale: float, normal: float
) -> None:
    made = built(weight, scale)
    z = torch.randn(
        30, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64, requires_grad=True
    )
    found = made.log_density(z)
    np.testing.assert_allclose(
        found.detach().numpy(), stats.norm.logpdf(z.detach().numpy(), 0, normal), rtol=1e-12
    )
    (gradient,) = torch.autograd.grad(found.sum(), z)
    torch.testing.assert_close(gradient, -z.detach() / normal**2)
    mean, log_variance = made.normal()
    np.testing.assert_allclose(log_variance.numpy(), 2 * math.log(normal), atol=1e-6)
    assert mean.tolist() == [0.0, 0.0]
    # made in float32, so that at the prior itself the rate is the square of its rounding
    rate = kl(
        DiagonalGaussian(mean[None], torch.full((1, 2), 2 * math.log(normal)).double()), made, mean[None]
    )
    assert float(rate.max()) < 1e-12
    draws = made.sample(20_000, torch.Generator().manual_seed(0)).numpy()
    assert_mean_is(draws**2, normal**2)


def test_a_vanishing_spike_tends_to_the_normal() -> None:
    z = np.linspace(0.5, 4, 50)[:, None]  # beyond the spike
    gap = built(1e-6, 0.05, 1).log_density(torch.from_numpy(z)).numpy() - stats.norm.logpdf(z)
    np.testing.assert_allclose(gap, math.log1p(-1e-6), rtol=1e-6)


@pytest.mark.parametrize(("weight", "scale"), SHAPES)
def test_the_passive_variance_is_the_lowest_minimum_found_by_search(weight: float, scale: float) -> None:
    grid = np.linspace(2 * math.log(scale) - 1, 1, 100)
    start = grid[np.argmin([expected_kl(x, weight, scale) for x in grid])]
    width = grid[1] - grid[0]
    found = optimize.minimize_scalar(
        expected_kl, bracket=(start - width, start, start + width), args=(weight, scale)
    )
    # A minimum can be found to the root of the rounding of the function, some 1e-6 where it is flat.
    assert nearest_variances(weight, scale)[0] == pytest.approx(math.exp(found.x), rel=1e-5)
    mean, variance = built(weight, scale).passive_shape()
    assert mean.tolist() == [0.0, 0.0]
    np.testing.assert_allclose(variance.numpy(), math.exp(found.x), rtol=1e-5)


def test_by_default_a_passive_latent_lies_in_the_spike() -> None:
    (variance,) = nearest_variances(0.9, 0.05)
    assert 0.05**2 < variance < 1.1 * 0.05**2
    assert built(0.9, 0.05).meaning_of_passive == (
        "its posterior is close to N(0, 0.00266) for every input, the Gaussian nearest to the spike-and-slab prior"
    )


def test_a_second_resting_place_is_told() -> None:
    nearest, other = nearest_variances(0.8, 0.05)
    for variance in (nearest, other):
        here = expected_kl(math.log(variance), 0.8, 0.05)
        assert all(expected_kl(math.log(variance) + d, 0.8, 0.05) > here for d in (-0.02, 0.02))
    assert expected_kl(math.log(other), 0.8, 0.05) > expected_kl(math.log(nearest), 0.8, 0.05)
    assert "can also converge to N(0, 0.472), a worse fit" in built(0.8, 0.05).meaning_of_passive


@pytest.mark.parametrize(
    ("weight", "scale"), [(1e-12, 0.05), (1 - 1e-12, 0.05), (0.5, 1e-4), (0.9, 1 - 1e-9), (0.5, 1.0)]
)
def test_there_is_a_passive_variance_between_spike_and_slab_whatever_the_options(
    weight: float, scale: float
) -> None:
    for variance in nearest_variances(weight, scale):
        assert scale**2 * (1 - 1e-9) <= variance <= 1 + 1e-9


def test_it_is_not_rotation_invariant() -> None:
    z = torch.from_numpy(np.random.default_rng(0).normal(size=(5, 3)))
    rotated = z @ torch.from_numpy(random_rotation(3, seed=1))
    made = built(0.9, 0.3, 3)
    assert ((made.log_density(rotated) - made.log_density(z)).sum(1).abs() > 1e-3).all()


@pytest.mark.parametrize("weight", [-0.1, 1.1, float("nan")])
def test_a_weight_that_is_no_probability_is_refused(weight: float) -> None:
    with pytest.raises(
        InputError, match=r"spike_weight must (lie between 0 and 1|be finite), got .*; it is a probability"
    ):
        SparsePrior(spike_weight=weight)


@pytest.mark.parametrize("scale", [0.0, -0.1, 1.5, 1e-5, float("nan")])
def test_a_spike_that_is_none_is_refused(scale: float) -> None:
    with pytest.raises(
        InputError, match=r"spike_scale must (lie between 0\.0001 and 1|be finite), got .* slab"
    ):
        SparsePrior(spike_scale=scale)
