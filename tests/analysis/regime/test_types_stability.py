import numpy as np
import pytest
from scipy.stats import binom

from polariscope.analysis.regime import latent_types as stability
from polariscope.analysis.regime.latent_types import type_shares
from polariscope.analysis.regime.posterior import relative_posterior
from polariscope.analysis.representation import Representation


def shares(variance, n_bootstrap=400, seed=0):
    posterior = relative_posterior(Representation(np.zeros_like(variance), variance, np.zeros_like(variance)))
    generator = np.random.default_rng(seed)
    return type_shares(posterior, alpha=0.1, n_bootstrap=n_bootstrap, generator=generator)


def test_clear_types_are_certain():
    variance = np.random.default_rng(0).uniform(0.9, 1.1, size=(1000, 3)) * [0.01, 0.5, 1.0]
    np.testing.assert_array_equal(shares(variance), np.eye(3))


def test_a_latent_on_the_boundary_is_one_type_half_of_the_time():
    variance = np.tile([[0.05], [0.15]], (5000, 1))  # mean 0.1 = α
    # 5 standard errors of a share of a half in 400 resamples; a tie has probability 0.8 %.
    assert shares(variance)[0, 0] == pytest.approx(0.5, abs=5 * np.sqrt(0.25 / 400) + 0.008)


@pytest.mark.parametrize("n_narrow", [48, 52, 57])
def test_shares_are_the_probabilities_of_the_bootstrap_itself(n_narrow):
    # Values 0.055 and 0.155: the mean is at most 0.1 when at most 45 of 100 draws are 0.155.
    variance = np.where(np.arange(100) < n_narrow, 0.055, 0.155)[:, None]
    # 45 · 0.155 + 55 · 0.055 is 10 exactly on paper; move it off the rounding of the bound.
    variance -= 1e-6
    expected = binom.cdf(45, 100, (100 - n_narrow) / 100)
    found = shares(variance, n_bootstrap=4000)
    assert found[0, 0] == pytest.approx(expected, abs=5 * np.sqrt(0.25 / 4000))
    assert found[0, 1] == pytest.approx(1 - found[0, 0])


@pytest.mark.parametrize("block", [50 * 7, 50, 49])  # the last holds not even one
def test_shares_do_not_depend_on_how_many_resamples_fit_into_memory(monkeypatch, block):
    variance = np.random.default_rng(0).uniform(0, 0.21, size=(50, 2))
    whole = shares(variance)
    monkeypatch.setattr(stability, "BLOCK", block)
    np.testing.assert_array_equal(shares(variance), whole)
    assert 0.05 < whole[0, 0] < 0.95
