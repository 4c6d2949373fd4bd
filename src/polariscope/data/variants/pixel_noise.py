"""Small uniform noise on every pixel."""

from __future__ import annotations

import dataclasses
import math
from typing import Annotated

import numpy as np
from annotated_types import Gt, Le
from jaxtyping import Int, UInt8

from polariscope.core.errors import InputError
from polariscope.core.option_values import Advice
from polariscope.core.seeds import random_integers
from polariscope.data.variants import variant
from polariscope.data.variants.support.pixel_changes import AbstractPixels


@variant("pixel-noise", of="images")
@dataclasses.dataclass(frozen=True)
class PixelNoiseVariant(AbstractPixels):
    r"""Uniform noise of at most ±ε on every value: the control experiment for the attack on the inductive bias.

    .. math:: x' = r(x + u), \qquad u \sim U(-\varepsilon, \varepsilon)

    where r reflects at 0 and at 1. In bytes, u is one of −k … k with equal probability, and k = ⌊255 ε⌋, so
    |x' − x| ≤ ε holds exactly. The noise of an image is a function of its index and the seed.

    Reference: zietlow2022 §4.3 (ε = 0.1 for dSprites, 0.175 for Shapes3D).
    """

    epsilon: Annotated[float, Gt(0), Le(1), Advice("0.1 is usual for sprites")] = 0.1
    """Largest change ε of a value in [0, 1]."""
    seed: int = 0
    """Seed of the noise."""

    @property
    def reach(self) -> int:
        """Largest change k in bytes."""
        # The small term compensates for rounding: 255 · 0.2 can be slightly below 51.
        return math.floor(255 * self.epsilon + 1e-9)

    def check(self) -> None:
        if self.reach < 1:
            raise InputError(
                "epsilon",
                "be at least 1/255: images are bytes",
                got=f"{self.epsilon:g}",
                remedy="a smaller noise would change nothing",
            )

    def change(
        self, images: UInt8[np.ndarray, "sample channel height width"], indices: Int[np.ndarray, " sample"]
    ) -> UInt8[np.ndarray, "sample channel height width"]:
        draws = random_integers(self.seed, "pixel-noise", indices=indices, width=images[0].size)
        # The integer part of draw · (2k + 1) / 2³² is one of 0 … 2k.
        noise = (draws.astype(np.uint64) * np.uint64(2 * self.reach + 1)) >> np.uint64(32)
        moved = images + noise.astype(np.int16).reshape(images.shape) - np.int16(self.reach)
        # Reflection at 0; the next line reflects at 255.
        np.abs(moved, out=moved)
        return (255 - np.abs(255 - moved)).astype(np.uint8)
