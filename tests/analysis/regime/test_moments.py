"""Moments of posterior and prior are those of their definitions, for one prior and for a conditional one."""

from __future__ import annotations

import math

import numpy as np
import pytest

from polariscope.analysis.regime.moments import latent_moments
from polariscope.analysis.regime.posterior import gaussian_kl
from polariscope.analysis.representation import Representation


def test_moments_of_a_conditional_prior_are_averages_over_the_observations() -> None:
    mean, variance = np.array([[1.0], [3.0]]), np.array([[0.5], [1.0]])
    prior_mean, prior_variance = np.array([[2.0], [5.0]]), np.array([[1.0], [4.0]])
    rep = Representation(mean, variance, mean, prior_mean=prior_mean, prior_variance=prior_variance)
    (found,) = latent_moments(rep)
    assert found.mean_square == 5.0
    assert found.largest_mean == 3.0
    assert found.variance == 0.75
    assert (found.prior_mean, found.std_of_prior_mean) == (3.5, 1.5)
    assert (found.prior_variance, found.largest_prior_variance) == (2.5, 4.0)
    assert found.ratio == (0.5 + 0.25) / 2
    assert found.displacement == (1.0 + 4 / 4) / 2
    assert found.match == pytest.approx(2.5 / ((0.5 + 1 + 1 + 4) / 2))
    assert found.kl == pytest.approx(gaussian_kl(mean, variance, prior_mean, prior_variance).mean())


def test_the_best_single_prior_variance_has_a_match_of_one() -> None:
    rng = np.random.default_rng(0)
    mean, variance = rng.normal(size=(200, 2)), rng.gamma(2.0, 0.3, size=(200, 2))
    best = (variance + mean**2).mean(axis=0)

    def rate(prior_variance: np.ndarray) -> np.ndarray:
        return gaussian_kl(mean, variance, 0.0, prior_variance).mean(axis=0)

    assert (rate(best) < rate(1.01 * best)).all()
    assert (rate(best) < rate(0.99 * best)).all()
    found = latent_moments(Representation(mean, variance, mean, prior_variance=best))
    assert [latent.match for latent in found] == pytest.approx([1, 1])
    assert [latent.std_of_prior_mean for latent in found] == [0, 0]


def test_without_moments_of_a_prior_it_is_the_standard_normal() -> None:
    codes = np.array([[1.0, 0.0], [-1.0, 0.0]])
    active, point = latent_moments(Representation(codes, np.array([[0.5, 0.0]] * 2), codes))
    assert (active.prior_mean, active.prior_variance, active.ratio) == (0, 1, 0.5)
    assert active.match == pytest.approx(1 / 1.5)
    assert point.match == math.inf  # a point at the prior's mean needs no width
    assert point.kl == math.inf
