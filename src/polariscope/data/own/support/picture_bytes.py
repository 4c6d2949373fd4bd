"""Conversion of picture files and PIL images to bytes."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from jaxtyping import UInt8

from polariscope.core.errors import Argument, InputError

if TYPE_CHECKING:
    from PIL import Image

FORMATS = {
    ".png": "PNG",
    ".jpg": "JPEG",
    ".jpeg": "JPEG",
    ".bmp": "BMP",
    ".gif": "GIF",
    ".tif": "TIFF",
    ".tiff": "TIFF",
    ".webp": "WEBP",
}
"""Suffixes of picture files, with Pillow's name of the format."""
GREY = ("1", "L", "LA", "La", "I;16")
"""Prefixes of the modes with one channel."""
TURNED = (5, 6, 7, 8)
"""Values of the EXIF orientation that swap height and width."""
ORIENTATION = 0x0112
DEEP = 257
"""65,535 / 255: the divisor that converts 16 bits to 8."""
TAIL = 64
"""Number of bytes at the end of a picture that are searched for its end mark."""
LAST_MARKS = {"PNG": b"IEND", "JPEG": b"\xff\xd9"}
Channels = Literal[1, 3]


@dataclasses.dataclass(frozen=True)
class Facts:
    """Facts from the header of a picture."""

    height: int
    width: int
    channels: Channels
    is_deep: bool = False
    """If True, each channel has 16 bits."""
    is_transparent: bool = False
    is_animated: bool = False
    is_cmyk: bool = False


@contextlib.contextmanager
def opened(file: Path) -> Iterator[Image.Image]:
    """Open a picture file without decoding it; an error names a file that is damaged or exceeds Pillow's limit.

    :param file: the file.
    """
    from PIL import Image

    try:
        with warnings.catch_warnings():
            # Pillow only warns about pictures that unpack to hundreds of megabytes.
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            # Only the decoder of the suffix is used, which limits what a hostile file can reach.
            with Image.open(file, formats=(FORMATS[file.suffix.lower()],)) as image:
                yield image
    except InputError:
        raise
    except (
        OSError,
        ValueError,
        SyntaxError,
        EOFError,
        Image.DecompressionBombError,
        Image.DecompressionBombWarning,
    ) as error:
        reason = str(error).rstrip(".")
        raise InputError(
            problem=f"{file} cannot be read as an image ({reason})", remedy="replace or remove it"
        ) from None


def has_end(file: Path) -> bool:
    """Return whether a picture has its end mark near its end; formats without such a mark count as complete.

    :param file: the file.
    """
    mark = LAST_MARKS.get(FORMATS[file.suffix.lower()])
    if mark is None:
        return True
    with file.open("rb") as stream:
        size = stream.seek(0, os.SEEK_END)
        stream.seek(max(0, size - TAIL))
        return mark in stream.read()


def check_end(file: Path) -> None:
    """Raise an error if a picture lacks its end mark; bytes after the mark are allowed.

    :param file: the file.
    """
    mark = LAST_MARKS.get(FORMATS[file.suffix.lower()])
    if mark is not None and mark not in file.read_bytes():
        raise InputError(
            problem=f"{file} cannot be read as an image (it is truncated)",
            remedy="replace or remove it",
        )


def facts_of(image: Image.Image) -> Facts:
    """Read the facts about a picture without decoding it; more than 16 bits per channel are not supported.

    :param image: a PIL image.
    """
    if not image.mode.startswith("I;16") and image.mode[:1] in ("I", "F"):
        raise InputError(
            problem=f"{name_of(image)} has more than 16 bits per channel (mode {image.mode})",
            remedy="convert it to 8 bits, or pass its values as an array",
        )
    width, height = image.size
    # For a PNG without this entry, getexif would decode the whole picture to search the data after it.
    has_exif = image.format != "PNG" or "exif" in image.info
    if has_exif and image.getexif().get(ORIENTATION) in TURNED:
        width, height = height, width
    return Facts(
        height,
        width,
        # LAB begins like LA, grey with transparency, but has three channels.
        1 if image.mode.startswith(GREY) and not image.mode.startswith("LAB") else 3,
        is_deep=_is_deep(image),
        is_transparent=image.has_transparency_data,
        is_animated=bool(getattr(image, "is_animated", False)),
        is_cmyk=image.mode == "CMYK",
    )


def name_of(image: Image.Image) -> str:
    """Return the file name of a picture, if it was read from a file.

    :param image: a PIL image.
    """
    return str(getattr(image, "filename", "") or "an image")


def _is_deep(image: Image.Image) -> bool:
    """Return whether each channel has 16 bits, of which Pillow silently drops half in colour PNGs."""
    tiles = getattr(image, "tile", None) or []
    return image.mode.startswith("I;16") or any(";16" in str(tile[3]) for tile in tiles)


def pixels(
    image: Image.Image, channels: Channels | None = None, frame: Literal["first"] | None = None
) -> UInt8[np.ndarray, "height width channel"]:
    """Return the pixels of a picture as displayed: upright, transparent parts on black, palettes resolved.

    Grey pictures have one channel, all others three. Grey values of 16 bits are divided by 257 and rounded; for
    colours of 16 bits, Pillow keeps the upper 8. The first frame of an animation is used on request.

    :param image: a PIL image.
    :param channels: (default: those of the picture) 1 or 3 channels.
    :param frame: (default: animations are refused) "first" to use the first frame of an animation.
    """
    from PIL import Image, ImageOps

    facts = facts_of(image)
    if facts.is_animated and frame is None:
        raise InputError(
            problem=f"{name_of(image)} is animated, or has several pages",
            remedy=(
                "use its first frame with ",
                Argument("frame", "first"),
                ", or save the frames as files",
            ),
        )
    upright = ImageOps.exif_transpose(image)
    if upright.mode.startswith("I;16"):
        deep = np.asarray(upright).astype(np.float64)
        upright = Image.fromarray(np.rint(deep / DEEP).astype(np.uint8))
    elif facts.is_transparent:
        clear = upright.convert("RGBA")
        upright = Image.alpha_composite(Image.new("RGBA", clear.size, (0, 0, 0, 255)), clear)
    array = np.asarray(upright.convert("L" if (channels or facts.channels) == 1 else "RGB"))
    # Pillow returns grey images without a channel axis.
    return array.reshape(*array.shape[:2], -1)
