"""Autoencoders with the attributes of those of diffusers."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest
import torch
from torch import nn

import polariscope as ps
from foreign_models import IMAGES, namespace, of_library, seeded
from polariscope.core.errors import InputError
from polariscope.geometry.jacobian import decoder_jacobian
from polariscope.models.open_model import open_model


class AutoencoderKL(nn.Module):
    def __init__(self, config=None):
        super().__init__()
        self.config = {"scaling_factor": 0.18215} if config is None else config
        self.down, self.up = nn.Conv2d(3, 4, 2, 2), nn.ConvTranspose2d(2, 3, 2, 2)

    def encode(self, x):
        mean, logvar = self.down(x).chunk(2, dim=1)
        dist = namespace(mean=mean, logvar=logvar, std=torch.exp(logvar / 2), var=torch.exp(logvar))
        return namespace(latent_dist=dist)

    def decode(self, z):
        return namespace(sample=self.up(z))


def test_images_are_converted_to_the_range_of_the_autoencoder():
    model = seeded(of_library(AutoencoderKL, "diffusers"))
    rep = ps.encode(model, IMAGES, n_samples=None)
    with torch.inference_mode():
        mean = model.down(2 * torch.from_numpy(IMAGES) - 1)[:, :2]
        expected = (model.up(mean) + 1) / 2
    np.testing.assert_allclose(rep.mean, mean.flatten(1).numpy(), atol=1e-6)
    opened, _ = open_model(model, IMAGES)
    assert opened.code_shape == (2, 2, 2)
    with torch.inference_mode():
        torch.testing.assert_close(opened.decode(mean.flatten(1)).mean, expected)
    assert any("multiply them by 0.18215" in note for note in rep.notes)
    shifted = of_library(AutoencoderKL, "diffusers")({"latents_mean": [0.0, 1.0], "latents_std": [1.0, 2.0]})
    assert any("(z − latents_mean) / latents_std" in note for note in open_model(shifted)[0].notes)


def test_a_folder_is_opened_with_the_installed_library(tmp_path, monkeypatch):
    folder = tmp_path / "model"
    folder.mkdir()
    config = {"_class_name": "AutoencoderKL", "_diffusers_version": "0.42.0"}
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(InputError, match=r"no diffusion_pytorch_model.safetensors; other formats .* pickles"):
        ps.encode(folder, IMAGES)
    (folder / "diffusion_pytorch_model.safetensors").write_bytes(b"")
    monkeypatch.setitem(sys.modules, "diffusers", None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"requires diffusers, which is not installed"):
        ps.encode(folder, IMAGES)
    monkeypatch.undo()
    calls = []

    class Kind(of_library(AutoencoderKL, "diffusers")):
        @classmethod
        def from_pretrained(cls, path, **options):
            calls.append((path, options))
            return seeded(of_library(AutoencoderKL, "diffusers"))

    library = namespace(AutoencoderKL=Kind, __spec__=True)
    monkeypatch.setitem(sys.modules, "diffusers", library)
    np.testing.assert_array_equal(
        ps.encode(str(folder), IMAGES).mean,
        ps.encode(seeded(of_library(AutoencoderKL, "diffusers")), IMAGES).mean,
    )
    assert calls[0][0] == str(folder)
    assert calls[0][1]["use_safetensors"]
    config["_class_name"] = "Unknown"
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(InputError, match="diffusers has no model Unknown"):
        ps.encode(folder, IMAGES)


class NoForward(torch.autograd.Function):
    """A layer without a forward derivative."""

    @staticmethod
    def forward(x):
        return torch.sin(x)

    @staticmethod
    def setup_context(context, inputs, output):
        context.save_for_backward(*inputs)

    @staticmethod
    def backward(context, gradient):
        (x,) = context.saved_tensors
        return gradient * torch.cos(x)


@pytest.mark.parametrize("kind", ["reverse", "differences"])
def test_decoders_without_a_forward_derivative_are_differentiated_with_a_note(kind):
    model = seeded(of_library(AutoencoderKL, "diffusers"))
    codes = np.random.default_rng(0).normal(size=(3, 8)).astype(np.float32)

    def with_layer(layer):
        kind = of_library(AutoencoderKL, "diffusers")
        kind.decode = lambda self, z: namespace(sample=layer(self.up(z)))
        changed = kind()
        changed.load_state_dict(model.state_dict())
        return open_model(changed, IMAGES)[0]

    exact = decoder_jacobian(with_layer(torch.sin), codes)
    layer = NoForward.apply if kind == "reverse" else lambda x: torch.from_numpy(np.sin(x.numpy()))
    opened = with_layer(layer)
    found = decoder_jacobian(opened, codes)
    np.testing.assert_allclose(found, exact, atol=1e-6 if kind == "reverse" else 1e-3)
    words = "by reverse differentiation" if kind == "reverse" else "by central differences"
    assert any(words in note for note in opened.notes)
