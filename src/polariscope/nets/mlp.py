"""Fully connected network of chosen widths."""

from __future__ import annotations

import dataclasses
import math
from itertools import pairwise
from typing import Literal

from torch import nn

from polariscope.errors import InputError
from polariscope.nets import AbstractNet, Trunk, net, output_layer

Activation = Literal["relu", "tanh", "leaky-relu", "softplus"]
ACTIVATIONS: dict[str, type[nn.Module]] = {
    "relu": nn.ReLU,
    "tanh": nn.Tanh,
    "leaky-relu": nn.LeakyReLU,
    "softplus": nn.Softplus,
}


def dense_layers(n_in: int, widths: tuple[int, ...], activation: Activation) -> list[nn.Module]:
    """Affine maps of the given widths, each followed by the non-linearity."""
    sizes = [n_in, *widths]
    return [nn.Sequential(nn.Linear(a, b), ACTIVATIONS[activation]()) for a, b in pairwise(sizes)]


@net("mlp")
@dataclasses.dataclass(frozen=True)
class MlpNet(AbstractNet):
    """Hidden layers of given widths, biases everywhere, non-linearities on hidden layers only (zietlow2022)."""

    encoder_widths: tuple[int, ...] = (60, 40, 20)
    """Widths of the encoder's hidden layers, from the data to the latents."""
    decoder_widths: tuple[int, ...] = (60, 40, 20)
    """Widths of the decoder's hidden layers, from the latents to the data (printed so in zietlow2022 Tab. 3.1)."""
    activation: Activation = "tanh"
    """Non-linearity of the hidden layers."""

    def __post_init__(self) -> None:
        for name in ("encoder_widths", "decoder_widths"):
            if any(width < 1 for width in getattr(self, name)):
                raise InputError(f"{name} must be positive integers, got {getattr(self, name)}.")

    def encoder(self, shape: tuple[int, ...], n_auxiliary: int = 0) -> Trunk:
        n_in = math.prod(shape) + n_auxiliary
        layers = dense_layers(n_in, self.encoder_widths, self.activation)
        return Trunk([nn.Flatten(), *layers], self.encoder_widths[-1] if self.encoder_widths else n_in)

    def decoder(self, n_latents: int, shape: tuple[int, ...], n_parameters: int) -> Trunk:
        layers = dense_layers(n_latents, self.decoder_widths, self.activation)
        last = self.decoder_widths[-1] if self.decoder_widths else n_latents
        return Trunk([*layers, output_layer(last, shape, n_parameters)], n_parameters * math.prod(shape))
