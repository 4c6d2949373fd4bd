"""A random colour for each image."""

from __future__ import annotations

import dataclasses

import numpy as np
from jaxtyping import Int, UInt8

from polariscope.core.seeds import uniforms
from polariscope.data.variants import variant
from polariscope.data.variants.support.pixel_changes import COLOURS, AbstractColouring


@variant("colour", of="images")
@dataclasses.dataclass(frozen=True)
class ColourVariant(AbstractColouring):
    r"""Each image in one random colour, on black: colour dSprites.

    .. math:: x'_c = x\, a_c, \qquad a_c \sim U(1/2, 1), \quad c = \text{red, green, blue}

    The colour a of an image is a function of its index and the seed. It is a nuisance variable, not a factor. Images
    that already have colours are tinted, channel by channel.

    Reference: Locatello et al. (locatello2019), Color-dSprites.
    In the reference, the colour is drawn again at each access.

    >>> from polariscope.data.rendered.sprites import SpritesDataset
    >>> ColourVariant(SpritesDataset(image_size=16)).shape
    (3, 16, 16)
    """

    seed: int = 0
    """Seed of the colours."""

    def change(
        self, images: UInt8[np.ndarray, "sample channel height width"], indices: Int[np.ndarray, " sample"]
    ) -> UInt8[np.ndarray, "sample 3 height width"]:
        colours = 0.5 + 0.5 * uniforms(self.seed, "colour", indices=indices, width=COLOURS)
        product = images * colours.astype(np.float32)[:, :, np.newaxis, np.newaxis]
        return np.rint(product, out=product).astype(np.uint8)
