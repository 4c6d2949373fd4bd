"""Images as PNG data URIs: strips of observations, and heat strips for rows of features."""

from __future__ import annotations

import base64
import io

import numpy as np
from jaxtyping import Float, UInt8
from PIL import Image

from polariscope.geometry.pictures import PAPER, tile, to_pictures
from polariscope.pages.figures import DIVERGING

LARGEST = 96  # pixels: larger images are shown smaller, so the page stays light


def strip(
    images: Float[np.ndarray, "image channel height width"], display_range: tuple[float, float]
) -> UInt8[np.ndarray, "tall wide colour"]:
    """Images side by side with a gap of paper between them.

    Three channels are colours, one is grey; of any other number the mean is shown. Values beyond
    ``display_range`` are clipped.
    """
    return join([_shrink(picture) for picture in to_pictures(images, display_range)])


def sheet(
    images: Float[np.ndarray, "row column channel height width"], display_range: tuple[float, float]
) -> UInt8[np.ndarray, "tall wide colour"]:
    """Rows and columns of images with gaps between them; colours and range as in :func:`strip`."""
    pictures = to_pictures(images.reshape(-1, *images.shape[2:]), display_range)
    small = np.stack([_shrink(picture) for picture in pictures])
    return tile(small.reshape(*images.shape[:2], *small.shape[1:]))


def difference_strip(
    differences: Float[np.ndarray, "image channel height width"], scale: float
) -> UInt8[np.ndarray, "tall wide colour"]:
    """Signed differences, mean over channels: red where positive, blue where negative, white where none."""
    return join([_shrink(picture) for picture in diverging(differences.mean(axis=1), scale)])


def diverging(values: Float[np.ndarray, "*shape"], scale: float) -> UInt8[np.ndarray, "*shape 3"]:
    """Colours of values from −scale to scale; a scale of 0 (nothing differs) is all white."""
    from matplotlib import colormaps

    positions = values / (2 * scale) + 0.5 if scale > 0 else np.full(values.shape, 0.5)
    return np.round(colormaps[DIVERGING](positions.astype(np.float64))[..., :3] * 255).astype(np.uint8)


def join(
    pictures: list[UInt8[np.ndarray, "height width colour"]],
) -> UInt8[np.ndarray, "height total colour"]:
    """Pictures of one size side by side."""
    height, width, colours = pictures[0].shape
    gap = np.full((height, max(1, width // 16), colours), PAPER, dtype=np.uint8)
    parts = [part for picture in pictures for part in (gap, picture)][1:]
    return np.concatenate(parts, axis=1)


def data_uri(picture: UInt8[np.ndarray, "height width colour"]) -> str:
    """A picture as a PNG inside the page."""
    squeezed = picture[:, :, 0] if picture.shape[2] == 1 else picture
    file = io.BytesIO()
    Image.fromarray(squeezed).save(file, format="PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(file.getvalue()).decode("ascii")


def _shrink(picture: UInt8[np.ndarray, "height width colour"]) -> UInt8[np.ndarray, "h w colour"]:
    height, width, colours = picture.shape
    if max(height, width) <= LARGEST:
        return picture
    factor = LARGEST / max(height, width)
    size = max(1, round(width * factor)), max(1, round(height * factor))
    squeezed = picture[:, :, 0] if colours == 1 else picture
    return np.asarray(Image.fromarray(squeezed).resize(size, Image.Resampling.LANCZOS)).reshape(
        size[1], size[0], colours
    )
