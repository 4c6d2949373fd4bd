"""Encoding: right arrays, any encoder, once."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import polariscope as ps
from kept import artefacts
from polariscope.core.errors import InputError
from polariscope.models import inference
from polariscope.storage.artefacts import Artefacts
from polariscope.training.plan import plan

ROWS = np.random.default_rng(0).normal(size=(700, 5)).astype(np.float32)


def linear_model(prior_scale: float = 1.0):
    return (
        plan(ps.from_arrays(ROWS), net="linear", n_latents=3, prior_scale=prior_scale)
        .blueprint.build(0)
        .eval()
    )


def test_arrays_are_those_of_the_encoder_for_the_drawn_samples():
    model, data = linear_model(), ps.from_arrays(ROWS)
    rep = ps.encode(model, data, n_samples=300, seed=4)
    assert len(set(rep.indices.tolist())) == 300
    with torch.inference_mode():
        q = model.encode(torch.from_numpy(ROWS[rep.indices]))
    np.testing.assert_allclose(rep.mean, q.mean.numpy(), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(rep.variance, np.exp(q.log_variance.numpy()), rtol=1e-5)
    kl = 0.5 * (rep.mean**2 + rep.variance - np.log(rep.variance) - 1)
    np.testing.assert_allclose(rep.rate, kl, rtol=1e-4, atol=1e-5)


def test_sampled_is_a_draw_from_the_posterior():
    rep = ps.encode(linear_model(), ROWS, n_samples=None)
    noise = (rep.sampled - rep.mean) / np.sqrt(rep.variance)
    n = noise.size
    assert abs(noise.mean()) < 5 / np.sqrt(n)  # five standard errors of the mean of n unit normals
    assert abs((noise**2).mean() - 1) < 5 * np.sqrt(2 / n)
    assert abs(np.corrcoef(noise.T) - np.eye(3)).max() < 5 / np.sqrt(len(noise))


def test_the_whole_dataset_comes_in_its_order_and_a_larger_number_means_all_of_it():
    for n_samples in (None, 10_000):
        assert ps.encode(linear_model(), ROWS, n_samples=n_samples).indices.tolist() == list(range(700))


def test_the_same_seed_gives_the_same_bytes_and_another_other_samples():
    model = linear_model()
    first, again, other = (ps.encode(model, ROWS, n_samples=100, seed=seed) for seed in (0, 0, 1))
    assert first.sampled.tobytes() == again.sampled.tobytes()
    assert set(first.indices.tolist()) != set(other.indices.tolist())


def test_factors_travel_with_the_samples():
    data = ps.load_dataset("gaussian", n_samples=500)
    model = plan(data, net="linear").blueprint.build(0)
    rep = ps.encode(model, data, n_samples=50)
    np.testing.assert_array_equal(rep.factors, data.factors(rep.indices))
    assert rep.factor_names == data.factor_names


def test_the_prior_goes_with_the_representation():
    rep = ps.encode(linear_model(prior_scale=2.0), ROWS)
    np.testing.assert_allclose(rep.prior_variance, 4.0, rtol=1e-6)
    assert "N(0, 4)" in rep.meaning_of_passive


def test_any_function_or_module_that_returns_mean_and_log_variance_is_an_encoder():
    weights = torch.from_numpy(np.random.default_rng(1).normal(size=(5, 2)).astype(np.float32))

    class Foreign(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.drop = nn.Dropout(0.5)
            self.scale = nn.Parameter(torch.ones(1))

        def forward(self, x):
            return self.drop(x @ weights) * self.scale, torch.full((len(x), 2), -1.0)

    module = Foreign().train()
    rep = ps.encode(module, ROWS, n_samples=None)
    np.testing.assert_allclose(rep.mean, ROWS @ weights.numpy(), rtol=1e-5, atol=1e-5)  # dropout was off
    assert module.training
    np.testing.assert_allclose(rep.variance, np.exp(-1), rtol=1e-6)
    arrays = ps.encode(lambda x: (x.numpy()[:, :2], np.zeros((len(x), 2))), ROWS, n_samples=None)
    np.testing.assert_array_equal(arrays.mean, ROWS[:, :2])


@pytest.mark.parametrize(
    ("encoder", "words"),
    [
        (lambda x: x, r"must return \(mean, log_variance\).*got one array of shape \(700, 5\)"),
        (lambda x: (x, x, x, x), "got 4 outputs, 0 of which could be codes"),
        (lambda x: (x, x[:, :2]), r"got one array of shape \(700, 2\)"),
        (
            lambda x: {"mu": x, "logits": x},
            "or name its parts .* got an object of type dict with the parts logits, mu",
        ),
        (lambda x: torch.distributions.Exponential(torch.ones(len(x), 2)), "got a Exponential distribution"),
        (lambda x: (x[0], x[0]), r"got shapes \(5,\) and \(5,\)"),
        (lambda x: (x, "wide"), "got str"),
        (lambda x: (x * torch.nan, x), "a mean that is not finite"),
        (lambda x: (x, x + 100), "variance reaches"),
        (lambda x: (x.long(), x.long()), "of floating type"),
        (lambda x: (x[:, : 3 if len(x) == 16 else 2],) * 2, "3 latents for one batch and 2 for another"),
    ],
)
def test_anything_else_is_refused_with_what_came(encoder, words, monkeypatch):
    if "another" in words:
        monkeypatch.setattr("polariscope.models.inference.MAX_BATCH", 16)
    with pytest.raises(InputError, match=words):
        ps.encode(encoder, ROWS)


def test_a_run_keeps_its_representation_and_uses_it_again_only_for_the_same_question(tmp_path, monkeypatch):
    data = ps.load_dataset("gaussian", n_samples=500)
    model = ps.train(data, net="mlp", steps=3, out=tmp_path / "run")
    first = ps.encode(model, data, n_samples=100, seed=0)
    calls = []
    original = inference.represent
    monkeypatch.setattr(inference, "represent", lambda *a: calls.append(1) or original(*a))

    kept = ps.encode(str(tmp_path / "run"), n_samples=100, seed=0)
    assert calls == []
    for name in ("mean", "variance", "sampled", "rate", "factors", "indices"):
        assert getattr(kept, name).tobytes() == getattr(first, name).tobytes()
    assert kept.factor_names == first.factor_names

    ps.encode(model, data, n_samples=100, seed=1)
    ps.encode(model, data, n_samples=99, seed=1)
    ps.encode(model, ps.load_dataset("gaussian", n_samples=500, seed=9), n_samples=99, seed=1)
    ps.encode(ps.train(data, net="mlp", steps=4, out=tmp_path / "run"), data, n_samples=99, seed=1)
    assert len(calls) == 4


def test_parts_of_the_split_are_disjoint_and_the_training_part_is_what_was_trained_on(tmp_path):
    data = ps.load_dataset("gaussian", n_samples=500)
    model = ps.train(data, net="mlp", steps=1, out=tmp_path / "run")
    parts = {
        part: set(ps.encode(model, data, n_samples=None, part=part).indices.tolist())
        for part in ("train", "validation", "test")
    }
    assert set.union(*parts.values()) == set(range(500))
    assert sum(map(len, parts.values())) == 500
    assert len(parts["train"]) == 450
    with pytest.raises(InputError, match="requires a model that belongs to a run"):
        ps.encode(linear_model(), ROWS, part="test")


def test_data_of_another_shape_and_missing_data_are_refused(tmp_path):
    with pytest.raises(
        InputError, match=r"trained on observations of shape \(5,\), got data of shape \(4,\)"
    ):
        ps.encode(linear_model(), ROWS[:, :4])
    with pytest.raises(InputError, match="data must be given"):
        ps.encode(linear_model())
    ps.train(ROWS, net="mlp", steps=1, out=tmp_path / "run")
    with pytest.raises(InputError, match="pass data with"):
        ps.encode(tmp_path / "run")
    with pytest.raises(InputError, match="n_samples must be at least 1, got 0; None takes the whole dataset"):
        ps.encode(linear_model(), ROWS, n_samples=0)


def test_a_damaged_representation_is_named_and_made_again(tmp_path, caplog):
    data = ps.load_dataset("gaussian", n_samples=500)
    model = ps.train(data, net="mlp", steps=1, out=tmp_path / "run")
    first = ps.encode(model, data, n_samples=10)
    (file,) = [one.path for one in artefacts(tmp_path / "run", "representation")]
    broken = bytearray(file.read_bytes())
    broken[-3] ^= 4
    file.write_bytes(broken)
    assert ps.encode(model, data, n_samples=10).sampled.tobytes() == first.sampled.tobytes()
    assert f"{file.name} is damaged" in caplog.text
    assert file.with_name(f"{file.name}.damaged").read_bytes() == broken


def test_modules_without_weights_or_in_double_precision_are_encoders_too():
    class Plain(nn.Module):
        def forward(self, x):
            return x[:, :2], x[:, :2] * 0

    double = nn.Linear(5, 4).double()

    class Double(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = double

        def forward(self, x):
            return self.layer(x).chunk(2, dim=1)

    assert ps.encode(Plain(), ROWS).mean.shape == (700, 2)
    assert ps.encode(Double(), ROWS).mean.shape == (700, 2)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"model": 42, "data": ROWS}, "model must be a model, a run folder or a function"),
        ({"part": "tst"}, r"part must be 'all' or 'train' or .*, got 'tst'; did you mean 'test'"),
        ({"n_samples": 10.5}, "n_samples must be an integer, got 10.5"),
    ],
)
@pytest.mark.usefixtures("unannotated")
def test_wrong_arguments_are_refused_in_words(arguments, words):
    with pytest.raises(InputError, match=words):
        ps.encode(**{"model": linear_model(), "data": ROWS, **arguments})


def test_a_run_that_cannot_be_written_to_is_still_encoded(tmp_path, monkeypatch, caplog):
    data = ps.load_dataset("gaussian", n_samples=500)
    model = ps.train(data, net="mlp", steps=1, out=tmp_path / "run")

    def refuse(*_):
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(Artefacts, "keep_arrays", refuse)
    assert ps.encode(model, data, n_samples=10).n_samples == 10
    assert "could not be saved" in caplog.text
