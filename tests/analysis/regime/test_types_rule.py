import itertools

import numpy as np
import pytest

from polariscope.analysis.regime.latent_types import (
    ALPHAS,
    Moments,
    alpha_ranges,
    moments,
    moments_of_resamples,
    sensitivity,
    thresholds,
    types_of,
)
from polariscope.analysis.regime.posterior import relative_posterior
from polariscope.analysis.representation import Representation


def posterior(mean, variance, **prior):
    return relative_posterior(Representation(mean, variance, mean, **prior))


def types(mean, variance, alpha=0.1, **prior):
    return types_of(moments(posterior(mean, variance, **prior)), alpha).tolist()


@pytest.mark.parametrize(
    ("mean", "variance", "expected"),
    [
        # α = 1/8, so that every bound is a binary number and the comparison is exact.
        (0.125, 0.0, "active"),  # ≤ on the mean
        (np.nextafter(0.125, 1), 0.0, "mixed"),
        (0.0, 0.125, "mixed"),  # < on the variance
        (0.0, np.nextafter(0.125, 0), "active"),
        (0.875, 0.0, "passive"),
        (np.nextafter(0.875, 0), 0.0, "mixed"),
        (1.125, 0.0, "passive"),
        (np.nextafter(1.125, 2), 0.0, "mixed"),
        (1.0, 0.125, "mixed"),
        (1.0, np.nextafter(0.125, 0), "passive"),
        (0.5, 0.0, "mixed"),  # uniformly noisy
    ],
)
def test_the_published_bounds_hold_exactly(mean, variance, expected):
    assert types_of(Moments(np.array([mean]), np.array([variance])), 0.125).tolist() == [expected]


def test_the_published_tolerance_holds_at_its_decimal_bounds():
    found = Moments(np.array([0.1, 0.9, 1.1, 1.0]), np.array([0.0, 0.0, 0.0, 0.1]))
    assert types_of(found, 0.1).tolist() == ["active", "passive", "passive", "mixed"]
    assert all(low <= 0.1 <= high for low, high in alpha_ranges(found, 0.1))


def test_with_a_standard_prior_the_rule_sees_only_the_variance_representation():
    variance = np.tile([0.01, 0.5, 1.0], (10, 1))
    far = np.full((10, 3), 7.0)
    assert types(far, variance) == types(np.zeros((10, 3)), variance) == ["active", "mixed", "passive"]


def test_moments_are_the_mean_and_the_population_variance_of_sigma_squared():
    variance = np.array([[0.0, 0.2], [1.0, 0.4]])
    found = moments(posterior(np.zeros((2, 2)), variance))
    np.testing.assert_array_equal(found.mean, variance.mean(axis=0))
    np.testing.assert_array_equal(found.variance, variance.var(axis=0))
    assert found.displacement is None


def test_a_fixed_prior_of_another_scale_gives_the_types_of_the_standardised_posterior():
    rng = np.random.default_rng(0)
    mean, variance = rng.normal(size=(100, 4)), rng.uniform(0.5, 1.5, size=(100, 4)) * [0.01, 0.1, 0.5, 1.0]
    scale, shift = np.array([0.1, 3.0, 10.0, 0.5]), np.array([1.0, -2.0, 0.0, 5.0])
    moved = types(shift + scale * mean, scale**2 * variance, prior_mean=shift, prior_variance=scale**2)
    assert moved == types(mean, variance)
    # Without the prior, the same arrays would be named otherwise.
    assert types(shift + scale * mean, scale**2 * variance) != moved


def test_a_conditional_prior_stored_with_equal_rows_is_a_fixed_one():
    mean, variance = np.full((5, 2), 3.0), np.full((5, 2), 0.3)
    same = types(mean, variance, prior_variance=np.full((5, 2), 0.3))
    assert same == types(mean, variance, prior_variance=np.full(2, 0.3)) == ["passive", "passive"]


def ivae(n_samples=4000):
    """Latents of an iVAE with fixed prior mean 0 and learned prior variance (bonheme2023 Figs 5.1–5.2)."""
    rng = np.random.default_rng(1)
    mean = rng.uniform(-20, 20, size=(n_samples, 4))
    variance = np.full((n_samples, 4), 0.01)
    prior_variance = mean**2 + variance  # the optimum Σ† = Σ + μ² of an active latent
    mean[:, 1] = 0.001 * rng.normal(size=n_samples)  # passive: μ ≈ 0, Σ ≈ Σ†, both far below 1
    prior_variance[:, 1] = variance[:, 1] = rng.uniform(0.001, 0.003, size=n_samples)
    prior_variance[:, 2] = variance[:, 2]  # as wide as the prior, but elsewhere
    mean[:, 3], prior_variance[:, 3] = 5.0, 25.0  # narrow, but at the same place for every sample
    return mean, variance, prior_variance


