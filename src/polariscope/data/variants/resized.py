"""Resized images."""

from __future__ import annotations

import dataclasses
from typing import Annotated

import numpy as np
from annotated_types import Ge
from jaxtyping import Int, UInt8

from polariscope.data.variants import variant
from polariscope.data.variants.support.pixel_changes import AbstractPixels


@variant("resized", of="images")
@dataclasses.dataclass(frozen=True)
class ResizedVariant(AbstractPixels):
    """Images resized with an antialiasing filter (Pillow's Lanczos)."""

    image_size: Annotated[int, Ge(1)] = 64
    """Height in pixels."""
    width: Annotated[int, Ge(1)] | None = None
    """Width in pixels; None to keep the proportions."""

    @property
    def shape(self) -> tuple[int, ...]:
        channels, height, width = self.base.shape
        in_proportion = max(1, round(width * self.image_size / height))
        return (channels, self.image_size, in_proportion if self.width is None else self.width)

    def change(
        self, images: UInt8[np.ndarray, "sample channel height width"], indices: Int[np.ndarray, " sample"]
    ) -> UInt8[np.ndarray, "sample channel _ _"]:
        from PIL import Image

        channels, height, width = self.shape
        planes = images.reshape(-1, *images.shape[2:])
        resized = np.empty((len(planes), height, width), dtype=np.uint8)
        for index, plane in enumerate(planes):
            resized[index] = np.asarray(
                Image.fromarray(plane).resize((width, height), Image.Resampling.LANCZOS)
            )
        return resized.reshape(len(images), channels, height, width)
