"""Which latents are in use: closed forms, limits that hold, and cases in which the KL misleads."""

from __future__ import annotations

import math

import numpy as np
import pytest

import polariscope as ps
from analysis.regime.linear_vae import linear_vae, orthogonal_columns
from polariscope.analysis.regime.use import (
    EFFECT,
    INFORMATION,
    LIMIT,
    Effect,
    Use,
    information,
    use_of_moments,
    uses,
)


def codes(mean, variance, **fields):
    noise = np.random.default_rng(9).normal(size=mean.shape)
    arrays = (array.astype(np.float32) for array in (mean, variance, mean + np.sqrt(variance) * noise))
    return ps.Representation(*arrays, **fields)


def test_the_information_of_a_linear_vae_is_its_kl():
    eigenvalues = np.array([6.0, 3.0, 1.5, 0.6, 0.3])
    mean, variance, _ = linear_vae(eigenvalues, noise=0.5)
    value, _ = information(mean, variance)
    np.testing.assert_allclose(value, 0.5 * np.log(np.maximum(1, eigenvalues / 0.5)), atol=1e-9)


def test_active_latents_of_a_linear_vae_are_in_use_and_collapsed_ones_are_not():
    mean, variance, sampled = linear_vae(np.array([6.0, 3.0, 0.3, 0.1]), noise=0.5)
    regime = ps.diagnose(ps.Representation(mean, variance, sampled))
    assert regime.select("in-use") == [0, 1]
    assert regime.verdict.n_in_use == 2
    assert regime.verdict.interval == (2, 2)


def test_order_scale_and_shift_of_latents_change_nothing():
    mean, variance, _ = linear_vae(np.array([6.0, 3.0, 1.5, 0.6]), noise=0.5)
    value, error = information(mean, variance)
    order, scale = [2, 0, 3, 1], np.array([3.0, 0.1, 7.0, 1.0])
    moved = information(mean[:, order] * scale + 5, variance[:, order] * scale**2)
    np.testing.assert_allclose(moved[0], value[order], rtol=1e-9)
    np.testing.assert_allclose(moved[1], error[order], rtol=1e-9)


def test_the_error_of_the_information_is_its_spread_over_sets_of_data():
    rng, found = np.random.default_rng(0), []
    for _ in range(400):
        mean = rng.normal(size=(200, 1))
        variance = (
            0.5 + 0.3 * np.tanh(mean) ** 2
        )  # uncertain where the mean is far out: the moments are correlated
        found.append([array.item() for array in information(mean, variance)])
    values, errors = np.array(found).T
    # A standard deviation of 400 values is known to 3.5 %.
    assert errors.mean() == pytest.approx(values.std(ddof=1), rel=0.12)


def test_the_lower_limit_decides():
    def use(value, error):
        rep = codes(*np.ones((2, 5, 1)), effect=np.array([value]), effect_error=np.array([error]))
        return uses(rep)[0]

    sure, unsure, none = use(1.5 * EFFECT, 0.0), use(1.5 * EFFECT, EFFECT), use(0.0, 0.0)
    assert (sure.in_use, sure.can_be_in_use) == (True, True)
    assert (unsure.in_use, unsure.can_be_in_use) == (False, True)
    assert (none.in_use, none.can_be_in_use) == (False, False)
    assert unsure.lower == pytest.approx(1.5 * EFFECT - LIMIT * EFFECT)


def test_the_effect_counts_before_the_information():
    mean, variance, sampled = linear_vae(np.array([6.0, 3.0]), noise=0.5)
    rep = ps.Representation(
        mean, variance, sampled, effect=np.array([0.0, 5.0]), effect_error=np.array([0.0, 0.1])
    )
    assert ps.diagnose(rep).in_use == [1]
    assert [use.evidence for use in uses(rep)] == ["decoder", "decoder"]


def test_a_prior_that_follows_the_posterior_hides_nothing():
    # Where u identifies x, a conditional prior equals the posterior: the KL of a latent in use is 0.
    mean = orthogonal_columns(500, 2) * [1.0, 0.0]
    variance = np.tile([0.1, 1.0], (500, 1))
    rep = codes(
        mean, variance, prior_mean=mean.astype(np.float32), prior_variance=variance.astype(np.float32)
    )
    regime = ps.diagnose(rep)
    assert regime.types == ["passive", "passive"]
    assert max(latent.kl for latent in regime.latents) < 1e-6
    assert regime.select("in-use") == [0]


def test_a_mean_that_is_far_from_the_prior_and_never_moves_is_not_in_use():
    # The KL is 2 nats, for every input the same: an untrained encoder, or a prior with another mean.
    mean = np.full((500, 1), 2.0)
    regime = ps.diagnose(codes(mean, np.ones((500, 1))))
    assert regime.latents[0].kl == pytest.approx(2)
    assert regime.in_use == []


def test_a_posterior_without_variance_has_infinite_information_if_its_mean_moves():
    mean = orthogonal_columns(50, 2) * [1.0, 0.0]
    value, error = information(mean, np.zeros((50, 2)))
    assert (value[0], value[1]) == (math.inf, 0)
    assert (error == 0).all()
    assert use_of_moments(1.0, 0.0).in_use
    assert not use_of_moments(0.0, 0.0).in_use


def test_moments_give_the_same_information_as_codes():
    mean, variance, _ = linear_vae(np.array([6.0, 0.1]), noise=0.5)
    value, _ = information(mean, variance)
    for j in range(2):
        assert use_of_moments(mean[:, j].std(), variance[:, j].mean()).value == pytest.approx(value[j])


def test_each_kind_of_evidence_has_its_own_threshold():
    assert Use(0.0, 0.0, 0.0, "decoder").threshold == EFFECT
    assert Use(0.0, 0.0, 0.0, "information").threshold == INFORMATION


def test_an_effect_returns_from_json_as_it_was():
    effect = Effect((0.1, 2.0), (0.01, 0.3))
    assert Effect.from_dict(effect.to_dict()) == effect
    assert Effect().as_fields() == {}
    assert list(effect.as_fields()) == ["effect", "effect_error"]
