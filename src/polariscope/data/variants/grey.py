"""Grey images."""

from __future__ import annotations

import dataclasses

import numpy as np
from jaxtyping import Int, UInt8

from polariscope.data.variants import variant
from polariscope.data.variants.support.pixel_changes import COLOURS, AbstractPixels

WEIGHTS = np.array([19595, 38470, 7471], dtype=np.uint32)
"""0.299, 0.587 and 0.114 in parts of 2¹⁶, which they add up to."""


@variant("grey", of="images")
@dataclasses.dataclass(frozen=True)
class GreyVariant(AbstractPixels):
    r"""One channel instead of several.

    Red, green and blue become the brightness of ITU-R 601, rounded to bytes as in Pillow,

    .. math:: x' = 0.299\, r + 0.587\, g + 0.114\, b.

    Any other number of channels is averaged. Grey images do not change.
    """

    @property
    def shape(self) -> tuple[int, ...]:
        return (1, *self.base.shape[1:])

    def change(
        self, images: UInt8[np.ndarray, "sample channel height width"], indices: Int[np.ndarray, " sample"]
    ) -> UInt8[np.ndarray, "sample 1 height width"]:
        if images.shape[1] != COLOURS:
            return np.rint(images.mean(axis=1, keepdims=True)).astype(np.uint8)
        weighted = (images * WEIGHTS[:, np.newaxis, np.newaxis]).sum(axis=1, keepdims=True, dtype=np.uint32)
        # Half a unit is added before the shift, so the result is rounded.
        return ((weighted + np.uint32(2**15)) >> np.uint32(16)).astype(np.uint8)
