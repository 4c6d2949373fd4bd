"""Discriminator of adversarial objectives."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn

from polariscope.core.errors import InputError
from polariscope.models.nets import initialise


class Discriminator(nn.Module):
    """Fully connected network with leaky rectifiers and a linear output, one logit per class.

    It has ``depth`` hidden layers of ``width`` units, each followed by max(t, slope · t). Weights are drawn from
    ``generator`` (Glorot uniform, biases 0).
    """

    def __init__(
        self,
        n_in: int,
        n_out: int,
        width: int,
        depth: int,
        slope: float,
        generator: torch.Generator,
    ) -> None:
        if width < 1 or depth < 0:
            raise InputError(
                problem="a discriminator requires a width of at least 1 and a depth of at least 0",
                got=f"{width} and {depth}",
            )
        super().__init__()
        with torch.random.fork_rng(devices=[]):  # layers draw from the global generator when constructed
            layers: list[nn.Module] = []
            for number in range(depth):
                layers += [nn.Linear(width if number else n_in, width), nn.LeakyReLU(slope)]
            self.layers = nn.Sequential(*layers, nn.Linear(width if depth else n_in, n_out))
        initialise(self, "glorot", generator)

    def forward(self, z: Float[Tensor, "sample latent"]) -> Float[Tensor, "sample logit"]:
        return self.layers(z)
