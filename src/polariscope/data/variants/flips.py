"""Random inversion of single values."""

from __future__ import annotations

import dataclasses
from typing import Annotated

import numpy as np
from annotated_types import Ge, Le
from jaxtyping import Int, UInt8

from polariscope.core.option_values import Advice
from polariscope.core.seeds import random_integers
from polariscope.data.variants import variant
from polariscope.data.variants.support.pixel_changes import AbstractPixels


@variant("flips", of="images")
@dataclasses.dataclass(frozen=True)
class FlipsVariant(AbstractPixels):
    r"""Each value becomes 1 − x with a small probability, independently of the others.

    The flipped values of an image are a function of its index and the seed.

    Reference: mushom2020 §5.6, with probabilities 0.001, 0.01 and 0.05.
    """

    probability: Annotated[float, Ge(0), Le(1), Advice("0.01 is usual")] = 0.01
    """Probability of a flip."""
    seed: int = 0
    """Seed of the flips."""

    def change(
        self, images: UInt8[np.ndarray, "sample channel height width"], indices: Int[np.ndarray, " sample"]
    ) -> UInt8[np.ndarray, "sample channel height width"]:
        draws = random_integers(self.seed, "flips", indices=indices, width=images[0].size)
        # 64 bits, because a probability of 1 is 2³², which 32 bits cannot represent.
        is_flipped = draws.astype(np.uint64) < np.uint64(round(self.probability * 2**32))
        return np.where(is_flipped.reshape(images.shape), ~images, images)
