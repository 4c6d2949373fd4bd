"""Sprites in front of pieces of a painting."""

from __future__ import annotations

import dataclasses
import functools
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int, UInt8

from polariscope.core import files
from polariscope.core.errors import InputError
from polariscope.core.paths import resolved_path
from polariscope.core.seeds import random_bytes, uniforms
from polariscope.data.variants import variant
from polariscope.data.variants.support.pixel_changes import COLOURS, AbstractColouring
from polariscope.data.variants.support.texture import EDITION, texture

HEIGHT, WIDTH = 274, 350
"""Size of the painting in the published recipe."""


@variant("background", of="images")
@dataclasses.dataclass(frozen=True)
class BackgroundVariant(AbstractColouring):
    r"""Sprites as windows of inverted colour in a painting: the recipe of scream dSprites.

    Each image gets a random piece p of a picture and one random colour a, and

    .. math:: b = (p + a) / 2, \quad a \sim U(0, 1)^3, \qquad x' = (1 - x)\, b + x\, (1 - b)

    so the background is b outside the sprite, and the sprite inverts it. Piece and colour are functions of the index
    and the seed, and not factors. By default the picture is a procedural one of swirling coloured bands; ``picture``
    replaces it by a file. It is reduced to at most 350 × 274 pixels, or to twice the size of the images if that is
    larger.

    Reference: Locatello et al. (locatello2019), Scream-dSprites, with a painting that is not copied here. In the
    reference, piece and colour are drawn again at each access. Difference: grey outlines, which the original does not
    have, are blended.
    """

    picture: str | None = None
    """A picture file (PNG or JPEG); None for the procedural painting."""
    seed: int = 0
    """Seed of the pieces and colours."""

    def check(self) -> None:
        super().check()
        if self.picture is not None:
            object.__setattr__(self, "picture", str(resolved_path(self.picture, "picture")))
        if any(size < needed for size, needed in zip(self.painting.shape[1:], self.shape[1:], strict=True)):
            raise InputError(
                "picture",
                f"be at least as large as the images, {self.shape[1]} × {self.shape[2]} pixels",
                got=f"{self.painting.shape[1]} × {self.painting.shape[2]}",
                remedy="choose a larger one, or make the images smaller with the variant resized",
            )

    @functools.cached_property
    def painting(self) -> UInt8[np.ndarray, "3 height width"]:
        """The picture from which pieces are taken."""
        height, width = max(HEIGHT, 2 * self.shape[1]), max(WIDTH, 2 * self.shape[2])
        return texture(height, width) if self.picture is None else _read(Path(self.picture), height, width)

    def identity(self) -> dict[str, Any]:
        """Return the options with the digest of the picture, so its path does not matter."""
        picture = f"texture {EDITION}" if self.picture is None else files.digest_file(Path(self.picture))
        return {**self.options(), "picture": picture}

    def change(
        self, images: UInt8[np.ndarray, "sample channel height width"], indices: Int[np.ndarray, " sample"]
    ) -> UInt8[np.ndarray, "sample 3 height width"]:
        # A view of all pieces, of which only those in use are copied.
        windows = np.lib.stride_tricks.sliding_window_view(self.painting, images.shape[2:], axis=(1, 2))
        positions = uniforms(self.seed, "background", "piece", indices=indices, width=2)
        top, left = (positions * windows.shape[1:3]).astype(np.int64).T
        pieces = windows[:, top, left].swapaxes(0, 1)
        colours = random_bytes(self.seed, "background", "colour", indices=indices, width=COLOURS)
        # 16 bits, because the sum of two bytes exceeds 255.
        mixed = pieces + colours.astype(np.uint16)[:, :, np.newaxis, np.newaxis]
        behind = (mixed >> np.uint16(1)).astype(np.int32)
        # 255 x' = (255 − x) b + x (255 − b), rounded
        return ((255 * behind + images * (255 - 2 * behind) + 127) // 255).astype(np.uint8)


def _read(file: Path, height: int, width: int) -> UInt8[np.ndarray, "3 _ _"]:
    """Read a picture in colour, reduced in proportion until it fits."""
    from PIL import Image

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(file, formats=("PNG", "JPEG")) as opened:
                picture = opened.convert("RGB")
    except (
        OSError,
        ValueError,
        SyntaxError,
        Image.DecompressionBombError,
        Image.DecompressionBombWarning,
    ) as error:
        raise InputError(
            "picture", "be a PNG or JPEG file that can be read", got=f"{file}: {error}"
        ) from None
    picture.thumbnail((width, height), Image.Resampling.LANCZOS)
    return np.ascontiguousarray(np.asarray(picture).transpose(2, 0, 1))
