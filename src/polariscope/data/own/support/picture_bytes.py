"""Picture files and PIL images as bytes: what each kind of picture becomes."""

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
"""Endings of picture files, with Pillow's name of the format."""
GREY = ("1", "L", "LA", "La", "I;16")
"""Modes of one channel, as their names begin."""
TURNED = (5, 6, 7, 8)
"""Values of the EXIF orientation that swap height and width."""
ORIENTATION = 0x0112
DEEP = 257
"""65,535 / 255: what 16 bits are divided by."""
TAIL = 64
"""Bytes at the end of a picture in which its last mark is looked for."""
LAST_MARKS = {"PNG": b"IEND", "JPEG": b"\xff\xd9"}
Channels = Literal[1, 3]


@dataclasses.dataclass(frozen=True)
class Facts:
    """What the header of a picture says."""

    height: int
    width: int
    channels: Channels
    is_deep: bool = False
    """16 bits a channel."""
    is_transparent: bool = False
    is_animated: bool = False
    is_cmyk: bool = False


@contextlib.contextmanager
def opened(file: Path) -> Iterator[Image.Image]:
    """A picture file, not decoded yet; one that is damaged, or larger than Pillow allows, is refused by name.

    :param file: the file.
    """
    from PIL import Image

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
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
    """Whether a picture has its last mark near its end; formats without one count as whole.

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
    """Refuse a picture that lacks its last mark; bytes after it do no harm.

    :param file: the file.
    """
    mark = LAST_MARKS.get(FORMATS[file.suffix.lower()])
    if mark is not None and mark not in file.read_bytes():
        raise InputError(
            problem=f"{file} cannot be read as an image (it is cut off at its end)",
            remedy="replace or remove it",
        )


def facts_of(image: Image.Image) -> Facts:
    """What a picture is, without decoding it; one with more than 16 bits a channel is refused.

    :param image: a PIL image.
    """
    if not image.mode.startswith("I;16") and image.mode[:1] in ("I", "F"):
        raise InputError(
            problem=f"{name_of(image)} has more than 16 bits a channel (mode {image.mode})",
            remedy="convert it to 8 bits, or give its values as an array",
        )
    width, height = image.size
    # Of a PNG without this entry Pillow would decode the whole picture to look behind it.
    knows = image.format != "PNG" or "exif" in image.info
    if knows and image.getexif().get(ORIENTATION) in TURNED:
        width, height = height, width
    return Facts(
        height,
        width,
        1 if image.mode.startswith(GREY) and not image.mode.startswith("LAB") else 3,
        is_deep=_is_deep(image),
        is_transparent=image.has_transparency_data,
        is_animated=bool(getattr(image, "is_animated", False)),
        is_cmyk=image.mode == "CMYK",
    )


def name_of(image: Image.Image) -> str:
    """The file of a picture, where it came from one.

    :param image: a PIL image.
    """
    return str(getattr(image, "filename", "") or "an image")


def _is_deep(image: Image.Image) -> bool:
    """Whether there are 16 bits a channel: Pillow drops half of them from colour PNGs without a word."""
    tiles = getattr(image, "tile", None) or []
    return image.mode.startswith("I;16") or any(";16" in str(tile[3]) for tile in tiles)


def pixels(
    image: Image.Image, channels: Channels | None = None, frame: Literal["first"] | None = None
) -> UInt8[np.ndarray, "height width channel"]:
    """The pixels of a picture as it is seen: upright, transparent parts on black, colours from any palette.

    Grey pictures have one channel, all others three. 16 bits are divided by 257 and rounded; of 16 bits of colour
    Pillow keeps the upper 8. Of an animation the first frame is taken, if that is asked for.

    :param image: a PIL image.
    :param channels: (default: as the picture has) 1 or 3 channels.
    :param frame: (default: animations are refused) "first" to take the first frame of an animation.
    """
    from PIL import Image, ImageOps

    facts = facts_of(image)
    if facts.is_animated and frame is None:
        raise InputError(
            problem=f"{name_of(image)} is animated, or has several pages",
            remedy=(
                "take its first frame with ",
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
    return array.reshape(*array.shape[:2], -1)
