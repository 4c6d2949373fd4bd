import dataclasses
import math
import time

import jaxtyping
import numpy as np
import pytest

from analysis.regime.linear_vae import linear_vae, orthogonal_columns
from polariscope.analysis.regime.diagnose import diagnose
from polariscope.analysis.representation import Representation
from polariscope.core.errors import InputError


@pytest.mark.parametrize(("beta", "gamma"), [(1.0, 0.5), (4.0, 0.5), (2.0, 30.0)])
def test_the_linear_vae_is_diagnosed_exactly(beta, gamma):
    eigenvalues = np.array([3.0, 100.0, 0.2, 40.0, 25.0, 0.01])
    noise = beta * gamma
    regime = diagnose(Representation(*linear_vae(eigenvalues, noise)))
    variances = np.minimum(1, noise / eigenvalues)
    expected = ["active" if v <= 0.1 else "passive" if v >= 0.9 else "mixed" for v in variances]
    assert regime.types == expected
    kls = 0.5 * np.log(np.maximum(1, eigenvalues / noise))
    np.testing.assert_allclose([latent.kl for latent in regime.latents], kls, atol=1e-11)
    np.testing.assert_allclose([latent.mean_of_variance for latent in regime.latents], variances, rtol=1e-12)
    np.testing.assert_allclose(
        [latent.std_of_mean for latent in regime.latents], np.sqrt(1 - variances), atol=1e-12
    )
    n_in_use = int((eigenvalues > noise).sum())
    assert list(regime.order[:n_in_use]) == np.argsort(-eigenvalues)[:n_in_use].tolist()
    assert regime.trace == pytest.approx(variances.sum(), rel=1e-12)
    assert regime.kl == pytest.approx(kls.sum(), rel=1e-11)
    # Every latent has Var[μ] + σ² = 1 and none correlates: the sampled representation is white.
    assert regime.sampled.effective_rank == pytest.approx(6, abs=1e-9)
    assert regime.sampled.total_correlation == pytest.approx(0, abs=1e-10)
    assert regime.noise_free_total_correlation == pytest.approx(0, abs=1e-10)
    assert [latent.confidence for latent in regime.latents] == [1.0] * 6
    in_use = [name != "passive" for name in expected]
    assert (regime.mean.predicted_rank, regime.sampled.predicted_rank) == (sum(in_use), 6)
    assert list(dict(zip(regime.criteria.names, regime.criteria.in_use, strict=True))["primary"]) == in_use


def test_worked_numbers_of_the_linear_vae_are_found():
    # T1: Λ² = (4, 1), γ = 0.1, β = 1: λ = Λ² + γ, so that σ² = γ/(Λ² + γ) = (0.024, 0.091).
    regime = diagnose(Representation(*linear_vae([4.1, 1.1], noise=0.1)))
    assert [round(latent.mean_of_variance, 3) for latent in regime.latents] == [0.024, 0.091]
    assert regime.types == ["active", "active"]
    regime = diagnose(Representation(*linear_vae([104.0, 101.0], noise=100.0)))
    assert [round(latent.mean_of_variance, 4) for latent in regime.latents] == [0.9615, 0.9901]
    assert regime.types == ["passive", "passive"]


def leaking(n=4000, leak=0.9, seed=0):
    """Two active latents, whose means leak faintly into two passive ones (bonheme2023 §6.4)."""
    columns = orthogonal_columns(n, 8, seed)
    variance = np.tile([0.01, 0.01, 1.0, 1.0], (n, 1))
    active = columns[:, :2]
    passive = 1e-3 * (leak * active + math.sqrt(1 - leak**2) * columns[:, 2:4])
    mean = np.concatenate([active, passive], axis=1)
    return Representation(mean, variance, mean + np.sqrt(variance) * columns[:, 4:])


def test_passive_latents_inflate_the_total_correlation_of_the_mean_and_not_of_the_sampled():
    regime = diagnose(leaking())
    assert regime.types == ["active", "active", "passive", "passive"]
    rows = {row.selection: row for row in regime.truncation}
    # Two independent pairs with correlation 0.9.
    assert rows["full"].mean.total_correlation == pytest.approx(-math.log(1 - 0.81), abs=1e-9)
    assert rows["active+mixed"].mean.total_correlation == pytest.approx(0, abs=1e-10)
    # In the sampled representation the leak of 1e-3 is drowned: ρ² ≈ 1e-6 · 0.81 / 1.01.
    assert rows["full"].sampled.total_correlation == pytest.approx(0.81e-6 / 1.01, rel=1e-3)
    assert rows["full"].noise_free_total_correlation == pytest.approx(0.81e-6 / 1.01, rel=1e-3)
    assert (
        rows["full"].mean.averaged_mutual_information > 2 * rows["full"].sampled.averaged_mutual_information
    )