def test_an_ivae_latent_is_passive_when_it_is_the_conditional_prior_however_narrow():
    mean, variance, prior_variance = ivae()
    assert types(mean, variance, prior_variance=prior_variance) == ["active", "passive", "mixed", "mixed"]
    # The rule for N(0, 1) would call the passive one active.
    assert types(mean, variance)[1] == "active"


def test_a_conditional_prior_that_follows_the_mean_makes_a_latent_passive():
    rng = np.random.default_rng(0)
    mean, variance = rng.normal(size=(500, 1)), rng.uniform(0.01, 0.02, size=(500, 1))
    assert types(mean, variance, prior_mean=mean, prior_variance=variance) == ["passive"]
    assert types(mean, variance, prior_mean=mean + 0.1, prior_variance=variance) == ["mixed"]  # 0.01/0.02 ≥ α


def test_moments_under_a_conditional_prior_are_those_of_their_definition():
    rng = np.random.default_rng(3)
    mean, variance = rng.normal(size=(40, 3)) * [0.1, 3.0, 0.0] + 1, rng.uniform(0.1, 1, size=(40, 3))
    prior_mean, prior_variance = rng.normal(size=(40, 3)), rng.uniform(0.5, 2, size=(40, 3))
    found = moments(posterior(mean, variance, prior_mean=prior_mean, prior_variance=prior_variance))
    np.testing.assert_allclose(found.mean, np.mean(variance / prior_variance, axis=0), rtol=1e-12)
    np.testing.assert_allclose(found.variance, np.var(variance / prior_variance, axis=0), rtol=1e-12)
    displacement = np.mean((mean - prior_mean) ** 2 / prior_variance, axis=0)
    np.testing.assert_allclose(found.displacement, displacement, rtol=1e-12)
    noise = variance.mean(axis=0)[:2] / mean.var(axis=0)[:2]
    np.testing.assert_allclose(found.noise[:2], noise, rtol=1e-12)
    assert found.noise[2] == np.inf  # a mean that never varies


def test_weights_that_count_samples_give_the_moments_of_the_repeated_samples():
    rng = np.random.default_rng(0)
    n = 30
    mean, variance = rng.normal(size=(n, 3)), rng.uniform(0.1, 1, size=(n, 3))
    prior = {"prior_mean": rng.normal(size=(n, 3)), "prior_variance": rng.uniform(0.5, 2, size=(n, 3))}
    counts = rng.multinomial(n, np.full(n, 1 / n), size=2)
    found = moments_of_resamples(posterior(mean, variance, **prior))(counts / n)
    for row, count in enumerate(counts):
        repeat = np.repeat(np.arange(n), count)
        repeated = posterior(mean[repeat], variance[repeat], **{k: v[repeat] for k, v in prior.items()})
        expected = moments(repeated)
        for name in ("mean", "variance", "displacement", "noise"):
            np.testing.assert_allclose(getattr(found, name)[row], getattr(expected, name), rtol=1e-10)


@pytest.mark.parametrize("conditional", [False, True])
def test_the_type_stays_inside_its_alpha_range_and_changes_at_its_end(conditional):
    rng = np.random.default_rng(2)
    extra = rng.uniform(0, 0.6, size=(2, 200)) if conditional else (None, None)
    found = Moments(rng.uniform(0, 1.5, size=200), rng.uniform(0, 0.3, size=200), *extra)
    chosen = types_of(found, 0.1)
    ranges = alpha_ranges(found, 0.1)
    at = {a: types_of(found, a) for a in (*np.linspace(0.005, 0.495, 99), *np.ravel(ranges) * 1.0001 + 1e-9)}
    n_changes = 0
    for j, (low, high) in enumerate(ranges):
        assert low <= 0.1 <= high
        for alpha, there in at.items():
            if alpha >= 0.5:
                continue
            assert (there[j] == chosen[j]) == (low < alpha < high), (j, alpha)
            n_changes += there[j] != chosen[j]
    assert n_changes > 100


def test_active_and_passive_latents_stay_so_as_alpha_grows():
    rng = np.random.default_rng(3)
    found = Moments(rng.uniform(0, 1.2, size=300), rng.uniform(0, 0.2, size=300))
    active, passive = thresholds(found)
    assert ((active < 0.5) & (passive < 0.5)).sum() == 0
    for before, after in itertools.pairwise(ALPHAS):
        named = types_of(found, before) != "mixed"
        assert (types_of(found, before)[named] == types_of(found, after)[named]).all()


def test_the_grid_of_alphas_holds_the_chosen_one():
    found = Moments(np.array([0.04, 0.96, 0.5]), np.zeros(3))
    grid = sensitivity(found, 0.123)
    assert grid.alphas == tuple(sorted((*ALPHAS, 0.123)))
    assert grid.types[grid.alphas.index(0.123)] == ("active", "passive", "mixed")
    assert grid.types[0] == ("mixed", "mixed", "mixed")
