"""The decoder effect is what theory says: of linear VAEs in closed form, and 0 for latents that nobody needs."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import polariscope as ps
from polariscope.analysis.regime.use import LIMIT, MAX_OBSERVATIONS
from polariscope.analysis.theory import linear_posterior, linear_vae
from polariscope.models.effect import decoder_effect, standard_errors
from polariscope.training.plan import plan

EIGENVALUES = np.array([6.0, 3.0, 1.5, 0.6, 0.3])
GAMMA = 0.5


def rows(n_samples, seed=0):
    draws = np.random.default_rng(seed).normal(size=(n_samples, len(EIGENVALUES)))
    return ps.from_arrays((draws * np.sqrt(EIGENVALUES)).astype(np.float32))


def linear_model(beta=1.0, order=(0, 1, 2, 3, 4), scale=1.0, ignored=(), noise=1.0):
    """The optimum of a linear β-VAE on these rows, with latents in another order, rescaled, or cut off."""
    solution = linear_vae(EIGENVALUES, 5, beta=beta, gamma=GAMMA)
    weights = np.diag(solution.singular_values)[:, list(order)]
    posterior = linear_posterior(weights, beta=beta, gamma=GAMMA)
    mean_map = torch.from_numpy(scale * posterior.mean_map).float()
    deviations = torch.from_numpy(scale * np.sqrt(noise * posterior.covariance.diagonal())).float()
    decoder = torch.from_numpy(weights / scale).float()
    decoder[:, list(ignored)] = 0

    def encoder(x):
        return x @ mean_map.T, deviations.expand(len(x), -1)

    return ps.wrap(
        encoder, lambda z: z @ decoder.T, likelihood="gaussian", variance=GAMMA, shape=5, second="std"
    )


def effect_of(model, n_samples=1000, seed=0):
    found = decoder_effect(model, rows(n_samples, seed), np.arange(n_samples), seed)
    return np.array(found.value), np.array(found.error)


@pytest.mark.parametrize("beta", [1.0, 2.0, 4.0])
def test_the_effect_of_a_linear_vae_is_that_of_its_closed_form(beta):
    # An exchange moves the output by w (z − z'), with E (z − z')² = 2, and x − Wz is not correlated with z:
    # the loss rises by w² / γ = λ/γ − β, and by nothing for a passive latent, where w = 0.
    value, error = effect_of(linear_model(beta))
    expected = np.maximum(0, EIGENVALUES / GAMMA - beta)
    assert (np.abs(value - expected) <= 4 * error).all()
    assert (value[expected == 0] == 0).all()
    assert (error[expected == 0] == 0).all()


def test_a_latent_that_the_decoder_ignores_has_no_effect_however_much_it_says():
    model = linear_model(ignored=(0,))
    value, error = effect_of(model)
    assert (value[0], error[0]) == (0, 0)
    rep = ps.encode(model, rows(1000))
    informed = ps.diagnose(ps.Representation(rep.mean, rep.variance, rep.sampled))
    assert 0 in informed.in_use
    assert 0 not in ps.diagnose(rep).in_use


def test_a_latent_of_pure_noise_has_no_effect_although_the_decoder_uses_it():
    def encoder(x):
        return torch.cat([x[:, :1], torch.zeros(len(x), 1)], 1), torch.full((len(x), 2), 0.1)

    model = ps.wrap(encoder, lambda z: z @ torch.ones(2, 5), likelihood="gaussian", shape=5, second="std")
    value, error = effect_of(model)
    assert error[1] > 0
    assert abs(value[1]) <= 4 * error[1]


def simulated_rises(n_samples, rng):
    """Rises of a linear decoder: those of observation i with the value of i − k − 1, for two latents."""
    codes = rng.normal(size=(n_samples, 2))
    n_shifts = max(1, min(MAX_OBSERVATIONS // n_samples, (n_samples - 1) // 2))
    return np.array([(codes - np.roll(codes, shift + 1, axis=0)) ** 2 for shift in range(n_shifts)])


@pytest.mark.parametrize(("n_samples", "tolerance"), [(9, 0.25), (40, 0.1), (200, 0.06), (1000, 0.06)])
def test_the_standard_error_is_the_spread_over_sets_of_data(n_samples, tolerance):
    # Each observation lends and borrows; treated as independent, rises would have an error that is a fifth too small,
    # and exchanged several times half as large as it is.
    rng = np.random.default_rng(1)
    sets = [simulated_rises(n_samples, rng) for _ in range(1000)]
    spread = np.std([rises.mean(axis=(0, 1)) for rises in sets])
    stated = np.sqrt(np.mean([standard_errors(rises) ** 2 for rises in sets]))
    assert stated / spread == pytest.approx(1, abs=tolerance)


def test_the_lower_limit_holds_in_about_95_percent_of_sets():
    rng = np.random.default_rng(2)
    sets = [simulated_rises(200, rng) for _ in range(1000)]
    held = [rises.mean(axis=(0, 1)) - LIMIT * standard_errors(rises) <= 2 for rises in sets]
    # Rises are skewed to the right, which makes a lower limit conservative.
    assert 0.945 <= np.mean(held) <= 0.99


def test_the_order_of_latents_and_observations_and_their_units_change_nothing():
    plain = effect_of(linear_model(noise=1e-12))
    moved = effect_of(linear_model(noise=1e-12, order=(3, 1, 4, 0, 2), scale=7.0))
    for before, after in zip(plain, moved, strict=True):
        np.testing.assert_allclose(after, before[[3, 1, 4, 0, 2]], rtol=1e-3, atol=1e-5)


def test_the_batch_size_changes_nothing_but_rounding(monkeypatch):
    from polariscope.models import inference

    whole = effect_of(linear_model(), 300)
    monkeypatch.setattr(inference, "batch_size", lambda n_features: 7)
    for before, after in zip(whole, effect_of(linear_model(), 300), strict=True):
        np.testing.assert_allclose(after, before, rtol=1e-4, atol=1e-6)


def test_at_most_1000_observations_are_used_and_these_are_random():
    seen = set()
    model = linear_model()
    encoder = model.encoder

    def watched(x):
        seen.update(x[:, 0].tolist())
        return encoder(x)

    model.encoder = watched
    decoder_effect(model, rows(5000), np.arange(5000))
    assert len(seen) == MAX_OBSERVATIONS
    places = np.flatnonzero(np.isin(rows(5000).values(np.arange(5000))[:, 0], list(seen)))
    assert places.mean() == pytest.approx(2500, abs=4 * 5000 / np.sqrt(12 * 1000))


def test_a_foreign_model_is_encoded_with_its_effect_and_one_without_decoder_without():
    model = linear_model()
    rep = ps.encode(model, rows(500))
    assert rep.effect.shape == rep.effect_error.shape == (5,)
    assert ps.diagnose(rep).uses[0].evidence == "decoder"
    bare = ps.encode(model.encoder, rows(500), second="std")
    assert bare.effect is None
    assert ps.diagnose(bare).uses[0].evidence == "information"
    assert not decoder_effect(ps.wrap(model.encoder, shape=5, second="std"), rows(50), np.arange(50)).value


def test_two_observations_have_no_error_so_the_effect_is_empty():
    assert decoder_effect(linear_model(), rows(2), np.arange(2)).value == ()
    assert len(decoder_effect(linear_model(), rows(3), np.arange(3)).value) == 5


def test_the_prior_has_no_part_in_the_effect():
    data = ps.load_dataset("gaussian", n_samples=200)
    model = plan(data, objective="ivae", prior_mean="learned", net="linear", n_latents=3).blueprint.build(0)
    before = decoder_effect(model, data, np.arange(200))
    rate = ps.encode(model, data).rate
    with torch.no_grad():
        for weights in model.prior.parameters():
            weights.mul_(0.5)
    assert not np.allclose(ps.encode(model, data).rate, rate)
    assert decoder_effect(model, data, np.arange(200)) == before


def test_the_effect_of_a_channel_is_that_of_all_its_positions_exchanged_together():
    """With a linear decoder and Gaussian noise the effect of independent latents adds up, in closed form.

    For x = z + noise, exchanging k values with variance λ and noise-free codes raises ½ |x − z|²/γ by kλ/γ on average.
    """
    rng = np.random.default_rng(0)
    x = rng.normal(size=(1000, 8)).astype(np.float32)
    model = ps.wrap(
        lambda x: (x.reshape(-1, 2, 2, 2), torch.full((len(x), 2, 2, 2), -30.0)),
        lambda z: z.reshape(len(z), 8) * torch.tensor([1.0] * 4 + [0.0] * 4),
        likelihood="gaussian",
        variance=GAMMA,
    )
    rep, by_value = ps.encode(model, x), ps.encode(model, x, per="value")
    assert rep.code_shape == (2, 2, 2)
    assert rep.effect.shape == (2,)
    assert by_value.effect.shape == (8,)
    # E ½ (z' − z)²/γ per value is λ/γ with λ = 1.
    assert rep.effect[0] == pytest.approx(4 / GAMMA, abs=4 * rep.effect_error[0])
    assert rep.effect[1] == pytest.approx(0, abs=1e-6)
    assert by_value.effect[:4].sum() == pytest.approx(rep.effect[0], abs=4 * rep.effect_error[0])
    regime = ps.diagnose(rep)
    assert regime.in_use == [0]
    assert regime.uses[0].evidence == "decoder"
    # The effect of channels says nothing about single values, so it is left out.
    assert ps.diagnose(rep, per="value").uses[0].evidence == "information"
    assert ps.diagnose(model, data=x, per="value").uses[0].evidence == "decoder"