def test_effective_ranks_meet_their_predictions_in_a_polarised_model():
    regime = diagnose(leaking())
    assert (regime.mean.predicted_rank, regime.sampled.predicted_rank) == (2, 4)
    assert regime.mean.effective_rank == pytest.approx(2, abs=1e-4)
    assert regime.sampled.effective_rank == pytest.approx(4, abs=1e-3)


def test_passive_means_correlate_with_their_source_and_sampled_ones_do_not():
    regime = diagnose(leaking())
    assert [(p.latent, p.partner, p.n_correlated) for p in regime.passive_partners] == [(2, 0, 1), (3, 1, 1)]
    assert [p.correlation for p in regime.passive_partners] == pytest.approx([0.9, 0.9], abs=1e-10)
    assert max(abs(p.correlation) for p in regime.sampled.partners) < 0.01


def messy(n=600, seed=0):
    rng = np.random.default_rng(seed)
    variance = rng.uniform(0.02, 0.98, size=(n, 5)) ** np.array([8.0, 1.0, 0.3, 0.05, 0.02])
    mean = rng.normal(size=(n, 5)) @ rng.normal(size=(5, 5))
    return Representation(mean, variance, mean + np.sqrt(variance) * rng.normal(size=(n, 5)))


def test_permuting_the_latents_permutes_the_diagnosis():
    rep, order = messy(), [3, 0, 4, 2, 1]
    first = diagnose(rep)
    second = diagnose(Representation(rep.mean[:, order], rep.variance[:, order], rep.sampled[:, order]))
    for new, old in enumerate(order):
        a, b = first.latents[old], second.latents[new]
        # BLAS may sum in another order.
        assert (a.type, a.mixture, a.confidence) == (b.type, b.mixture, b.confidence)
        assert (a.kl, a.mean_of_mean) == pytest.approx((b.kl, b.mean_of_mean), rel=1e-12)
    assert [order[index] for index in second.order] == list(first.order)
    assert second.mean.total_correlation == pytest.approx(first.mean.total_correlation, rel=1e-10)
    np.testing.assert_allclose(
        second.mean.mutual_information,
        np.array(first.mean.mutual_information)[np.ix_(order, order)],
        atol=1e-13,
    )


def test_the_same_seed_gives_the_same_diagnosis_and_another_one_other_resamples():
    rep = messy()
    variance = rep.variance.copy()
    variance[:, 0] = np.tile([0.05, 0.15], 300)
    rep = Representation(rep.mean, variance, rep.sampled)
    assert diagnose(rep, seed=3) == diagnose(rep, seed=3)
    assert diagnose(rep, seed=3).latents[0].shares != diagnose(rep, seed=4).latents[0].shares


def test_arrays_and_a_representation_give_the_same_diagnosis():
    rep = messy()
    assert diagnose(mean=rep.mean, variance=rep.variance, sampled=rep.sampled) == diagnose(rep)
    assert diagnose(mean=rep.mean.tolist(), variance=rep.variance, sampled=rep.sampled.tolist()) == diagnose(
        rep
    )


def test_a_sampled_array_that_is_not_given_is_drawn_from_the_posterior():
    rep = messy()
    drawn = diagnose(mean=rep.mean, variance=rep.variance, seed=1)
    assert drawn == diagnose(mean=rep.mean, variance=rep.variance, seed=1)
    assert drawn.latents == diagnose(rep, seed=1).latents
    assert "sampled was not passed" in drawn.notes[0]
    # It has the noise-free covariance, up to the noise of 600 samples.
    assert drawn.sampled.total_correlation == pytest.approx(drawn.noise_free_total_correlation, abs=0.2)


def test_the_arrays_are_left_as_they_were():
    rep = messy()
    copies = [array.copy() for array in (rep.mean, rep.variance, rep.sampled)]
    diagnose(rep)
    for array, copy in zip((rep.mean, rep.variance, rep.sampled), copies, strict=True):
        np.testing.assert_array_equal(array, copy)


