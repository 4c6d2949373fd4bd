"""The overlap of Gaussians is the integral that defines it, and turns with them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from oracles import random_rotation
from polariscope.core.errors import InputError
from polariscope.numerics.overlap import mean_overlap


def test_the_overlap_of_two_is_the_integral_of_the_root_of_their_product() -> None:
    mean, variance = np.array([[0.0, 0.5], [1.0, -0.2]]), np.array([[0.4, 1.5], [0.9, 0.2]])
    z = np.linspace(-15, 15, 40_001)
    expected = 1.0
    for j in range(2):  # independent latents: the integrals multiply
        densities = norm.pdf(z[:, None], mean[:, j], np.sqrt(variance[:, j]))
        expected *= np.trapezoid(np.sqrt(densities.prod(axis=1)), z)
    assert mean_overlap(mean, variance) == pytest.approx(expected, rel=1e-9)


def test_it_is_averaged_over_pairs_of_different_ones() -> None:
    mean = np.array([[0.0], [0.0], [1000.0]])  # of three pairs, one is of equals and two never meet
    assert mean_overlap(mean, np.ones((3, 1))) == pytest.approx(1 / 3, abs=1e-12)


def test_it_is_the_same_for_rotated_gaussians_given_their_covariances() -> None:
    rng = np.random.default_rng(0)
    mean, variance = rng.normal(size=(6, 3)), rng.gamma(2.0, 0.5, size=(6, 3))
    turn = random_rotation(3, seed=1)
    covariance = turn @ (variance[:, :, None] * np.eye(3)) @ turn.T
    found = mean_overlap(mean @ turn.T, np.diagonal(covariance, axis1=1, axis2=2), covariance)
    assert found == pytest.approx(mean_overlap(mean, variance), rel=1e-10)
    # The variances alone do not tell it.
    assert found != pytest.approx(
        mean_overlap(mean @ turn.T, np.diagonal(covariance, axis1=1, axis2=2)), rel=1e-3
    )


def test_a_single_gaussian_is_refused() -> None:
    with pytest.raises(InputError, match=r"at least 2 Gaussians, got 1"):
        mean_overlap(np.zeros((1, 2)), np.ones((1, 2)))
