"""Safe decoding of pictures from untrusted files, and resizing with antialiasing."""

from __future__ import annotations

import io
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from jaxtyping import UInt8

from polariscope.core.archives import damaged

if TYPE_CHECKING:
    from PIL import Image

Mode = Literal["L", "RGB"]


def decode(data: bytes, root: Path, name: str, mode: Mode, formats: tuple[str, ...]) -> Image.Image:
    """Decode the bytes of a PNG or JPEG file; an error names a file that is not a complete picture.

    :param data: the bytes of the file.
    :param root: its folder or archive, for messages.
    :param name: name of the file, for messages.
    :param mode: "L" for grey, "RGB" for colour.
    :param formats: allowed file formats, as Pillow names them.
    """
    from PIL import Image

    try:
        with warnings.catch_warnings():
            # Pillow only warns about pictures that unpack to hundreds of megabytes.
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(io.BytesIO(data), formats=formats) as opened:
                return opened.convert(mode)
    except (
        *(OSError, ValueError, SyntaxError, EOFError),
        *(Image.DecompressionBombError, Image.DecompressionBombWarning),
    ) as error:
        raise damaged(root, f"{name!r} cannot be read as an image ({error})") from None


def resized(
    image: UInt8[np.ndarray, "height width *channel"], size: int
) -> UInt8[np.ndarray, "{size} {size} *channel"]:
    """Resize a picture with antialiasing (Lanczos); one that already has the size is returned unchanged.

    :param image: bytes, grey or in colour.
    :param size: height and width in pixels.
    """
    from PIL import Image

    if image.shape[:2] == (size, size):
        return image
    return np.asarray(Image.fromarray(image).resize((size, size), Image.Resampling.LANCZOS))
