"""Objects with an encoder and a decoder."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import polariscope as ps
from foreign_models import ROWS, WIDTH, Encoder, Methods, Parts, decoder, expected, seeded
from polariscope.core.errors import InputError
from polariscope.geometry.loss_split import split_reconstruction
from polariscope.geometry.orthogonality import decoder_orthogonality
from polariscope.training.plan import plan


@pytest.mark.parametrize("kind", [Parts, Methods])
def test_modules_and_methods_are_read(kind):
    model = seeded(kind)
    mean, variance = expected(model.encoder if kind is Parts else model.first)
    rep = ps.encode(model, ROWS, n_samples=None)
    np.testing.assert_allclose(rep.mean, mean, atol=1e-6)
    np.testing.assert_allclose(rep.variance, variance, rtol=1e-5)
    assert rep.effect is not None  # the decoder is known


def test_layers_of_the_owner_of_a_method_are_compared():
    names = ps.compare([seeded(Methods)], ROWS, n_samples=100).layers
    assert "encoder/first.body" in names
    assert "decoder/last.0" in names
    assert "encoder/last.0" not in names  # only layers that run
    names = ps.compare(seeded(Parts), ROWS, n_samples=100).layers
    assert names == (
        *("input", "encoder/body", "encoder/mu", "encoder/log_var", "mean", "variance", "sampled"),
        *("decoder/0", "decoder/1", "decoder/2"),
    )


def test_a_plain_autoencoder_has_no_rate(tmp_path):
    class Plain(nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder, self.decoder = nn.Sequential(nn.Linear(WIDTH, 2)), nn.Linear(2, WIDTH)

    rep = ps.encode(seeded(Plain), ROWS)
    assert rep.rate is None
    assert rep.variance.max() == 0
    page = ps.report(seeded(Plain), ROWS, out=tmp_path / "page.html").read_text(encoding="utf-8")
    assert "The encoder is deterministic, so there is no KL to the prior." in page
    assert "KL 2" not in page


def test_an_autoencoder_with_unused_layers_is_no_plain_one():
    """The encoder returns features, from which layers of the module compute mean and log-variance."""

    class Features(nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder, self.decoder = nn.Linear(WIDTH, 2), nn.Linear(2, WIDTH)
            self.fc_mu, self.fc_var = nn.Linear(2, 2), nn.Linear(2, 2)

    with pytest.raises(
        InputError, match=r"without the layers fc_mu, fc_var of Features; pass polariscope.wrap"
    ):
        ps.encode(seeded(Features), ROWS)


class Tutorial(nn.Module):
    """The encoder returns features; only the forward pass uses the layers of the posterior."""

    def __init__(self, n_features=5):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(WIDTH, n_features), nn.Tanh())
        self.fc_mu, self.fc_var, self.decoder = nn.Linear(n_features, 3), nn.Linear(n_features, 3), decoder()

    def posterior(self, x):
        hidden = self.encoder(x)
        return self.fc_mu(hidden), self.fc_var(hidden) - 2

    def forward(self, x):
        mean, log_variance = self.posterior(x)
        z = mean + torch.exp(log_variance / 2) * torch.randn_like(mean)
        return self.decoder(z), mean, log_variance


class Chunked(Tutorial):
    """The forward pass splits the values of the encoder into mean and log-variance."""

    def __init__(self):
        super().__init__()
        self.encoder = nn.Linear(WIDTH, 6)
        del self.fc_mu, self.fc_var

    def posterior(self, x):
        return self.encoder(x).chunk(2, dim=1)


@pytest.mark.parametrize("kind", [Tutorial, lambda: Tutorial(3), Chunked], ids=["shapes", "unused", "chunk"])
@pytest.mark.parametrize("how", ["object", "wrapped", "shape"])
def test_layers_between_encoder_and_decoder_are_those_of_the_forward_pass(kind, how):
    model = seeded(kind)
    mean, variance = expected(model.posterior)
    options = {"shape": (WIDTH,)} if how == "shape" else {}
    rep = ps.encode(model if how == "object" else ps.wrap(model, **options), ROWS, n_samples=None)
    np.testing.assert_allclose(rep.mean, mean, atol=1e-6)
    np.testing.assert_allclose(rep.variance, variance, rtol=1e-5)
    assert rep.rate is not None
    assert len(rep.effect) == 3
    assert any("read from the forward pass" in note for note in rep.notes)


def test_if_the_forward_pass_does_not_fit_either_the_first_error_is_raised():
    class Reconstruction(Tutorial):
        def forward(self, x):
            return super().forward(x)[0]

    with pytest.raises(
        InputError, match=r"the decoder Sequential does not accept a batch of shape \(300, 5\)"
    ):
        ps.encode(seeded(Reconstruction), ROWS)
    model = ps.wrap(seeded(lambda: Reconstruction(3)))
    for _ in range(2):
        with pytest.raises(InputError, match=r"without the layers fc_mu, fc_var of Reconstruction"):
            ps.encode(model, ROWS)


def test_objects_that_are_no_modules_are_read():
    class Pair:
        def encode(self, x):
            return x.numpy()[:, :2], np.full((len(x), 2), -3.0)

        def decode(self, z):
            return torch.cat([z, z, z], dim=1)

    rep = ps.encode(Pair(), ROWS)
    np.testing.assert_allclose(rep.variance, np.exp(-3), rtol=1e-6)


def test_the_same_weights_have_the_same_diagnosis_as_in_our_model():
    job = plan(ps.from_arrays(ROWS), net="mlp", n_latents=3, likelihood_variance=1.0)
    ours = job.blueprint.build(3).eval()

    class Theirs(nn.Module):
        def __init__(self):
            super().__init__()
            self.trunk, self.head, self.decoder = ours.encoder.trunk, ours.encoder.head, ours.decoder.trunk

        def encode(self, x):
            q = self.head(self.trunk(x))
            return {"mu": q.mean, "log_var": q.log_variance}

    theirs = Theirs()
    mine, other = ps.diagnose(ours, ROWS), ps.diagnose(ps.wrap(theirs, likelihood="gaussian"), ROWS)
    assert other.types == mine.types
    assert other.in_use == mine.in_use
    for name in ("kl", "mean_of_variance", "std_of_mean"):
        values = [[getattr(latent, name) for latent in each.latents] for each in (mine, other)]
        np.testing.assert_allclose(values[1], values[0], rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(other.trace, mine.trace, rtol=1e-5)
    reps = [ps.encode(each, ROWS) for each in (ours, ps.wrap(theirs, likelihood="gaussian"))]
    for name in ("mean", "variance", "rate", "effect"):
        np.testing.assert_allclose(*(getattr(rep, name) for rep in reps), rtol=1e-5, atol=1e-5)


def test_every_analysis_takes_the_object_itself(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    first, second = seeded(Parts), Parts()
    data = ps.from_arrays(ROWS, (ROWS[:, :1] > 0).astype(int))
    assert ps.diagnose(first, data).n_latents == 3
    assert "mig" in str(ps.score(first, "mig", data=data))
    assert "total correlation" in str(ps.decompose(first, data)).lower()
    assert len(ps.stability([first, second], data).names) == 2
    assert split_reconstruction(first, data, n_samples=50).total > 0
    assert decoder_orthogonality(first, ps.encode(first, data).mean, n_points=20).value >= 0
    page = ps.report(first, data)
    assert page.resolve() == tmp_path / "Parts.html"
    assert "Parts" in page.read_text(encoding="utf-8")


def test_bad_models_are_refused_in_words():
    class Shaped(Parts):
        def __init__(self, decoder):
            super().__init__()
            self.decoder = decoder

    class Shorter(nn.Module):
        def forward(self, z):
            return z[1:]

    with pytest.raises(InputError, match=r"the decoder must return observations of shape \(6,\), got \(4,\)"):
        ps.encode(Shaped(nn.Linear(3, 4)), ROWS)
    with pytest.raises(InputError, match=r"the decoder Linear does not accept a batch of shape \(300, 3\)"):
        ps.encode(Shaped(nn.Linear(2, 6)), ROWS)
    with pytest.raises(InputError, match=r"a row of values for each of 300 codes, got shape \(299, 3\)"):
        ps.encode(Shaped(Shorter()), ROWS)
    with pytest.raises(InputError, match="meta"):
        ps.encode(Parts().to("meta"), ROWS)
    with pytest.raises(InputError, match="no layer named 'encoder/nothing'"):
        ps.wrap(Parts(), layers=["encoder/nothing"])
    unused = ps.wrap(Methods(), layers=["encoder/last.0"])
    with pytest.raises(InputError, match=r"layers must name modules that run .* got encoder/last.0"):
        ps.compare([unused], ROWS, n_samples=50)
    broken = Parts()
    with torch.no_grad():
        broken.encoder.mu.bias[0] = torch.nan
    with pytest.raises(InputError, match="a mean that is not finite"):
        ps.encode(broken, ROWS)


def test_training_mode_is_left_and_restored():
    class Dropped(Parts):
        def __init__(self):
            super().__init__()
            self.encoder = nn.Sequential(nn.Dropout(0.5), Encoder())
            self.decoder = decoder()

    model = seeded(Dropped).train()
    np.testing.assert_array_equal(ps.encode(model, ROWS).mean, ps.encode(model, ROWS).mean)
    assert all(part.training for part in model.modules())
