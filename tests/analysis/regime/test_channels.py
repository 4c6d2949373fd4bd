"""Diagnosis of codes with positions, per channel."""

import dataclasses
import json

import numpy as np
import pytest

import polariscope as ps
from polariscope.analysis.regime.posterior import gaussian_kl, pooled_rows, relative_posterior
from polariscope.analysis.regime.regime import Regime
from polariscope.analysis.regime.use import information, uses
from polariscope.core.errors import InputError

SD, VARIANCE, RHO = np.array([1.0, 0.05, 0.8]), np.array([0.01, 1.0, 0.3]), np.array([0.5, 0.2, 0.9])


def arrays(n: int = 600, height: int = 4, width: int = 4, seed: int = 0) -> dict[str, np.ndarray]:
    """Return codes of three channels, active, passive and mixed, whose positions are correlated."""
    rng = np.random.default_rng(seed)
    common, own = rng.normal(size=(n, 3, 1, 1)), rng.normal(size=(n, 3, height, width))
    rho, sd, variance = (each[:, None, None] for each in (RHO, SD, VARIANCE))
    mean = sd * (np.sqrt(rho) * common + np.sqrt(1 - rho) * own)
    return {
        "mean": mean,
        "variance": np.broadcast_to(variance, mean.shape).copy(),
        "sampled": mean + np.sqrt(variance) * rng.normal(size=mean.shape),
    }


def codes(**options) -> ps.Representation:
    fields = arrays(**options)
    shape = fields["mean"].shape
    flat = {name: array.reshape(len(array), -1) for name, array in fields.items()}
    return ps.Representation(**flat, code_shape=shape[1:])


def numbers(regime: Regime) -> dict:
    """Return the results of a diagnosis without the unit and its notes."""
    record = regime.to_dict()
    del record["positions"], record["notes"]
    return record


def test_one_position_gives_the_results_of_plain_latents_bit_for_bit():
    channels = codes(height=1, width=1)
    plain = dataclasses.replace(channels, code_shape=())
    by_channel, by_latent = ps.diagnose(channels), ps.diagnose(plain)
    assert numbers(by_channel) == numbers(by_latent)
    assert by_latent.positions is None
    assert by_channel.positions is not None
    assert by_channel.positions.n_effective == (600,) * 3


def test_the_view_by_value_gives_the_results_of_flattened_codes_bit_for_bit():
    channels = codes(height=2, width=2)
    plain = dataclasses.replace(channels, code_shape=())
    regime = ps.diagnose(channels, per="value")
    assert numbers(regime) == numbers(ps.diagnose(plain))
    assert regime.has_note("flattened")
    assert regime.n_latents == 12


def test_moments_pool_positions_and_the_kl_is_summed_over_them():
    rep = codes()
    regime = ps.diagnose(rep)
    assert regime.types == ["active", "passive", "mixed"]
    assert regime.n_samples == 600
    kl = gaussian_kl(rep.mean, rep.variance).reshape(600, 3, 16)
    for channel, latent in enumerate(regime.latents):
        mean = rep.by_channel()[:, channel]
        assert latent.kl == pytest.approx(kl[:, channel].sum(axis=1).mean(), rel=1e-12)
        assert latent.mean_of_mean == pytest.approx(mean.mean(), abs=1e-12)
        assert latent.std_of_mean == pytest.approx(mean.std(), rel=1e-12)
        assert latent.mean_of_variance == pytest.approx(VARIANCE[channel], rel=1e-12)
        assert regime.positions.kl_map(channel).shape == (4, 4)
        np.testing.assert_allclose(
            regime.positions.kl_map(channel).ravel(), kl[:, channel].mean(axis=0), rtol=1e-12
        )
        assert regime.positions.kl_map(channel).sum() == pytest.approx(latent.kl, rel=1e-12)
    assert regime.kl == pytest.approx(kl.sum(axis=(1, 2)).mean(), rel=1e-12)
    np.testing.assert_allclose(regime.positions.correlation, RHO, atol=0.05)


def test_pooled_results_do_not_depend_on_the_order_of_positions():
    rep, order = codes(), np.random.default_rng(3).permutation(16)
    moved = {
        name: rep.by_channel(name)[:, :, order].reshape(600, -1) for name in ("mean", "variance", "sampled")
    }
    first, second = ps.diagnose(rep), ps.diagnose(dataclasses.replace(rep, **moved))
    assert first.types == second.types
    assert first.in_use == second.in_use
    for one, other in zip(first.latents, second.latents, strict=True):
        for name in ("kl", "std_of_mean", "mean_of_variance", "redundancy", "std_at_position", "confidence"):
            assert getattr(one, name) == pytest.approx(getattr(other, name), rel=1e-9, abs=1e-12)
        assert one.kl_interval == pytest.approx(other.kl_interval, rel=1e-9)
    np.testing.assert_allclose(first.mean.correlation, second.mean.correlation, atol=1e-12)
    assert first.positions.n_effective == pytest.approx(second.positions.n_effective, rel=1e-9)


