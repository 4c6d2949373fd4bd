"""The convolutional β-VAE network: 32-32-64-64 channels."""

from __future__ import annotations

import dataclasses
import math
from itertools import pairwise
from typing import Literal

from torch import nn

from polariscope.core.errors import Argument, InputError
from polariscope.models.nets import AbstractNet, Trunk, net


@net("conv")
@dataclasses.dataclass(frozen=True)
class ConvNet(AbstractNet):
    """Four stride-2 convolutions and a layer of 256, mirrored by four transposed convolutions.

    The network of higgins2017 and locatello2019, bonheme2023 Tabs A.2, C.3 and D.2, for images of any
    channel count whose height and width are divisible by 16. Encoder layers 1–4 are the convolutions (4×4,
    4×4, k×k, k×k), 5 flattens, 6 is the layer of 256. Decoder layers 1–2 are fully connected (256, then the
    4×4×64 map at 64×64), 3–6 the transposed convolutions; the last has no activation (the printed ReLU would
    forbid p < ½). For 64×64×1 and 10 latents, heads included: 309,204 parameters in the encoder (382,932
    with k = 4) and 381,313 in the decoder.
    """

    kernel34: Literal[2, 4] = 2
    """Kernel size of convolutions 3 and 4: 2 as in the published code, 4 as in the printed tables."""

    def check(self, shape: tuple[int, ...]) -> None:
        if len(shape) != 3:
            raise InputError(
                problem="net 'conv' needs images",
                got=f"flat rows of {shape[0]} features",
                remedy=("use ", Argument("net", "mlp")),
            )
        if shape[1] % 16 or shape[2] % 16:
            near = tuple(max(16, 16 * round(side / 16)) for side in shape[1:])
            raise InputError(
                problem="net 'conv' needs a height and width divisible by 16",
                got=f"{shape[1]} × {shape[2]}",
                remedy=(f"resize the images to {near[0]} × {near[1]} or use ", Argument("net", "mlp")),
            )

    def encoder(self, shape: tuple[int, ...], n_auxiliary: int = 0) -> Trunk:
        channels = (shape[0], 32, 32, 64, 64)
        kernels = (4, 4, self.kernel34, self.kernel34)
        convolutions: list[nn.Module] = [
            nn.Sequential(nn.Conv2d(a, b, k, stride=2, padding=k // 2 - 1), nn.ReLU())
            for a, b, k in zip(channels, channels[1:], kernels, strict=False)
        ]
        n_flat = 64 * (shape[1] // 16) * (shape[2] // 16)
        # With 5 auxiliary values the layer of 256 has 261 units, as printed in bonheme2023 Tab. A.2.
        width = 256 + n_auxiliary
        dense = nn.Sequential(nn.Linear(n_flat + n_auxiliary, width), nn.ReLU())
        return Trunk([*convolutions, nn.Flatten(), dense], width)

    def decoder(self, n_latents: int, shape: tuple[int, ...], n_parameters: int) -> Trunk:
        height, width = shape[1] // 16, shape[2] // 16
        channels = (64, 64, 32, 32)
        hidden: list[nn.Module] = [
            nn.Sequential(nn.ConvTranspose2d(a, b, 4, stride=2, padding=1), nn.ReLU())
            for a, b in pairwise(channels)
        ]
        return Trunk(
            [
                nn.Sequential(nn.Linear(n_latents, 256), nn.ReLU()),
                nn.Sequential(
                    nn.Linear(256, 64 * height * width), nn.ReLU(), nn.Unflatten(1, (64, height, width))
                ),
                *hidden,
                nn.ConvTranspose2d(32, n_parameters * shape[0], 4, stride=2, padding=1),
            ],
            n_parameters * math.prod(shape),
        )