def test_single_precision_gives_nearly_the_numbers_of_double_precision():
    rep = messy()
    single = diagnose(
        *[Representation(*(a.astype(np.float32) for a in (rep.mean, rep.variance, rep.sampled)))]
    )
    double = diagnose(rep)
    assert single.types == double.types
    assert single.kl == pytest.approx(double.kl, rel=1e-6)
    assert single.mean.total_correlation == pytest.approx(double.mean.total_correlation, rel=1e-5)


def test_a_models_own_rate_is_used_for_the_kl_and_the_order():
    rep = dataclasses.replace(messy(), rate=np.tile([0.1, 0.2, 0.3, 0.4, -0.01], (600, 1)))
    regime = diagnose(rep)
    assert [latent.kl for latent in regime.latents] == pytest.approx([0.1, 0.2, 0.3, 0.4, -0.01])
    assert regime.order == (3, 2, 1, 0, 4)
    assert regime.latents[4].kl_interval == pytest.approx((-0.01, -0.01))


def test_a_conditional_prior_is_read_from_the_representation():
    rng = np.random.default_rng(0)
    mean, variance = rng.normal(size=(500, 2)), rng.uniform(0.01, 0.03, size=(500, 2))
    prior_mean, prior_variance = mean * [0, 1], np.stack([np.ones(500), variance[:, 1]], axis=1)
    regime = diagnose(mean=mean, variance=variance, prior_mean=prior_mean, prior_variance=prior_variance)
    assert regime.prior == "conditional"
    assert regime.types == ["active", "passive"]
    assert regime.latents[1].kl == 0
    assert regime.latents[1].mean_of_ratio == 1
    assert regime.latents[1].mean_of_variance == pytest.approx(variance[:, 1].mean())


def test_a_collapsed_model_is_all_passive_and_every_number_is_defined():
    regime = diagnose(mean=np.zeros((100, 3)), variance=np.ones((100, 3)), sampled=np.zeros((100, 3)))
    assert regime.types == ["passive"] * 3
    assert (regime.kl, regime.polarisation.delta) == (0.0, 0.0)
    for structure in (regime.mean, regime.sampled):
        assert (
            structure.total_correlation
            == structure.averaged_mutual_information
            == structure.effective_rank
            == 0
        )
        np.testing.assert_array_equal(structure.correlation, np.eye(3))
    assert regime.order == (0, 1, 2)


def test_a_posterior_variance_of_zero_has_an_infinite_kl_and_comes_first():
    variance = np.full((50, 2), 0.01)
    variance[:, 1] = 0
    regime = diagnose(mean=np.random.default_rng(0).normal(size=(50, 2)), variance=variance)
    assert regime.types == ["active", "active"]
    assert regime.latents[1].kl == regime.kl == math.inf
    assert regime.latents[1].kl_interval == (math.inf, math.inf)
    assert regime.order == (1, 0)


def test_two_samples_of_one_latent_are_enough():
    regime = diagnose(mean=[[0.0], [1.0]], variance=[[0.01], [0.02]])
    assert regime.types == ["active"]
    assert regime.mean.total_correlation == 0
    assert regime.mean.partners[0].partner is None
    assert all(row.mean is None for row in regime.truncation)


def test_ten_thousand_codes_of_ten_latents_take_less_than_a_second():
    rng = np.random.default_rng(0)
    codes = {"mean": rng.normal(size=(10_000, 10)), "variance": rng.uniform(0.01, 1, size=(10_000, 10))}
    started = time.process_time()
    diagnose(**codes)
    assert time.process_time() - started < 1


class Unwilling:
    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("call detach first")


