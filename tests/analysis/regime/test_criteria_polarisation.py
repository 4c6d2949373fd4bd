import math

import numpy as np
import pytest

from analysis.regime.linear_vae import linear_vae
from polariscope.analysis.regime.criteria import polarisation
from polariscope.analysis.regime.posterior import relative_posterior
from polariscope.analysis.representation import Representation


def delta(mean, variance, **prior):
    return polarisation(relative_posterior(Representation(mean, variance, mean, **prior)))


def test_the_linear_vae_has_a_closed_form():
    # Active: KL ½ log(λ/βγ), of which the approximation leaves out σ²/2; std(μ) = √(1 − σ²).
    noise = 0.5
    eigenvalues = np.array([20.0, 10.0, 5.0, 0.6, 0.1])
    found = delta(*linear_vae(eigenvalues, noise)[:2])
    assert found.active == (0, 1, 2)  # the fourth has std √(1 − 0.5/0.6) = 0.41
    kls = 0.5 * np.log(np.maximum(1, eigenvalues / noise))
    approximate = (kls - 0.5 * noise / eigenvalues)[:3].sum()
    assert found.kl == pytest.approx(kls.sum(), rel=1e-12)
    assert found.approximate_kl == pytest.approx(approximate, rel=1e-12)
    assert found.delta == pytest.approx((kls.sum() - approximate) / kls.sum(), rel=1e-10)


def test_the_approximation_is_zietlows_sum_over_active_latents():
    rng = np.random.default_rng(0)
    mean, variance = rng.normal(size=(100, 4)) * [2, 1, 0.4, 0.1], rng.uniform(0.1, 1, size=(100, 4))
    active = mean.std(axis=0) > 0.5
    expected = 0.5 * (mean**2 - np.log(variance) - 1)[:, active].sum(axis=1).mean()
    assert delta(mean, variance).approximate_kl == pytest.approx(expected, rel=1e-12)


def test_it_vanishes_as_the_regime_becomes_polarised():
    deltas = [delta(*linear_vae([1.0, 1.0, 0.5 * noise], noise)[:2]).delta for noise in (1e-1, 1e-3, 1e-6)]
    assert deltas[0] > deltas[1] > deltas[2]
    assert deltas[2] < 1e-6


def test_a_small_kl_has_its_error_too():
    # KL = ½ of N(±1, 1); without σ²/2 nothing is left of it.
    found = delta(np.array([[1.0], [-1.0]]), np.ones((2, 1)))
    assert (found.kl, found.approximate_kl, found.delta) == (0.5, 0.0, 1.0)


def test_a_collapsed_model_is_approximated_exactly():
    found = delta(np.zeros((10, 3)), np.ones((10, 3)))
    assert (found.delta, found.kl, found.active) == (0.0, 0.0, ())


def test_an_infinite_kl_has_no_delta():
    mean = np.array([[0.0, 0.0], [2.0, 0.0]])
    found = delta(mean, np.array([[0.0, 1.0], [0.5, 1.0]]))
    assert found.delta is None
    assert found.kl == found.approximate_kl == math.inf
