import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from polariscope.analysis.regime.posterior import gaussian_kl
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