GOOD = {"mean": np.zeros((4, 2)), "variance": np.ones((4, 2))}


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            {"mean": np.zeros((1, 2)), "variance": np.ones((1, 2))},
            "requires at least 2 samples, got 1.*encode",
        ),
        (
            {**GOOD, "variance": np.full((4, 2), -1.0)},
            "variance must not be negative, got a minimum of -1.*np.exp",
        ),
        ({**GOOD, "mean": np.full((4, 2), np.nan)}, "mean must be finite, got 8 NaN or infinite of 8 values"),
        ({**GOOD, "variance": np.full((4, 2), np.inf)}, "variance must be finite"),
        ({**GOOD, "sampled": np.full((4, 2), np.nan)}, "sampled must be finite"),
        ({**GOOD, "variance": np.ones((4, 3))}, r"mean and variance must have the same shape, got \(4, 2\)"),
        ({**GOOD, "sampled": np.ones((5, 2))}, "mean and sampled must have the same shape"),
        ({**GOOD, "mean": np.zeros(4)}, r"mean must have shape \(sample, latent\)"),
        ({**GOOD, "mean": np.zeros((0, 2))}, r"mean must have shape \(sample, latent\)"),
        (
            {**GOOD, "mean": np.full((4, 2), 1e31)},
            r"mean must stay below 1e\+30, got 1e\+31; the model has diverged",
        ),
        ({**GOOD, "mean": [["a", "b"]] * 4}, "mean must be an array of real numbers, got an array of <U1"),
        (
            {**GOOD, "mean": Unwilling()},
            r"mean must be an array of numbers, got Unwilling \(call detach first\)",
        ),
        (
            {**GOOD, "prior_mean": np.zeros(3)},
            r"prior_mean must have shape \(latent,\) or \(sample, latent\)",
        ),
        ({**GOOD, "prior_variance": np.zeros(2)}, "prior_variance must be positive"),
        ({**GOOD, "prior_variance": np.full(2, 1e-40)}, "prior_variance must be at least 1e-30.*collapsed"),
        ({**GOOD, "prior_variance": np.array([1.0, 1e-31])}, "prior_variance must be at least 1e-30"),
        ({**GOOD, "prior_mean": np.array([0.0, 1e31])}, r"prior_mean must stay below 1e\+30, got 1e\+31"),
        ({**GOOD, "alpha": 0.0}, "alpha must lie between 0 and 0.5, got 0.0"),
        ({**GOOD, "alpha": 0.5}, "could be both active and passive. The published value is 0.1"),
        ({**GOOD, "n_bootstrap": 0}, "n_bootstrap must be at least 1, got 0"),
        (
            {"mean": np.zeros((4, 2))},
            "diagnose requires variance; pass a Representation, or mean and variance",
        ),
        ({}, "diagnose requires mean and variance"),
        (
            {"representation": np.zeros((4, 2))},
            "first argument must be a Representation, got ndarray; encode a model .*pass arrays",
        ),
        (
            {"representation": Representation(*[np.ones((4, 2))] * 3), **GOOD},
            "both passed, got a Representation and mean, variance",
        ),
    ],
)
def test_bad_input_is_refused_in_words(call, words, monkeypatch):
    # As users call it: the shape checks of the tests would otherwise be the first to complain.
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    with pytest.raises(InputError, match=words):
        diagnose(**call)


def test_a_prior_that_is_narrow_but_not_collapsed_is_accepted():
    for narrow in (1e-29, 0.5):
        regime = diagnose(
            mean=np.zeros((4, 2)), variance=np.full((4, 2), narrow), prior_variance=np.full(2, narrow)
        )
        assert regime.types == ["passive", "passive"]


@pytest.mark.parametrize("kind", [np.float16, np.int64])
def test_half_precision_and_integers_are_computed_with_in_double_precision(kind):
    rng = np.random.default_rng(0)
    mean, variance = rng.integers(-3, 4, size=(50, 3)), rng.integers(1, 3, size=(50, 3))
    mean, variance = (array.astype(kind) for array in (mean, variance))
    sampled = mean + rng.integers(-1, 2, size=(50, 3)).astype(kind)
    given = {"mean": mean, "variance": variance, "sampled": sampled}
    assert diagnose(**given) == diagnose(**{name: array.astype(np.float64) for name, array in given.items()})


def test_the_kl_and_its_interval_are_the_mean_of_the_samples_and_of_its_error():
    rep = messy()
    kl = (rep.mean**2 + rep.variance - np.log(rep.variance) - 1) / 2
    half = 1.959963984540054 * kl.std(axis=0, ddof=1) / math.sqrt(len(kl))
    for latent, mean, margin in zip(diagnose(rep).latents, kl.mean(axis=0), half, strict=True):
        assert latent.kl == pytest.approx(mean, rel=1e-12)
        assert latent.kl_interval == pytest.approx((max(0.0, mean - margin), mean + margin), rel=1e-12)


def test_the_least_number_of_resamples_is_one():
    assert list(diagnose(**GOOD, n_bootstrap=1).types) == ["passive", "passive"]


def test_a_deterministic_encoder_is_shown_without_a_kl() -> None:
    mean = np.random.default_rng(0).normal(size=(200, 2))
    text = str(diagnose(mean=mean, variance=np.zeros_like(mean)))
    assert "The encoder is deterministic, so there is no KL." in text
    assert "∞" not in text
    assert "Latents, 200 samples" in text
    # One latent with a variance of 0 among others still has a KL, an infinite one.
    assert "∞" in str(diagnose(mean=mean, variance=np.broadcast_to([0.0, 0.5], mean.shape)))
