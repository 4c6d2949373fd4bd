"""Crops of images."""

from __future__ import annotations

import dataclasses
from typing import Annotated

import numpy as np
from annotated_types import Ge
from jaxtyping import Int, UInt8

from polariscope.core.errors import InputError
from polariscope.data.variants import variant
from polariscope.data.variants.support.pixel_changes import AbstractPixels


@variant("cropped", of="images", example="cropped:image_size=12")
@dataclasses.dataclass(frozen=True)
class CroppedVariant(AbstractPixels):
    """The same rectangle of every image, by default at its centre."""

    image_size: Annotated[int, Ge(1)]
    """Height in pixels of the crop."""
    width: Annotated[int, Ge(1)] | None = None
    """Width in pixels; None for the height."""
    top: Annotated[int, Ge(0)] | None = None
    """Number of rows removed at the top; None to crop equally at top and bottom."""
    left: Annotated[int, Ge(0)] | None = None
    """Number of columns removed at the left; None to crop equally at left and right."""

    @property
    def corner(self) -> tuple[int, int]:
        """First row and column of the crop."""
        _, height, width = self.base.shape
        top = (height - self.shape[1]) // 2 if self.top is None else self.top
        return top, (width - self.shape[2]) // 2 if self.left is None else self.left

    def check(self) -> None:
        (_, height, width), (top, left) = self.shape, self.corner
        if top < 0 or left < 0 or top + height > self.base.shape[1] or left + width > self.base.shape[2]:
            corner = f" from row {top} and column {left}" if (self.top, self.left) != (None, None) else ""
            raise InputError(
                problem=f"a crop of {height} × {width} pixels{corner} does not lie in images of {self.base.shape[1]} × "
                f"{self.base.shape[2]}",
                remedy="make it smaller, or use the variant padded",
            )

    @property
    def shape(self) -> tuple[int, ...]:
        width = self.image_size if self.width is None else self.width
        return (self.base.shape[0], self.image_size, width)

    def change(
        self, images: UInt8[np.ndarray, "sample channel height width"], indices: Int[np.ndarray, " sample"]
    ) -> UInt8[np.ndarray, "sample channel _ _"]:
        (_, height, width), (top, left) = self.shape, self.corner
        return images[:, :, top : top + height, left : left + width]
