"""The small handwritten digits that are part of scikit-learn."""

from __future__ import annotations

import dataclasses
import functools

import numpy as np
from jaxtyping import Int, UInt8
from numpy.typing import ArrayLike

from polariscope.data.dataset import AbstractDataset, dataset

LEVELS = 16
"""The brightest grey level of the original, in which levels begin at 0."""


@dataset("digits")
@dataclasses.dataclass(frozen=True)
class DigitsDataset(AbstractDataset):
    """Handwritten digits of 8 × 8 pixels; they are part of scikit-learn, so nothing is downloaded.

    1,797 grey images, the test part of the original. Each pixel is the number of ink pixels among 4 × 4 finer ones,
    from 0 to 16, converted to bytes with 16 as 255. The factor is the digit. The dataset is small enough for trials of
    a minute.

    Reference: alpaydin1998.

    >>> data = DigitsDataset()
    >>> len(data), data.shape, data.factors(range(5))[:, 0].tolist()
    (1797, (1, 8, 8), [0, 1, 2, 3, 4])
    """

    factor_names = ("digit",)
    factor_sizes = (10,)
    factor_kinds = ("categorical",)
    licence = "CC BY 4.0"
    citation = "alpaydin1998"

    @property
    def shape(self) -> tuple[int, ...]:
        return (1, 8, 8)

    def __len__(self) -> int:
        return len(self._arrays[0])

    @functools.cached_property
    def _arrays(self) -> tuple[UInt8[np.ndarray, "sample channel height width"], Int[np.ndarray, " sample"]]:
        from sklearn.datasets import load_digits

        levels, digits = load_digits(return_X_y=True)
        images = np.round(levels * (255 / LEVELS)).astype(np.uint8)
        return images.reshape(-1, *self.shape), digits.astype(np.int64)

    def images(self, indices: ArrayLike | int) -> UInt8[np.ndarray, "sample channel height width"]:
        return self._arrays[0][self.check_indices(indices)]

    def factors(self, indices: ArrayLike | int) -> Int[np.ndarray, "sample factor"]:
        """Return the digits."""
        return self._arrays[1][self.check_indices(indices)][:, np.newaxis]
