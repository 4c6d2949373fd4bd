"""Models with the attributes of those of pythae."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import polariscope as ps
from foreign_models import ROWS, WIDTH, Encoder, decoder, expected, namespace, of_library, seeded
from polariscope.core.errors import InputError
from polariscope.models.open_model import open_model


class VAE(nn.Module):
    def __init__(self, loss="mse"):
        super().__init__()
        self.model_config = namespace(input_dim=(WIDTH,), latent_dim=3, reconstruction_loss=loss)
        self.body, self.last = Encoder(), decoder()

    def encoder(self, x):
        mean, log_variance = self.body(x)
        return namespace(embedding=mean, log_covariance=log_variance)

    def decoder(self, z):
        return {"reconstruction": torch.sigmoid(self.last(z))}

    def forward(self, inputs):
        return inputs["data"]


def test_shape_and_likelihood_are_those_of_the_configuration():
    kind = of_library(VAE, "pythae")
    model = seeded(kind)
    opened, _ = open_model(model)
    assert (opened.shape, opened.likelihood, opened.variance) == ((WIDTH,), "gaussian", 1.0)
    assert open_model(kind("bce"))[0].likelihood == "bernoulli"
    rep = ps.encode(model, ROWS, n_samples=None)
    np.testing.assert_allclose(rep.mean, expected(model.body)[0], atol=1e-6)
    with pytest.raises(
        InputError, match=r"trained on observations of shape \(6,\), got data of shape \(5,\)"
    ):
        ps.encode(model, ROWS[:, :5])


def test_codes_of_a_vector_quantised_model_are_points():
    class VQVAE(VAE):
        def quantizer(self, maps):
            return namespace(quantized_vector=torch.round(maps.permute(0, 3, 1, 2)))

        def encoder(self, x):
            return namespace(embedding=self.body(x)[0])

    rep = ps.encode(of_library(VQVAE, "pythae")(), ROWS)
    np.testing.assert_array_equal(rep.mean, np.round(rep.mean))
    assert rep.rate is None


def test_posteriors_that_are_not_normal_are_refused():
    with pytest.raises(InputError, match="the posterior of a SVAE of pythae is not normal"):
        ps.encode(of_library(type("SVAE", (VAE,), {}), "pythae")(), ROWS)
    rep = ps.encode(of_library(type("VAE_IAF", (VAE,), {}), "pythae")(), ROWS)
    assert any("transforms its draws further" in note for note in rep.notes)
