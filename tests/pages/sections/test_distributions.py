"""Histograms lose no sample and can be compared across latents."""

from __future__ import annotations

import numpy as np

from polariscope.analysis.regime.diagnose import diagnose
from polariscope.analysis.representation import Representation
from polariscope.geometry.steps_of_latents import prior_moments
from polariscope.pages.sections.distributions import histograms, representatives


def representation(n: int = 500) -> Representation:
    rng = np.random.default_rng(0)
    mean = np.stack([rng.normal(size=n), 0.01 * rng.normal(size=n), 5 * rng.normal(size=n)], axis=1)
    variance = np.full((n, 3), [0.01, 1.0, 0.3])
    variance[::2, 2] = 1.0
    return Representation(mean, variance, mean + np.sqrt(variance) * rng.normal(size=(n, 3)))


def test_every_sample_is_in_a_bin_and_densities_integrate_to_one() -> None:
    for histogram in histograms(representation()).values():
        np.testing.assert_allclose(histogram.shares.sum(axis=1), 1, atol=1e-12)
        np.testing.assert_allclose((histogram.density * np.diff(histogram.edges)).sum(axis=1), 1, atol=1e-12)


def test_mean_and_sampled_share_their_axis_which_covers_the_prior() -> None:
    found = histograms(representation())
    np.testing.assert_array_equal(found["mean"].edges, found["sampled"].edges)
    assert found["mean"].edges[0] <= -3
    assert found["mean"].edges[-1] >= 3
    assert found["variance"].edges[0] == 0
    assert found["variance"].edges[-1] >= 1.2


def test_a_passive_mean_is_a_spike_and_an_active_one_is_not() -> None:
    shares = histograms(representation())["mean"].shares
    assert np.count_nonzero(shares[1]) <= 2  # ±0.04 lies in one bin or on an edge between two
    assert np.count_nonzero(shares[0]) > 10


def test_moments_of_a_conditional_prior_follow_the_law_of_total_variance() -> None:
    base = representation(4)
    means = np.array([-1.0, 1.0, -1.0, 1.0])[:, None] * np.ones(3)
    conditional = Representation(
        base.mean, base.variance, base.sampled, prior_mean=means, prior_variance=np.full((4, 3), 0.5)
    )
    mean, variance = prior_moments(conditional)
    np.testing.assert_allclose(mean, 0)
    np.testing.assert_allclose(variance, 1.5)


def test_representatives_are_one_of_each_type_that_occurs() -> None:
    assert representatives(diagnose(representation())) == {"active": 0, "mixed": 2, "passive": 1}


def test_a_conditional_prior_shares_the_axes_of_the_posterior() -> None:
    base = representation()
    found = histograms(
        Representation(
            base.mean,
            base.variance,
            base.sampled,
            prior_mean=10 + base.mean,
            prior_variance=np.full(base.mean.shape, 4.0),
        )
    )
    np.testing.assert_array_equal(found["prior_mean"].edges, found["mean"].edges)
    np.testing.assert_array_equal(found["prior_variance"].edges, found["variance"].edges)
    np.testing.assert_allclose(found["prior_mean"].shares.sum(axis=1), 1, atol=1e-12)
    assert (found["prior_variance"].shares.max(axis=1) == 1).all()


def test_a_deterministic_encoder_has_a_mean_only() -> None:
    base = representation()
    found = histograms(Representation(base.mean, np.zeros_like(base.mean), base.mean))
    assert list(found) == ["mean"]
    constant = histograms(Representation(np.ones((5, 1)), np.zeros((5, 1)), np.ones((5, 1))))
    np.testing.assert_allclose(constant["mean"].shares.sum(axis=1), 1)
