"""Small objects with the attributes of models of other libraries."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import torch
from torch import nn

WIDTH, N_LATENTS = 6, 3
RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(300, WIDTH)).astype(np.float32)
IMAGES = RNG.random(size=(40, 3, 4, 4)).astype(np.float32)


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.mu, self.log_var = (
            nn.Linear(WIDTH, 5),
            nn.Linear(5, N_LATENTS),
            nn.Linear(5, N_LATENTS),
        )

    def forward(self, x):
        hidden = torch.tanh(self.body(x))
        return self.mu(hidden), self.log_var(hidden) - 2


def decoder():
    return nn.Sequential(nn.Linear(N_LATENTS, 5), nn.Tanh(), nn.Linear(5, WIDTH))


class Parts(nn.Module):
    """As in Lightning: two submodules."""

    def __init__(self):
        super().__init__()
        self.encoder, self.decoder = Encoder(), decoder()


class Methods(nn.Module):
    """As in PyTorch-VAE: two methods, and a forward pass that returns four arrays."""

    def __init__(self):
        super().__init__()
        self.first, self.last = Encoder(), decoder()

    def encode(self, x):
        return list(self.first(x))

    def decode(self, z):
        return self.last(z)

    def forward(self, x):
        mean, log_variance = self.encode(x)
        return [
            self.decode(mean + torch.exp(log_variance / 2) * torch.randn_like(mean)),
            x,
            mean,
            log_variance,
        ]


def of_library(kind, library):
    """Return a class as if it were defined in a library."""
    return type(kind.__name__, (kind,), {"__module__": f"{library}.models"})


def expected(encoder, rows=ROWS):
    """Return mean and variance of an encoder, computed by hand."""
    with torch.inference_mode():
        mean, log_variance = encoder(torch.from_numpy(rows))
    return mean.numpy(), torch.exp(log_variance).numpy()


def seeded(kind):
    torch.manual_seed(0)
    return kind()


def namespace(**values):
    return SimpleNamespace(**values)
