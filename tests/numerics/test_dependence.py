import math

import numpy as np
import pytest

from analysis.regime.linear_vae import orthogonal_columns
from polariscope.numerics.dependence import (
    correlation,
    covariance,
    noise_free_covariance,
    total_correlation,
    total_correlation_of,
)


@pytest.mark.parametrize("rho", [-0.999, -0.5, 0.0, 0.3, 0.9])
def test_a_pair_has_the_closed_form(rho):
    x = orthogonal_columns(100, 2) @ np.array([[1.0, rho], [0.0, math.sqrt(1 - rho**2)]])
    assert total_correlation(x) == pytest.approx(-0.5 * math.log(1 - rho**2), abs=1e-11)


def test_it_is_half_the_sum_of_log_variances_minus_the_log_determinant():
    x = np.random.default_rng(0).normal(size=(200, 5)) @ np.random.default_rng(1).normal(size=(5, 5))
    c = np.cov(x.T)
    np.testing.assert_allclose(covariance(x), c, rtol=1e-12, atol=1e-14)
    expected = 0.5 * (np.log(np.diag(c)).sum() - np.linalg.slogdet(c)[1])
    assert total_correlation(x) == pytest.approx(expected, rel=1e-12)


def test_independent_columns_do_not_change_it():
    columns = orthogonal_columns(500, 7)
    dependent = columns[:, :3] @ np.random.default_rng(1).normal(size=(3, 3))
    both = np.concatenate([dependent, columns[:, 3:]], axis=1)
    assert total_correlation(dependent) > 0.1
    assert total_correlation(both) == pytest.approx(total_correlation(dependent), abs=1e-10)


def test_scale_shift_sign_and_order_of_latents_and_samples_do_not_change_it():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 4)) @ rng.normal(size=(4, 4))
    moved = (x * [1e-6, -3.0, 1e5, 0.1] + [1e-3, 5.0, -1e4, 0.0])[rng.permutation(300)][:, [2, 0, 3, 1]]
    assert total_correlation(moved) == pytest.approx(total_correlation(x), rel=1e-9)


def test_a_rotation_does_change_it():
    x = orthogonal_columns(100, 2) * [1.0, 3.0]
    turn = np.array([[1.0, -1.0], [1.0, 1.0]]) / math.sqrt(2)
    assert total_correlation(x) == pytest.approx(0, abs=1e-12)
    # Equal variances 5 and covariance 4: ρ = 4/5.
    assert total_correlation(x @ turn) == pytest.approx(-0.5 * math.log(1 - 0.8**2), abs=1e-12)


@pytest.mark.parametrize("size", [1e-6, 0.1, 1e6])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_constant_column_adds_nothing(dtype, size):
    x = np.random.default_rng(0).normal(size=(100, 2)).astype(dtype)
    x[:, 1] += x[:, 0]
    constant = np.full((100, 1), size, dtype=dtype)
    constant[50:] = np.nextafter(constant[0], dtype(2 * size))  # varies by rounding only
    both = np.concatenate([x, constant], axis=1)
    assert total_correlation(both) == pytest.approx(total_correlation(x), abs=1e-14)
    assert correlation(covariance(both))[2].tolist() == [0, 0, 1]


def test_constant_columns_alone_and_a_single_column_have_none():
    assert total_correlation(np.full((10, 3), 0.3)) == 0
    assert total_correlation(np.arange(10.0)[:, None]) == 0


def test_linear_dependence_is_infinite_and_so_are_too_few_samples():
    x = np.random.default_rng(0).normal(size=(100, 3))
    assert total_correlation(np.concatenate([x, x @ np.ones((3, 1))], axis=1)) == math.inf
    assert total_correlation(np.concatenate([x, -3 * x[:, :1]], axis=1).astype(np.float32)) == math.inf
    assert total_correlation(x[:3]) == math.inf
    assert math.isfinite(total_correlation(x[:5]))


def test_one_dependent_column_among_many_is_infinite_whatever_rounding_leaves_of_its_eigenvalue():
    for seed in range(20):
        x = np.random.default_rng(seed).normal(size=(200, 40))
        assert math.isfinite(total_correlation(x))
        x[:, 7] = x[:, [3, 20, 31]].sum(axis=1)
        assert total_correlation(x) == math.inf


def test_the_noise_free_covariance_is_the_limit_of_sampled_ones():
    rng = np.random.default_rng(0)
    n, n_draws = 2000, 200
    mean = rng.normal(size=(n, 2)) @ np.array([[1.0, 0.8], [0.0, 0.6]])
    variance = rng.uniform(0.0, 1.0, size=(n, 2))
    draws = (covariance(mean + np.sqrt(variance) * rng.normal(size=mean.shape)) for _ in range(n_draws))
    limit = total_correlation_of(sum(draws) / n_draws)
    exact = noise_free_covariance(mean, variance)
    rho = correlation(exact)[0, 1]
    # A correlation of N Gaussian pairs has the standard error (1 − ρ²)/√N, and dTC/dρ = ρ/(1 − ρ²).
    assert limit == pytest.approx(total_correlation_of(exact), abs=5 * rho / math.sqrt(n * n_draws))
    assert total_correlation(mean) > 1.5 * limit  # the noise of the posterior hides correlation


def test_posteriors_with_a_full_covariance_add_its_mean():
    rng = np.random.default_rng(1)
    mean, roots = rng.normal(size=(50, 3)), rng.normal(size=(50, 3, 3))
    posterior = roots @ roots.transpose(0, 2, 1)
    variance = np.diagonal(posterior, axis1=1, axis2=2)
    found = noise_free_covariance(mean, variance, posterior)
    np.testing.assert_allclose(found, np.cov(mean.T) + posterior.mean(axis=0), rtol=1e-12)
    diagonal = noise_free_covariance(mean, variance, variance[:, :, None] * np.eye(3))
    np.testing.assert_allclose(diagonal, noise_free_covariance(mean, variance), rtol=1e-12)
