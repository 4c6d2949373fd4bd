"""Conversion of images to pictures: bytes in rows, columns and sheets, and PNG data for pages."""

from __future__ import annotations

import base64
import io

import numpy as np
from jaxtyping import Float, UInt8

from polariscope.core.errors import InputError
from polariscope.core.figure_style import DIVERGING

PAPER = 255
"""Grey level of the gaps between pictures."""
MAX_PIXELS = 96
"""Maximum length of a side; larger images are reduced to keep pages small."""


def to_pictures(
    images: Float[np.ndarray, "image channel height width"], display_range: tuple[float, float] = (0.0, 1.0)
) -> UInt8[np.ndarray, "image height width colour"]:
    """Return bytes 0–255 with the channels last; values outside ``display_range`` are clipped.

    Three channels are colours, one channel is grey. For other numbers of channels their mean is shown.
    """
    if images.ndim != 4:
        raise InputError(
            problem="pictures require images (channel, height, width)",
            got=f"observations of shape {images.shape[1:]}",
            remedy="tables have no pictures",
        )
    if not np.isfinite(images).all():
        raise InputError(
            "images", "be finite", got="NaN or infinite values", remedy="the model might have diverged"
        )
    if images.shape[1] not in (1, 3):
        images = images.mean(axis=1, keepdims=True)
    low, high = display_range
    span = high - low if high > low else 1.0
    return np.round(np.clip((images - low) / span, 0, 1) * 255).astype(np.uint8).transpose(0, 2, 3, 1)


def tile(
    pictures: UInt8[np.ndarray, "row column height width colour"], gap: int | None = None
) -> UInt8[np.ndarray, "tall wide colour"]:
    """Arrange pictures of equal size in rows and columns, with gaps between them."""
    rows, columns, height, width, colours = pictures.shape
    gap = max(1, width // 16) if gap is None else gap
    sheet = np.full(
        (rows * (height + gap) - gap, columns * (width + gap) - gap, colours), PAPER, dtype=np.uint8
    )
    for i, j in np.ndindex(rows, columns):
        top, left = i * (height + gap), j * (width + gap)
        sheet[top : top + height, left : left + width] = pictures[i, j]
    return sheet


def strip(
    images: Float[np.ndarray, "image channel height width"], display_range: tuple[float, float]
) -> UInt8[np.ndarray, "tall wide colour"]:
    """Arrange images in a row, with gaps between them.

    Three channels are colours, one channel is grey. For other numbers of channels their mean is shown. Values outside
    ``display_range`` are clipped.
    """
    return join([_shrink(picture) for picture in to_pictures(images, display_range)])


def sheet(
    images: Float[np.ndarray, "row column channel height width"], display_range: tuple[float, float]
) -> UInt8[np.ndarray, "tall wide colour"]:
    """Arrange images in rows and columns, with gaps between them; colours and range as in :func:`strip`."""
    pictures = to_pictures(images.reshape(-1, *images.shape[2:]), display_range)
    small = np.stack([_shrink(picture) for picture in pictures])
    return tile(small.reshape(*images.shape[:2], *small.shape[1:]))


def difference_strip(
    differences: Float[np.ndarray, "image channel height width"], scale: float
) -> UInt8[np.ndarray, "tall wide colour"]:
    """Show signed differences, averaged over channels: positive values are red, negative blue, and 0 is white."""
    return join([_shrink(picture) for picture in diverging(differences.mean(axis=1), scale)])


def diverging(values: Float[np.ndarray, "*shape"], scale: float) -> UInt8[np.ndarray, "*shape 3"]:
    """Return colours of values from −scale to scale; all white if the scale is 0."""
    from matplotlib import colormaps

    positions = values / (2 * scale) + 0.5 if scale > 0 else np.full(values.shape, 0.5)
    return np.round(colormaps[DIVERGING](positions.astype(np.float64))[..., :3] * 255).astype(np.uint8)


def join(
    pictures: list[UInt8[np.ndarray, "height width colour"]],
) -> UInt8[np.ndarray, "height total colour"]:
    """Arrange pictures of equal size in a row."""
    height, width, colours = pictures[0].shape
    gap = np.full((height, max(1, width // 16), colours), PAPER, dtype=np.uint8)
    # The first gap is dropped: gaps are between pictures only.
    parts = [part for picture in pictures for part in (gap, picture)][1:]
    return np.concatenate(parts, axis=1)


def data_uri(picture: UInt8[np.ndarray, "height width colour"]) -> str:
    """Return a picture as a PNG data URI."""
    from PIL import Image

    # Pillow has no images with one colour axis; grey ones have two axes.
    squeezed = picture[:, :, 0] if picture.shape[2] == 1 else picture
    file = io.BytesIO()
    Image.fromarray(squeezed).save(file, format="PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(file.getvalue()).decode("ascii")


def _shrink(picture: UInt8[np.ndarray, "height width colour"]) -> UInt8[np.ndarray, "h w colour"]:
    from PIL import Image

    height, width, colours = picture.shape
    if max(height, width) <= MAX_PIXELS:
        return picture
    factor = MAX_PIXELS / max(height, width)
    size = max(1, round(width * factor)), max(1, round(height * factor))
    squeezed = picture[:, :, 0] if colours == 1 else picture
    return np.asarray(Image.fromarray(squeezed).resize(size, Image.Resampling.LANCZOS)).reshape(
        size[1], size[0], colours
    )
