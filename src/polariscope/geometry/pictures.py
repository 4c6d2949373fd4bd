"""Observations as pictures of bytes."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, UInt8

from polariscope.core.errors import InputError

PAPER = 255


def to_pictures(
    images: Float[np.ndarray, "image channel height width"], display_range: tuple[float, float] = (0.0, 1.0)
) -> UInt8[np.ndarray, "image height width colour"]:
    """Bytes 0–255 with the channels last; values beyond ``display_range`` are clipped.

    Three channels are colours, one is grey; of any other number the mean is shown.
    """
    if images.ndim != 4:
        raise InputError(
            problem="pictures are made of images (channel, height, width)",
            got=f"observations of shape {images.shape[1:]}",
            remedy="flat data have none",
        )
    if not np.isfinite(images).all():
        raise InputError(
            "images", "be finite", got="NaN or infinite values", remedy="the model may have diverged"
        )
    if images.shape[1] not in (1, 3):
        images = images.mean(axis=1, keepdims=True)
    low, high = display_range
    span = high - low if high > low else 1.0
    return np.round(np.clip((images - low) / span, 0, 1) * 255).astype(np.uint8).transpose(0, 2, 3, 1)


def tile(
    pictures: UInt8[np.ndarray, "row column height width colour"], gap: int | None = None
) -> UInt8[np.ndarray, "tall wide colour"]:
    """Rows and columns of pictures of one size on one sheet, with a gap of paper between them."""
    rows, columns, height, width, colours = pictures.shape
    gap = max(1, width // 16) if gap is None else gap
    sheet = np.full(
        (rows * (height + gap) - gap, columns * (width + gap) - gap, colours), PAPER, dtype=np.uint8
    )
    for i, j in np.ndindex(rows, columns):
        top, left = i * (height + gap), j * (width + gap)
        sheet[top : top + height, left : left + width] = pictures[i, j]
    return sheet
