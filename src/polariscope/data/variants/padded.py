"""A border around each image."""

from __future__ import annotations

import dataclasses
from typing import Annotated

import numpy as np
from annotated_types import Ge, Le
from jaxtyping import Int, UInt8

from polariscope.core.errors import InputError
from polariscope.data.variants import variant
from polariscope.data.variants.support.pixel_changes import AbstractPixels


@variant("padded", of="images", example="padded:image_size=20")
@dataclasses.dataclass(frozen=True)
class PaddedVariant(AbstractPixels):
    """Larger images with the original at the centre and a border of constant brightness."""

    image_size: Annotated[int, Ge(1)]
    """Height in pixels."""
    width: Annotated[int, Ge(1)] | None = None
    """Width in pixels; None for the height."""
    fill: Annotated[float, Ge(0), Le(1)] = 0.0
    """Brightness of the border: 0 is black, 1 white."""

    def check(self) -> None:
        if self.shape[1] < self.base.shape[1] or self.shape[2] < self.base.shape[2]:
            raise InputError(
                problem=f"images of {self.base.shape[1]} × {self.base.shape[2]} pixels do not fit into "
                f"{self.shape[1]} × {self.shape[2]}",
                remedy="make it larger, or use the variant cropped",
            )

    @property
    def shape(self) -> tuple[int, ...]:
        width = self.image_size if self.width is None else self.width
        return (self.base.shape[0], self.image_size, width)

    def change(
        self, images: UInt8[np.ndarray, "sample channel height width"], indices: Int[np.ndarray, " sample"]
    ) -> UInt8[np.ndarray, "sample channel _ _"]:
        padded = np.full((len(images), *self.shape), round(255 * self.fill), dtype=np.uint8)
        _, height, width = self.base.shape
        top, left = (self.shape[1] - height) // 2, (self.shape[2] - width) // 2
        padded[:, :, top : top + height, left : left + width] = images
        return padded
