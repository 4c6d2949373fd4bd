"""Variants that change pixels."""

from __future__ import annotations

import abc
import dataclasses

import numpy as np
from jaxtyping import Float, Int, UInt8
from numpy.typing import ArrayLike

from polariscope.core.errors import InputError
from polariscope.data.dataset import AbstractDataset
from polariscope.data.variants import AbstractVariant, family

AT_ONCE = 2**18
"""Number of values that are changed at once, so temporary arrays fit the processor's cache."""
COLOURS = 3


@dataclasses.dataclass(frozen=True)
class AbstractPixels(AbstractVariant):
    """A variant that maps bytes to bytes. Images of floats are first rounded to bytes."""

    @abc.abstractmethod
    def change(
        self, images: UInt8[np.ndarray, "sample channel height width"], indices: Int[np.ndarray, " sample"]
    ) -> UInt8[np.ndarray, "sample _ _ _"]:
        """Return the images of the variant.

        :param images: images of the base.
        :param indices: their indices, from which all randomness is derived.
        """

    def images(self, indices: ArrayLike | int) -> UInt8[np.ndarray, "sample channel height width"]:
        indices = self.check_indices(indices)
        before = self.base.images(indices)
        after = np.empty((len(indices), *self.shape), dtype=np.uint8)
        size = max(1, AT_ONCE // self.n_features)
        for first in range(0, len(indices), size):
            rows = slice(first, first + size)
            after[rows] = self.change(before[rows], indices[rows])
        return after

    def values(self, indices: ArrayLike | int) -> Float[np.ndarray, "sample channel height width"]:
        # Floats follow from the changed bytes. Delegated to the base, they would be the unchanged ones.
        return AbstractDataset.values(self, indices)


@dataclasses.dataclass(frozen=True)
class AbstractColouring(AbstractPixels):
    """Images of three channels, derived from grey or coloured ones."""

    def check(self) -> None:
        if self.base.shape[0] not in (1, COLOURS):
            raise InputError(
                problem=(
                    f"variant {family.name_of(self)!r} applies to grey or coloured images, but those of "
                    f"{self.base.name} have {self.base.shape[0]} channels"
                ),
                remedy="leave it out",
            )

    @property
    def shape(self) -> tuple[int, ...]:
        return (COLOURS, *self.base.shape[1:])
