"""Product of Student-t priors."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy import integrate, optimize, stats

from oracles import assert_mean_is, random_rotation
from polariscope.core.errors import InputError
from polariscope.models.priors.student_t import StudentPrior, StudentPriorModule, nearest_variance

DEGREES = [0.5, 1.0, 2.0, 3.0, 9.0, 100.0, 1e6]


def built(degrees: float, n_latents: int = 3) -> StudentPriorModule:
    return StudentPrior(degrees).build(n_latents, None, 0, torch.Generator()).double()


def expected_kl(variance: float, degrees: float) -> float:
    """KL(N(0, s²) ‖ t_ν) by adaptive quadrature."""
    scale = math.sqrt(variance)
    cross, _ = integrate.quad(
        lambda e: -2 * stats.norm.pdf(e) * stats.t.logpdf(scale * e, degrees), 0, 15, epsabs=1e-13, limit=500
    )
    return cross - 0.5 * math.log(2 * math.pi * math.e * variance)


@pytest.mark.parametrize("degrees", DEGREES)
def test_log_density_is_that_of_the_t_distribution(degrees: float) -> None:
    z = np.random.default_rng(0).standard_t(2, size=(50, 3))
    found = built(degrees).log_density(torch.from_numpy(z)).numpy()
    # log Γ(5·10⁵) is 6·10⁶, so the difference of two of them is off by 1e-9.
    np.testing.assert_allclose(found, stats.t.logpdf(z, degrees), rtol=1e-9, atol=1e-9)


def test_many_degrees_of_freedom_are_nearly_normal() -> None:
    z = np.linspace(-4, 4, 201)[:, None]
    # log t_ν − log φ = (z⁴ − 2z² − 1)/(4ν) + O(ν⁻²), at most (256 − 32 − 1)/(4ν) on [−4, 4].
    for degrees in (1e4, 1e6):
        gap = built(degrees, 1).log_density(torch.from_numpy(z)).numpy() - stats.norm.logpdf(z)
        series = (z**4 - 2 * z**2 - 1) / (4 * degrees)
        np.testing.assert_allclose(gap, series, atol=2000 / degrees**2 + 1e-9)
        assert np.abs(gap).max() < 56 / degrees


@pytest.mark.parametrize("degrees", DEGREES)
def test_draws_follow_the_t_distribution(degrees: float) -> None:
    draws = built(degrees).sample(5000, torch.Generator().manual_seed(0)).numpy().ravel()
    # A Kolmogorov–Smirnov statistic above 2.75/√n has a probability of 5e-7, as five standard errors.
    statistic = stats.kstest(draws, stats.t(degrees).cdf).statistic
    assert statistic < 2.75 / math.sqrt(draws.size)


def test_draws_have_the_variance_where_there_is_one_and_independent_latents() -> None:
    draws = built(20.0).sample(40_000, torch.Generator().manual_seed(0)).numpy()
    products = (draws[:, :, None] * draws[:, None, :]).reshape(-1, 9)
    assert_mean_is(draws, 0.0)
    assert_mean_is(products, (20 / 18 * np.eye(3)).ravel())
    squares = draws**2 - 20 / 18  # those of a joint t would be correlated
    assert_mean_is(squares[:, [0, 0, 1]] * squares[:, [1, 2, 2]], 0.0)


def test_draws_are_finite_in_single_precision_with_the_fewest_degrees() -> None:
    made = StudentPrior(0.5).build(10, None, 0, torch.Generator())
    draws = made.sample(100_000, torch.Generator().manual_seed(0))
    assert torch.isfinite(draws).all()
    assert torch.isfinite(made.log_density(draws)).all()


@pytest.mark.parametrize("degrees", DEGREES)
def test_the_passive_variance_is_the_minimum_found_by_search(degrees: float) -> None:
    found = optimize.minimize_scalar(
        lambda log_variance: expected_kl(math.exp(log_variance), degrees),
        bracket=(-1, 0.5, 3),
        options={"xtol": 1e-9},
    )
    # A minimum can be found to the root of the rounding of the function, some 1e-6.
    assert nearest_variance(degrees) == pytest.approx(math.exp(found.x), rel=1e-5)
    mean, variance = built(degrees).passive_shape()
    assert mean.tolist() == [0.0] * 3
    np.testing.assert_allclose(variance.numpy(), nearest_variance(degrees), rtol=1e-6)


def test_the_series_takes_over_where_the_equation_would_lose_its_digits() -> None:
    below, above = nearest_variance(1e5), nearest_variance(1e5 + 1)
    assert above == pytest.approx(below, abs=1e-9)  # 2/ν² is 2e-10


def test_it_is_not_rotation_invariant() -> None:
    z = torch.from_numpy(np.random.default_rng(0).normal(size=(5, 3)))
    rotated = z @ torch.from_numpy(random_rotation(3, seed=1))
    made = built(3.0)
    assert (made.log_density(rotated) - made.log_density(z)).sum(1).abs().max() > 0.1


def test_it_says_what_a_passive_latent_looks_like() -> None:
    assert built(9.0).meaning_of_passive == (
        "its posterior is close to N(0, 1.21) for every input, the Gaussian nearest to the prior, a Student-t with 9 "
        "degrees of freedom"
    )


def test_it_is_no_normal_and_has_nothing_to_store() -> None:
    made = built(9.0)
    assert made.normal() is None
    assert not made.state_dict()


@pytest.mark.parametrize("degrees", [0.0, -1.0, 0.4, float("inf"), float("nan")])
def test_degrees_that_are_none_are_refused(degrees: float) -> None:
    with pytest.raises(
        InputError, match=r"degrees_of_freedom must be (at least 0.5|finite), got .*isotropic"
    ):
        StudentPrior(degrees)
