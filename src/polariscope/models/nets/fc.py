"""The fully connected network of the disentanglement literature: 1200–1200 and 1200×3."""

from __future__ import annotations

import dataclasses
import math
from typing import Annotated

from annotated_types import Ge
from torch import nn

from polariscope.models.nets import AbstractNet, Trunk, net, output_layer
from polariscope.models.nets.mlp import dense_layers


@net("fc")
@dataclasses.dataclass(frozen=True)
class FcNet(AbstractNet):
    """Encoder 1200–1200 with ReLU, decoder 1200–1200–1200 with tanh and a linear output.

    bonheme2023 Tabs C.4 and D.3 print a first decoder layer of 256 and no output layer. The authors' code, which is
    followed here, has 1200 ×3 and an output layer. For 64×64×1 images and 10 latents there are 6.38 M parameters in
    the encoder and 7.81 M in the decoder, including heads.
    """

    width: Annotated[int, Ge(1)] = 1200
    """Width of every hidden layer."""

    def encoder(self, shape: tuple[int, ...], n_auxiliary: int = 0) -> Trunk:
        layers = dense_layers(math.prod(shape) + n_auxiliary, (self.width,) * 2, "relu")
        return Trunk([nn.Flatten(), *layers], self.width)

    def decoder(self, n_latents: int, shape: tuple[int, ...], n_parameters: int) -> Trunk:
        layers = dense_layers(n_latents, (self.width,) * 3, "tanh")
        return Trunk(
            [*layers, output_layer(self.width, shape, n_parameters)], n_parameters * math.prod(shape)
        )
