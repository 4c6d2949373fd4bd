"""Inverted colours."""

from __future__ import annotations

import dataclasses

import numpy as np
from jaxtyping import Int, UInt8

from polariscope.data.variants import variant
from polariscope.data.variants.support.pixel_changes import AbstractPixels


@variant("inverted", of="images")
@dataclasses.dataclass(frozen=True)
class InvertedVariant(AbstractPixels):
    """Inverted colours, 1 − x: black sprites on white.

    Reference: mushom2020 §5.6.
    """

    def change(
        self, images: UInt8[np.ndarray, "sample channel height width"], indices: Int[np.ndarray, " sample"]
    ) -> UInt8[np.ndarray, "sample channel height width"]:
        return ~images