def test_equal_positions_add_no_certainty():
    """16 equal positions carry the evidence of one, so intervals of the mean KL per position are those of one."""
    once = codes(height=1, width=1)
    fields = {name: np.repeat(getattr(once, name), 16, axis=1) for name in ("mean", "variance", "sampled")}
    repeated = ps.Representation(**fields, code_shape=(3, 4, 4))
    one, many = ps.diagnose(once), ps.diagnose(repeated)
    assert many.positions.n_effective == pytest.approx([600] * 3)
    for first, second in zip(one.latents, many.latents, strict=True):
        assert np.array(second.kl_interval) / 16 == pytest.approx(first.kl_interval, rel=1e-9)
        assert second.shares == first.shares
    for first, second in zip(one.uses, many.uses, strict=True):
        assert second.to_dict() == pytest.approx(first.to_dict())


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.95])
def test_intervals_cover_for_correlated_positions(rho: float):
    """The 95 % interval of the KL, and the one-sided limits of the information, cover in 1,000 simulations.

    The true KL of a position is ½ (E μ² + σ² − log σ² − 1), and the true information ½ log(1 + 1/σ²) with Var μ = 1.
    With 300 samples the normal approximation costs below 1 %. Monte-Carlo error: 4 standard errors of 1,000 trials.
    """
    n, size, variance, trials = 300, 9, 0.5, 1000
    true_kl = size * 0.5 * (1 + variance - np.log(variance) - 1)
    true_information = 0.5 * np.log1p(1 / variance)
    rng = np.random.default_rng(0)
    kl, low, high = 0, 0, 0
    for _ in range(trials):
        common, own = rng.normal(size=(n, 1)), rng.normal(size=(n, size))
        mean = np.sqrt(rho) * common + np.sqrt(1 - rho) * own
        rep = ps.Representation(mean, np.full_like(mean, variance), mean, code_shape=(1, 3, 3))
        values = relative_posterior(rep).kl[:, 0]
        margin = 1.96 * values.std(ddof=1) / np.sqrt(n)
        kl += abs(values.mean() - true_kl) < margin
        (use,) = uses(rep)
        low += use.lower < true_information
        high += use.upper > true_information
    assert kl / trials == pytest.approx(0.95, abs=4 * np.sqrt(0.95 * 0.05 / trials) + 0.01)
    for count in (low, high):
        assert count / trials == pytest.approx(0.95, abs=4 * np.sqrt(0.95 * 0.05 / trials) + 0.01)


def test_a_map_that_is_the_same_for_every_input_carries_no_information():
    """Means that differ between positions, but not between samples, vary in the pool and are not in use."""
    rng = np.random.default_rng(0)
    same = np.tile(np.linspace(-2, 2, 16), (400, 1))
    varies = rng.normal(size=(400, 16))
    mean = np.concatenate([same, varies], axis=1)
    rep = ps.Representation(mean, np.full_like(mean, 0.3), mean, code_shape=(2, 4, 4))
    regime = ps.diagnose(rep)
    assert regime.in_use == [1]
    assert regime.latents[0].std_of_mean == pytest.approx(same[0].std())
    assert regime.latents[0].std_at_position == pytest.approx(0, abs=1e-12)
    assert regime.latents[0].is_idle
    assert information(mean, rep.variance, 16)[0][0] == pytest.approx(0, abs=1e-12)


def test_channels_are_named_in_every_text():
    regime = ps.diagnose(codes())
    for text in (str(regime), regime._repr_html_(), str(regime.verdict), regime.verdict.short):
        assert "channel" in text
        assert "latent" not in text
    assert regime.to_frame().index.name == "channel"
    assert regime.has_note("channels")
    assert "3 × 4 × 4" in regime.notes[0]
    assert "set per to value" in regime.notes[0]
    assert regime.plot().get_xlabel() == "channel, by KL"
    assert Regime.from_dict(json.loads(json.dumps(regime.to_dict()))) == regime


def test_selected_columns_are_those_of_the_channels():
    rep = codes()
    regime = ps.diagnose(rep)
    assert regime.select("in-use") == [*range(16), *range(32, 48)]
    assert rep.mean[:, regime.select("passive")].shape == (600, 16)


def test_arrays_with_positions_are_flattened_and_their_prior_is_repeated():
    fields = arrays(n=50)
    from_arrays = ps.diagnose(**fields, prior_variance=np.array([1.0, 2.0, 3.0]))
    rep = dataclasses.replace(codes(n=50), prior_variance=np.repeat([1.0, 2.0, 3.0], 16))
    assert numbers(from_arrays) == numbers(ps.diagnose(rep))
    assert from_arrays.prior == "fixed"
    assert pooled_rows(rep).prior_variance.tolist() == [1, 2, 3]


def test_video_and_sequence_codes_have_channels_too():
    rng = np.random.default_rng(0)
    for shape in ((2, 6), (2, 2, 3, 4)):
        mean = rng.normal(size=(40, *shape))
        regime = ps.diagnose(mean=mean, variance=np.full_like(mean, 0.1))
        assert regime.n_latents == 2
        assert regime.positions.kl_map(1).shape == shape[1:]


def test_a_full_covariance_is_that_of_channels_at_the_same_position():
    rng = np.random.default_rng(0)
    factor = rng.normal(size=(60, 8, 8))
    full = factor @ factor.transpose(0, 2, 1) / 8 + 0.1 * np.eye(8)
    mean = rng.normal(size=(60, 8))
    variance = np.diagonal(full, axis1=1, axis2=2).copy()
    rep = ps.Representation(mean, variance, mean, covariance=full, code_shape=(2, 2, 2))
    rows = pooled_rows(rep)
    np.testing.assert_array_equal(rows.covariance[5 * 4 + 3], full[5][np.ix_([3, 7], [3, 7])])
    np.testing.assert_array_equal(rows.mean[5 * 4 + 3], mean[5, [3, 7]])


def test_wrong_shapes_and_words_are_refused():
    rep = codes(n=20)
    with pytest.raises(InputError, match=r"code_shape must have 48 values.*got 3 × 4"):
        dataclasses.replace(rep, code_shape=(3, 4))
    with pytest.raises(InputError, match=r"effect must have a value for each of 3 channels"):
        dataclasses.replace(rep, effect=np.ones(48), effect_error=np.ones(48))
