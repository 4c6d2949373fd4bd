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

MIN_SIDE = 16
"""Minimum height and width in pixels: four halvings leave one."""


def takes(shape: tuple[int, ...]) -> bool:
    """Return whether the network supports observations of this shape: images of at least 16 × 16 pixels.

    >>> takes((1, 28, 28)), takes((3, 8, 64)), takes((100,))
    (True, False, False)
    """
    return len(shape) == 3 and min(shape[1:]) >= MIN_SIDE


@dataclasses.dataclass(frozen=True)
class Frame:
    """Padding that makes the sides of an image multiples of 16; an odd row or column is added at the end."""

    left: int
    right: int
    top: int
    bottom: int

    @staticmethod
    def of(shape: tuple[int, ...]) -> Frame:
        """Return the padding of images of this shape."""
        # The negative remainder is the number of pixels up to the next multiple of 16.
        rows, columns = (-side % 16 for side in shape[1:])
        return Frame(columns // 2, columns - columns // 2, rows // 2, rows - rows // 2)

    @property
    def is_empty(self) -> bool:
        return not any(dataclasses.astuple(self))


class Crop(nn.Module):
    """A layer that removes the padding, so only the pixels of the image remain."""

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

    This is the network of higgins2017 and locatello2019, bonheme2023 Tabs A.2, C.3 and D.2, for images with any number
    of channels and any height and width from 16. If 16 does not divide a side, the image is padded inside the network.
    The encoder repeats the border pixels, which adds no artificial edge. The decoder's output is cropped, so the
    likelihood includes only the real pixels. Encoder layers 1–4 are the convolutions (4×4, 4×4, k×k, k×k), 5 flattens,
    6 is the layer of 256. Decoder layers 1–2 are fully connected (256, then the 4×4×64 map at 64×64), 3–6 are the
    transposed convolutions. The last has no activation (the printed ReLU would exclude p < ½). For 64×64×1 and 10
    latents, including heads, there are 309,204 parameters in the encoder (382,932 with k = 4) and 381,313 in the
    decoder.
    """

    kernel34: Literal[2, 4] = 2
    """Kernel size of convolutions 3 and 4: 2 as in the published code, 4 as in the printed tables."""

    def check(self, shape: tuple[int, ...]) -> None:
        if len(shape) != 3:
            raise InputError(
                problem="net 'conv' requires images",
                got=f"flat rows of {shape[0]} features",
                remedy=("use ", Argument("net", "mlp")),
            )
        if not takes(shape):
            raise InputError(
                problem=f"net 'conv' requires images of at least {MIN_SIDE} × {MIN_SIDE} pixels",
                got=f"{shape[1]} × {shape[2]}",
                remedy=("resize the images or use ", Argument("net", "mlp")),
            )

    def encoder(self, shape: tuple[int, ...], n_auxiliary: int = 0) -> Trunk:
        channels = (shape[0], 32, 32, 64, 64)
        kernels = (4, 4, self.kernel34, self.kernel34)
        convolutions: list[nn.Module] = [
            # This padding halves the side exactly, for kernels of 2 and 4.
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
        # One to three channels, for which PyTorch's layer is slow.
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
