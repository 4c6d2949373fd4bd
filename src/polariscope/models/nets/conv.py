"""The convolutional β-VAE network: 32-32-64-64 channels."""

from __future__ import annotations

import dataclasses
import math
from itertools import pairwise
from typing import Literal

from jaxtyping import Float
from torch import Tensor, nn

from polariscope.core.errors import Argument, InputError
from polariscope.models.nets import AbstractNet, Trunk, net
from polariscope.models.nets.support.thin import ThinConvTranspose2d

SMALLEST = 16
"""Fewest pixels of a side: four halvings leave one."""


def takes(shape: tuple[int, ...]) -> bool:
    """Whether the network takes observations of this shape: images of 16 pixels or more on either side.

    >>> takes((1, 28, 28)), takes((3, 8, 64)), takes((100,))
    (True, False, False)
    """
    return len(shape) == 3 and min(shape[1:]) >= SMALLEST


@dataclasses.dataclass(frozen=True)
class Frame:
    """How many rows and columns go around an image to make its sides multiples of 16; the odd one after it."""

    left: int
    right: int
    top: int
    bottom: int

    @staticmethod
    def of(shape: tuple[int, ...]) -> Frame:
        """The frame of images of this shape."""
        above, beside = (-side % 16 for side in shape[1:])
        return Frame(beside // 2, beside - beside // 2, above // 2, above - above // 2)

    @property
    def is_empty(self) -> bool:
        return not any(dataclasses.astuple(self))


class Crop(nn.Module):
    """Takes a frame off again: the pixels that remain are those of the image."""

    def __init__(self, frame: Frame) -> None:
        super().__init__()
        self.frame = frame

    def forward(
        self, x: Float[Tensor, "sample channel height width"]
    ) -> Float[Tensor, "sample channel inner_height inner_width"]:
        frame, (height, width) = self.frame, x.shape[2:]
        return x[:, :, frame.top : height - frame.bottom, frame.left : width - frame.right]


@net("conv")
@dataclasses.dataclass(frozen=True)
class ConvNet(AbstractNet):
    """Four stride-2 convolutions and a layer of 256, mirrored by four transposed convolutions.

    The network of higgins2017 and locatello2019, bonheme2023 Tabs A.2, C.3 and D.2, for images of any channel count
    and any height and width from 16. Sides that 16 does not divide are framed inside the network: the encoder
    repeats the pixels of the border, which adds no edge where there is none; the decoder's output is cropped, so
    the likelihood sees the real pixels only and nothing is learned about the others. Encoder layers 1–4 are the
    convolutions (4×4, 4×4, k×k, k×k), 5 flattens, 6 is the layer of 256. Decoder layers 1–2 are fully connected
    (256, then the 4×4×64 map at 64×64), 3–6 the transposed convolutions; the last has no activation (the printed
    ReLU would forbid p < ½). For 64×64×1 and 10 latents, heads included: 309,204 parameters in the encoder (382,932
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
        if not takes(shape):
            raise InputError(
                problem=f"net 'conv' needs images of at least {SMALLEST} × {SMALLEST} pixels",
                got=f"{shape[1]} × {shape[2]}",
                remedy=("resize the images or use ", Argument("net", "mlp")),
            )

    def encoder(self, shape: tuple[int, ...], n_auxiliary: int = 0) -> Trunk:
        channels = (shape[0], 32, 32, 64, 64)
        kernels = (4, 4, self.kernel34, self.kernel34)
        convolutions: list[nn.Module] = [
            nn.Sequential(nn.Conv2d(a, b, k, stride=2, padding=k // 2 - 1), nn.ReLU())
            for a, b, k in zip(channels, channels[1:], kernels, strict=False)
        ]
        if not (frame := Frame.of(shape)).is_empty:
            convolutions[0] = nn.Sequential(
                nn.ReplicationPad2d(dataclasses.astuple(frame)), *convolutions[0].children()
            )
        n_flat = 64 * math.ceil(shape[1] / 16) * math.ceil(shape[2] / 16)
        # With 5 auxiliary values the layer of 256 has 261 units, as printed in bonheme2023 Tab. A.2.
        width = 256 + n_auxiliary
        dense = nn.Sequential(nn.Linear(n_flat + n_auxiliary, width), nn.ReLU())
        return Trunk([*convolutions, nn.Flatten(), dense], width)

    def decoder(self, n_latents: int, shape: tuple[int, ...], n_parameters: int) -> Trunk:
        height, width = math.ceil(shape[1] / 16), math.ceil(shape[2] / 16)
        channels = (64, 64, 32, 32)
        hidden: list[nn.Module] = [
            nn.Sequential(nn.ConvTranspose2d(a, b, 4, stride=2, padding=1), nn.ReLU())
            for a, b in pairwise(channels)
        ]
        last: nn.Module = ThinConvTranspose2d(32, n_parameters * shape[0])
        if not (frame := Frame.of(shape)).is_empty:
            last = nn.Sequential(last, Crop(frame))
        return Trunk(
            [
                nn.Sequential(nn.Linear(n_latents, 256), nn.ReLU()),
                nn.Sequential(
                    nn.Linear(256, 64 * height * width), nn.ReLU(), nn.Unflatten(1, (64, height, width))
                ),
                *hidden,
                last,
            ],
            n_parameters * math.prod(shape),
        )
