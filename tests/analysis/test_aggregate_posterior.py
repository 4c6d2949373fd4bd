import dataclasses
import json

import numpy as np
import pytest

import polariscope as ps
from polariscope.analysis.aggregate_posterior import AggregatePosterior, aggregate_posterior
from polariscope.core.errors import InputError


def normal_codes(n: int = 1500, std: float = 0.8, variance: float = 0.36, n_latents: int = 2, seed: int = 0):
    """Return codes whose aggregate posterior is N(0, std² + variance)."""
    rng = np.random.default_rng(seed)
    mean = std * rng.normal(size=(n, n_latents))
    sampled = mean + np.sqrt(variance) * rng.normal(size=mean.shape)
    return ps.Representation(mean, np.full_like(mean, variance), sampled)


def test_moments_are_those_of_the_law_of_total_variance():
    rng = np.random.default_rng(0)
    mean, variance = rng.normal(2, 3, size=(400, 12)), rng.uniform(0.1, 2, size=(400, 12))
    rep = ps.Representation(mean, variance, mean, code_shape=(3, 2, 2))
    result = aggregate_posterior(rep)
    for channel, marginal in enumerate(result.marginals):
        of_mean, noise = mean[:, channel * 4 : channel * 4 + 4], variance[:, channel * 4 : channel * 4 + 4]
        assert marginal.moments.mean == pytest.approx(of_mean.mean(), rel=1e-12)
        assert marginal.moments.std**2 == pytest.approx(of_mean.var() + noise.mean(), rel=1e-12)
        assert marginal.variance_of_mean + marginal.mean_of_variance == pytest.approx(
            marginal.moments.std**2, rel=1e-12
        )
        assert marginal.moments.scale == pytest.approx(1 / marginal.moments.std, rel=1e-12)
    assert result.moments.std**2 == pytest.approx(mean.var() + variance.mean(), rel=1e-12)
    low, high = result.moments.scale_interval
    assert low < result.moments.scale < high


def test_the_scale_gives_codes_a_standard_deviation_of_1():
    rep = normal_codes(std=3.0)
    scale = aggregate_posterior(rep).moments.scale
    scaled = aggregate_posterior(
        ps.Representation(rep.mean * scale, rep.variance * scale**2, rep.sampled * scale)
    )
    assert scaled.moments.std == pytest.approx(1, rel=1e-12)


@pytest.mark.parametrize("rho", [0.0, 0.6])
def test_intervals_of_mean_and_sd_cover_for_correlated_positions(rho: float):
    """Codes N(0, 1) with correlation ρ between positions: 95 % of 600 intervals, up to 4 standard errors and 2.5 %.

    The intervals of n = 39 observations are normal approximations. The t quantile is 3 % larger than the normal one,
    and the distribution of a variance is skewed, which together cost up to 2.5 %.
    """
    rng, trials, n, size = np.random.default_rng(0), 600, 39, 9
    inside = np.zeros(2)
    for _ in range(trials):
        common, own = rng.normal(size=(n, 1)), rng.normal(size=(n, size))
        mean = np.sqrt(0.7) * (np.sqrt(rho) * common + np.sqrt(1 - rho) * own)
        rep = ps.Representation(mean, np.full_like(mean, 0.3), mean, code_shape=(1, 3, 3))
        # Fewer than 40 observations are not compared with the prior, which would take most of the time.
        moments = aggregate_posterior(rep).moments
        for index, (ends, true) in enumerate(((moments.mean_interval, 0.0), (moments.std_interval, 1.0))):
            inside[index] += ends[0] <= true <= ends[1]
    tolerance = 4 * np.sqrt(0.95 * 0.05 / trials) + 0.025
    np.testing.assert_allclose(inside / trials, 0.95, atol=tolerance)


def test_codes_that_follow_the_prior_are_not_distinguished_from_it():
    results = [aggregate_posterior(normal_codes(seed=seed), seed=seed) for seed in range(5)]
    # 5 p-values are all above 1/500, their smallest value, with a probability of 99 %.
    assert all(result.distance.p_value > 1 / 500 for result in results)
    for result in results:
        assert result.coverage.interval[0] - 0.01 < 1 - 2**-5 < result.coverage.interval[1] + 0.01
        assert result.distance.value < 3 * result.distance.null_high


