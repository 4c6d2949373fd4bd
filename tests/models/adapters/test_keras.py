"""Models with the attributes of those of Keras."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

import polariscope as ps
from foreign_models import IMAGES, namespace, of_library, seeded
from polariscope.models.open_model import open_model


class Encoder(nn.Module):
    """Takes images with the channels last, and returns three arrays."""

    def __init__(self):
        super().__init__()
        self.dense = nn.Linear(48, 4)

    def forward(self, x):
        assert x.shape[1:] == (4, 4, 3)
        mean, log_variance = self.dense(x.flatten(1)).chunk(2, dim=1)
        return [mean, log_variance, mean]


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = of_library(Encoder, "keras")()
        self.decoder = nn.Sequential(nn.Linear(2, 48), nn.Unflatten(1, (4, 4, 3)))

    def call(self, x):
        return x

    def forward(self, x):
        return x


def test_images_are_passed_with_the_channels_last():
    model = seeded(of_library(Model, "keras"))
    rep = ps.encode(model, IMAGES, n_samples=None)
    last = torch.from_numpy(IMAGES).movedim(1, -1)
    with torch.inference_mode():
        mean = model.encoder(last)[0]
        images = model.decoder(mean).movedim(-1, 1)
    np.testing.assert_allclose(rep.mean, mean.numpy(), atol=1e-6)
    opened, _ = open_model(model, IMAGES)
    with torch.inference_mode():
        torch.testing.assert_close(opened.decode(mean).mean, images)


def test_other_backends_receive_arrays():
    class Call:
        def __call__(self, x):
            assert isinstance(x, np.ndarray)
            return {"z_mean": x[:, 0, 0, :2], "z_log_var": 0 * x[:, 0, 0, :2] - 1}

    encoder = of_library(Call, "keras")()
    rep = ps.encode(encoder, IMAGES, n_samples=None)
    np.testing.assert_allclose(rep.mean, IMAGES[:, :2, 0, 0], atol=1e-7)
    first = namespace(data_format="channels_first")
    encoder.layers = [first]
    rows = ps.encode(encoder, IMAGES, n_samples=None)
    np.testing.assert_allclose(rows.mean, IMAGES[:, 0, 0, :2], atol=1e-7)


class Convolutional(nn.Module):
    """Codes are images, too: (height, width, channel)."""

    def __init__(self, outputs):
        super().__init__()
        self.outputs = outputs
        self.decoder = of_library(Halved, "keras")()

    def encoder(self, x):
        codes = {"mean": 2 * x, "log_variance": -1 - x, "draw": 2 * x}
        return [codes[name] for name in self.outputs] if len(self.outputs) > 1 else codes["mean"]

    def forward(self, x):
        return x


class Halved(nn.Module):
    def forward(self, z):
        assert z.shape[1:] == (4, 4, 3)
        return z / 2


def test_codes_with_several_axes_have_their_channels_first():
    for outputs in (("mean", "log_variance"), ("mean", "log_variance", "draw"), ("mean",)):
        model = of_library(Convolutional, "keras")(outputs)
        declared = {"outputs": outputs} if len(outputs) == 1 else {}
        opened, _ = open_model(model, IMAGES, **declared)
        rep = ps.encode(opened, IMAGES, n_samples=None)
        assert rep.code_shape == (3, 4, 4)
        np.testing.assert_allclose(rep.mean, 2 * IMAGES.reshape(len(IMAGES), -1), rtol=1e-6)
        if len(outputs) > 1:
            np.testing.assert_allclose(rep.variance, np.exp(-1 - IMAGES.reshape(len(IMAGES), -1)), rtol=1e-5)
        with torch.inference_mode():
            images = opened.decode(torch.from_numpy(rep.mean)).mean
        np.testing.assert_allclose(images.numpy(), IMAGES, rtol=1e-5)
        assert ps.diagnose(rep).n_latents == 3  # pooled per channel
