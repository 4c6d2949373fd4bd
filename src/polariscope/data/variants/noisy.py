"""Noise in the background of images."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
from jaxtyping import Int, UInt8

from polariscope.core.seeds import random_bytes
from polariscope.data.variants import variant
from polariscope.data.variants.support.pixel_changes import AbstractColouring


@variant("noisy", of="images")
@dataclasses.dataclass(frozen=True)
class NoisyVariant(AbstractColouring):
    r"""White sprites on coloured noise: noisy dSprites.

    .. math:: x' = \min(1, x + u), \qquad u \sim U(0, 1) \text{ for each pixel and channel}

    in bytes: u is one of 0 … 255. The noise of an image is a function of its index and the seed, and not a factor.

    Reference: Locatello et al. (locatello2019), Noisy-dSprites. In the reference, the noise is drawn again at each
    access.
    """

    seed: int = 0
    """Seed of the noise."""

    def change(
        self, images: UInt8[np.ndarray, "sample channel height width"], indices: Int[np.ndarray, " sample"]
    ) -> UInt8[np.ndarray, "sample 3 height width"]:
        width = math.prod(self.shape)
        noise = random_bytes(self.seed, "noisy", indices=indices, width=width).reshape(-1, *self.shape)
        # min(x, 255 − u) + u is the sum clipped at 255, computed without overflow of the bytes.
        return np.minimum(images, ~noise) + noise