def test_narrow_codes_cover_a_small_part_of_the_prior():
    """The coverage of N(0, 1) by N(0, 0.01) is 0.231 (numerics/test_two_samples), and the distance is significant."""
    result = aggregate_posterior(normal_codes(std=0.08, variance=0.0036))
    assert result.distance.p_value == pytest.approx(1 / 500)
    for share in (result.coverage, result.marginals[0].coverage):
        assert share.value == pytest.approx(0.231, abs=0.06)
    # sup |Φ(10 z) − Φ(z)| by the density ratio: at z = √(2 ln 10 / 99).
    from scipy.special import ndtr

    z = np.sqrt(2 * np.log(10) / 99)
    exact = ndtr(10 * z) - ndtr(z)
    # 1,000 draws: 4 times the standard deviation of a distribution function, 1/(2 √1000).
    assert result.marginals[0].distance.value == pytest.approx(exact, abs=2 / np.sqrt(1000))
    assert "differs from the prior" in result.summary


def test_the_comparison_is_relative_to_the_moments_of_the_prior():
    rep = normal_codes()
    moved = ps.Representation(
        3 + 2 * rep.mean,
        4 * rep.variance,
        3 + 2 * rep.sampled,
        prior_mean=np.full(2, 3.0),
        prior_variance=np.full(2, 4.0),
    )
    one, two = aggregate_posterior(rep), aggregate_posterior(moved)
    assert two.distance.value == pytest.approx(one.distance.value, rel=1e-9)
    assert two.coverage.value == pytest.approx(one.coverage.value)
    assert (two.marginals[0].prior_mean, two.marginals[0].prior_std) == (3.0, 2.0)
    assert two.moments.mean == pytest.approx(3 + 2 * one.moments.mean)


def test_draws_replace_a_gaussian_prior():
    rng = np.random.default_rng(0)
    codes = rng.uniform(-1, 1, size=(1000, 1))
    rep = ps.Representation(codes, np.full_like(codes, 1e-8), codes)
    uniform = rng.uniform(-1, 1, size=(2000, 1))
    # For equal distributions p is 1/500, its smallest value, in one case of 500.
    assert aggregate_posterior(rep, uniform).distance.p_value > 1 / 500
    assert aggregate_posterior(rep).distance.p_value == 1 / 500
    with pytest.raises(InputError, match=r"draws must have shape \(draw, latent\) with 1 latents"):
        aggregate_posterior(rep, uniform.reshape(1000, 2))


def test_one_position_gives_the_results_of_plain_latents():
    plain = normal_codes(n=300)
    channels = dataclasses.replace(plain, code_shape=(2, 1, 1))
    one, two = aggregate_posterior(plain).to_dict(), aggregate_posterior(channels).to_dict()
    assert two.pop("unit") == "channel"
    assert one.pop("unit") == "latent"
    assert one == two


def test_deterministic_codes_have_an_aggregate_posterior():
    rep = normal_codes(std=1.0, variance=0.0)
    result = aggregate_posterior(rep)
    assert result.moments.std == pytest.approx(rep.mean.std(), rel=1e-12)
    assert result.marginals[0].mean_of_variance == 0
    assert result.distance is not None


def test_conditional_priors_and_few_observations_have_moments_only():
    rep = normal_codes()
    conditional = dataclasses.replace(rep, prior_mean=rep.mean, prior_variance=np.ones_like(rep.mean))
    result = aggregate_posterior(conditional)
    assert (result.distance, result.coverage, result.marginals[0].prior_mean) == (None, None, None)
    assert "depends on the sample" in result.notes[0]
    few = aggregate_posterior(normal_codes(n=20))
    assert few.distance is None
    assert "At least 40 observations" in few.notes[0]
    other = aggregate_posterior(dataclasses.replace(rep, rate=np.full_like(rep.mean, 7.0)))
    assert "not Gaussian" in other.notes[0]
    with pytest.raises(InputError, match="at least 2 samples"):
        aggregate_posterior(normal_codes(n=1))


def test_the_record_is_stored_and_shown():
    result = aggregate_posterior(normal_codes(n=200))
    assert AggregatePosterior.from_dict(json.loads(json.dumps(result.to_dict()))) == result
    frame = result.to_frame()
    assert frame.loc[1, "scale"] == result.marginals[1].moments.scale
    assert str(result).count("\n") >= 4
