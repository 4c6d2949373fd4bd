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
