"""Pictures from files of others: decoded with care, resized with antialiasing."""

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
    """The picture in the bytes of a PNG or JPEG file; what is no whole picture is refused with its name.

    :param data: the bytes of the file.
    :param root: the folder or archive it is in, for messages.
    :param name: of the file, for messages.
    :param mode: "L" for grey, "RGB" for colour.
    :param formats: kinds of files that are allowed, as Pillow names them.
    """
    from PIL import Image

    try:
        with warnings.catch_warnings():
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
    """A picture of another size, antialiased (Lanczos); one that has the size already is left as it is.

    :param image: bytes, grey or in colour.
    :param size: pixels a side.
    """
    from PIL import Image

    if image.shape[:2] == (size, size):
        return image
    return np.asarray(Image.fromarray(image).resize((size, size), Image.Resampling.LANCZOS))
