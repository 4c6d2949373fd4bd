import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from polariscope.analysis.regime.posterior import (
    gaussian_kl,
    in_units_of_prior,
    kl_is_gaussian,
    prior_kind,
    relative_posterior,
)
from polariscope.analysis.representation import Representation
from polariscope.numerics.intervals import mean_with_interval


@pytest.mark.parametrize(
    ("mean", "variance", "prior_mean", "prior_variance"),
    [(0.0, 1.0, 0.0, 1.0), (1.5, 0.02, 0.0, 1.0), (-0.3, 1.2, 0.5, 4.0), (2.0, 0.5, -1.0, 0.3)],
)
def test_kl_equals_the_integral_of_its_definition(mean, variance, prior_mean, prior_variance):
    q, p = norm(mean, math.sqrt(variance)), norm(prior_mean, math.sqrt(prior_variance))
    width = 12 * math.sqrt(variance)  # beyond 12 standard deviations q is below 1e-31
    integral, _ = quad(
        lambda z: q.pdf(z) * (q.logpdf(z) - p.logpdf(z)), mean - width, mean + width, epsabs=1e-12, limit=200
    )
    found = gaussian_kl(np.array([[mean]]), np.array([[variance]]), prior_mean, prior_variance)
    assert found[0, 0] == pytest.approx(integral, abs=1e-9)


def test_kl_near_the_prior_keeps_its_digits_and_is_never_negative():
    # r − 1 − log r = δ²/2 − δ³/3 + … for r = 1 + δ, so that KL ≈ δ²/4.
    delta = 2.0**-20
    assert gaussian_kl(np.zeros((1, 1)), np.full((1, 1), 1 + delta))[0, 0] == pytest.approx(
        delta**2 / 4, rel=1e-3
    )
    near = 1 + np.linspace(-1e-8, 1e-8, 1001)[:, None]
    assert (gaussian_kl(np.zeros_like(near), near) >= 0).all()


def test_kl_of_a_point_is_infinite_and_of_a_tiny_variance_finite():
    found = gaussian_kl(np.zeros((1, 2)), np.array([[0.0, 1e-300]]))
    assert found[0, 0] == math.inf
    assert found[0, 1] == pytest.approx((300 * math.log(10) - 1) / 2)


def test_kl_does_not_change_when_posterior_and_prior_are_shifted_and_scaled_together():
    rng = np.random.default_rng(0)
    mean, variance = rng.normal(size=(50, 3)), rng.uniform(0.1, 2, size=(50, 3))
    np.testing.assert_allclose(
        gaussian_kl(3 * mean + 2, 9 * variance, 2.0, 9.0), gaussian_kl(mean, variance), rtol=1e-12, atol=1e-14
    )


def test_the_interval_covers_the_true_mean_nineteen_times_in_twenty():
    values = np.random.default_rng(0).exponential(size=(400, 2000))  # 2000 experiments with mean 1
    _, interval = mean_with_interval(values)
    covered = ((interval[:, 0] <= 1) & (interval[:, 1] >= 1)).mean()
    # 4 standard errors of a share of 0.95 in 2000, and 0.01 for the skewness of the exponential.
    assert covered == pytest.approx(0.95, abs=4 * math.sqrt(0.95 * 0.05 / 2000) + 0.01)


def test_a_latent_with_an_infinite_value_has_an_infinite_mean_and_interval():
    mean, interval = mean_with_interval(np.array([[1.0, math.inf], [1.0, 1.0]]), at_least=0.0)
    assert mean.tolist() == [1.0, math.inf]
    assert interval.tolist() == [[1.0, 1.0], [math.inf, math.inf]]


@pytest.mark.parametrize("per_sample", [False, True])
def test_moments_are_in_units_of_the_prior_which_is_standard_when_none_is_given(per_sample):
    rng = np.random.default_rng(0)
    mean, variance = rng.normal(size=(9, 2)), rng.uniform(0.1, 2, size=(9, 2))
    shape = (9, 2) if per_sample else (2,)
    prior_mean, prior_variance = rng.normal(size=shape), rng.uniform(0.1, 2, size=shape)
    prior = {"prior_mean": prior_mean, "prior_variance": prior_variance}
    found = relative_posterior(Representation(mean, variance, mean, **prior))
    np.testing.assert_allclose(found.mean * np.sqrt(prior_variance) + prior_mean, mean, rtol=1e-12)
    np.testing.assert_allclose(found.variance * prior_variance, variance, rtol=1e-12)
    expected = gaussian_kl(mean, variance, prior_mean, prior_variance)
    np.testing.assert_array_equal(found.kl, expected)
    np.testing.assert_array_equal(found.gaussian_kl, expected)
    np.testing.assert_array_equal(found.absolute_mean, mean)
    np.testing.assert_array_equal(found.absolute_variance, variance)
    plain = relative_posterior(Representation(mean, variance, mean))
    np.testing.assert_array_equal(plain.mean, mean)
    np.testing.assert_array_equal(plain.variance, variance)
    assert (plain.prior, found.prior) == ("standard", "conditional" if per_sample else "fixed")


@pytest.mark.parametrize(
    ("prior_mean", "prior_variance", "kind"),
    [
        (0.0, 1.0, "standard"),
        ([0.0, 0.0], [1.0, 1.0], "standard"),
        ([[0.0, 0.0]] * 3, [[1.0, 1.0]] * 3, "standard"),
        ([0.0, 1.0], [1.0, 1.0], "fixed"),
        ([0.0, 0.0], [1.0, 0.5], "fixed"),
        ([1.0, 1.0], [0.0, 0.0], "fixed"),
        ([[0.0, 2.0]] * 3, [1.0, 1.0], "fixed"),  # latents differ, samples do not
        ([[0.0, 0.0], [0.0, 0.1], [0.0, 0.0]], [1.0, 1.0], "conditional"),
        ([0.0, 0.0], [[1.0, 1.0], [1.0, 1.0], [1.0, 2.0]], "conditional"),
    ],
)
def test_a_prior_is_conditional_only_when_samples_have_different_ones(prior_mean, prior_variance, kind):
    assert prior_kind(np.array(prior_mean), np.array(prior_variance)) == kind


def test_a_models_own_kl_is_gaussian_when_its_mean_of_each_latent_is():
    rng = np.random.default_rng(0)
    mean, variance = rng.normal(size=(100, 2)), rng.uniform(0.1, 1, size=(100, 2))
    kl = gaussian_kl(mean, variance)

    def judged(rate):
        return bool(kl_is_gaussian(in_units_of_prior(mean, variance, np.zeros(2), np.ones(2), rate)))

    assert judged(kl)
    assert judged(kl[::-1].copy())  # estimates of single samples may differ
    assert not judged(kl[:, ::-1].copy())
    assert not judged(kl + 0.1)
