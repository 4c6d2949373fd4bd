"""Modules whose forward pass returns the posterior."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

import polariscope as ps
from foreign_models import ROWS, WIDTH, Encoder, decoder, expected, seeded
from polariscope.models.adapters import in_order


class Whole(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.decoder = Encoder(), decoder()

    def forward(self, x):
        mean, log_variance = self.first(x)
        z = mean + torch.exp(log_variance / 2) * torch.randn_like(mean)
        return self.decoder(z), mean, log_variance


def test_the_forward_pass_is_the_encoder_and_the_decoder_is_found():
    model = seeded(Whole)
    assert next(name for name, each in in_order().items() if each.recognises(model)) == "whole-module"
    rep = ps.encode(model, ROWS, n_samples=None)
    np.testing.assert_allclose(rep.mean, expected(model.first)[0], atol=1e-6)
    assert rep.effect is not None
    assert any("read as (reconstruction, mean, log_variance)" in note for note in rep.notes)


def test_without_a_decoder_the_posterior_is_read_all_the_same():
    class Hidden(Whole):
        def __init__(self):
            super().__init__()
            self.last = self.decoder
            del self.decoder

        def forward(self, x):
            mean, log_variance = self.first(x)
            return {"recon_x": self.last(mean), "mu": mean, "log_var": log_variance}

    model = seeded(Hidden)
    rep = ps.encode(model, ROWS, n_samples=None)
    np.testing.assert_allclose(rep.variance, expected(model.first)[1], rtol=1e-5)
    assert rep.effect is None
    assert rep.mean.shape[1] != WIDTH
