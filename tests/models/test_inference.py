"""One loop for all: bounded batches, the same results however samples are put together."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import stats

import polariscope as ps
from polariscope.core.seeds import normals
from polariscope.models import inference
from polariscope.training.plan import plan

DATA = ps.load_dataset("gaussian", n_samples=300)


@pytest.fixture(scope="module")
def model() -> ps.models.model.Model:
    return plan(DATA, net="mlp", n_latents=3).blueprint.build(0).double().eval()


@pytest.mark.parametrize("size", [1, 7, 300])
def test_the_batch_size_changes_nothing_but_rounding(model, size, monkeypatch):
    whole = inference.represent(model, DATA, np.arange(300), seed=2)
    monkeypatch.setattr(inference, "batch_size", lambda n_features: size)
    parts = inference.represent(model, DATA, np.arange(300), seed=2)
    for name in ("mean", "variance", "sampled", "rate"):
        np.testing.assert_allclose(getattr(parts, name), getattr(whole, name), rtol=1e-6, atol=1e-7)


def test_the_draw_of_a_sample_does_not_depend_on_the_others(model):
    whole = inference.represent(model, DATA, np.arange(300), seed=2)
    some = inference.represent(model, DATA, np.array([250, 3, 77]), seed=2)
    np.testing.assert_allclose(some.sampled, whole.sampled[[250, 3, 77]], rtol=1e-6)
    other = inference.represent(model, DATA, np.array([250, 3, 77]), seed=3)
    assert not np.isclose(other.sampled, some.sampled).any()


def test_a_batch_that_does_not_fit_is_halved(model, monkeypatch):
    whole = inference.represent(model, DATA, np.arange(300), seed=2)
    original, refused = type(model).encode, []

    def encode(self, x, auxiliary=None):
        if len(x) > 50:
            refused.append(len(x))
            raise torch.OutOfMemoryError("no room")
        return original(self, x, auxiliary)

    monkeypatch.setattr(type(model), "encode", encode)
    told: list[tuple[int, int]] = []
    parts = inference.represent(
        model, DATA, np.arange(300), 2, lambda done, total: told.append((done, total))
    )
    assert refused
    np.testing.assert_allclose(parts.sampled, whole.sampled, rtol=1e-6, atol=1e-7)
    assert told[-1] == (300, 300)
    assert [done for done, _ in told] == sorted(done for done, _ in told)


def test_a_model_is_left_in_the_mode_it_was_in(model):
    for mode in (True, False):
        model.train(mode)
        inference.represent(model, DATA, np.arange(5), seed=0)
        assert model.training is mode


def test_the_noise_is_standard_normal_and_independent_over_samples_columns_and_seeds():
    draws = normals(5, "noise", indices=np.arange(20_000), width=4)
    # Kolmogorov–Smirnov at the 0.1 % level, for each column and for all together.
    for column in (*draws.T, draws.ravel()):
        assert stats.kstest(column, "norm").pvalue > 1e-3
    others = [np.roll(draws, 1, axis=0), normals(6, "noise", indices=np.arange(20_000), width=4)]
    others += [normals(5, "other", indices=np.arange(20_000), width=4)]
    limit = 4.5 / np.sqrt(len(draws))  # standard errors of a correlation of independent numbers
    for other in others:
        assert np.abs(np.corrcoef(draws.T, other.T)[:4, 4:]).max() < limit
    assert np.abs(np.corrcoef(draws.T) - np.eye(4)).max() < limit
    assert np.unique(draws).size == draws.size


def test_draws_of_the_prior_come_with_their_density_and_leave_the_model_as_it_is() -> None:
    model = plan(DATA, net="linear", n_latents=2, prior="mixture").blueprint.build(0)
    z, log_density = inference.draw_prior(model, 40, seed=3)
    assert (z.dtype, z.shape, log_density.shape) == (np.float64, (40, 2), (40,))
    centres = np.array([[0, 1], [0, -1], [1, 0], [-1, 0]])
    squares = ((z[:, None] - centres) ** 2).sum(axis=2)
    expected = np.log((np.exp(-squares / 0.06) / (2 * np.pi * 0.03)).mean(axis=1))
    np.testing.assert_allclose(log_density, expected, rtol=1e-6)  # 0.03 and the centres in float32
    assert model.prior.means.dtype == torch.float32
    np.testing.assert_array_equal(inference.draw_prior(model, 40, seed=3)[0], z)
    assert not np.isclose(inference.draw_prior(model, 40, seed=4)[0], z).all()


def test_a_prior_that_depends_on_the_sample_has_no_draws_of_its_own() -> None:
    data = ps.load_dataset("pinwheel", n_samples=40)
    model = plan(data, objective="ivae", net="linear", n_latents=2).blueprint.build(0)
    assert inference.draw_prior(model, 40, seed=3) is None
