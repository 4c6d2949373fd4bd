"""Preparation of samples for distances: finite numbers, without duplicates and constant features."""

from __future__ import annotations

import dataclasses
import hashlib
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from polariscope.core.arrays import real_numbers
from polariscope.core.errors import InputError

LARGEST = 1e150  # squares of distances stay finite
NEGLIGIBLE = 1e-130  # relative to the largest value; squares of larger differences do not underflow


@dataclasses.dataclass(frozen=True)
class Points:
    """Distinct samples, scaled by a power of two so that the largest value is between 1/2 and 1."""

    values: Float[np.ndarray, "point varying"]
    exponent: int
    """Distances of the samples are 2^exponent times those of ``values``."""
    rows: Int[np.ndarray, " point"]
    """Index of each point in the samples."""
    n_samples: int
    n_features: int

    @property
    def n_duplicates(self) -> int:
        return self.n_samples - len(self.rows)

    @property
    def n_constant(self) -> int:
        return self.n_features - self.values.shape[1]


def points_of(x: object) -> Points:
    """Check samples, and drop constant features and duplicates.

    Scaling by a power of two does not round. Values below 1e-130 of the largest count as 0, so the square of the
    distance of any two points does not underflow, and no distance is 0.
    """
    array = _as_floats(x)
    n_samples, n_features = array.shape
    exponent = _exponent(array)
    array = np.ldexp(array, -exponent)
    array[np.abs(array) < NEGLIGIBLE] = 0.0  # also makes -0.0 the same as 0.0
    varying = ~(array == array[0]).all(axis=0)
    if not varying.any():
        raise InputError(
            "x",
            f"vary, but its {n_samples} samples are all equal",
            remedy="a single point has no dimension",
        )
    # The hashes read the bytes of each row, which must be contiguous.
    array = np.ascontiguousarray(array[:, varying])
    rows = _first_occurrences(array)
    values = array if len(rows) == n_samples else array[rows]
    return Points(values, exponent, rows, n_samples, n_features)


def _as_floats(x: Any) -> Float[np.ndarray, "sample feature"]:
    """Return a copy in float32 if it represents the numbers exactly, otherwise in float64."""
    array = real_numbers(x, "x")
    if array.ndim != 2:
        raise InputError(
            "x",
            "have two axes, (sample, feature)",
            got=f"shape {array.shape}",
            remedy=(
                "flatten images with x.reshape(len(x), -1), or convert a single feature to a column with x[:, None]"
            ),
        )
    if array.shape[0] < 3 or array.shape[1] < 1:
        raise InputError(
            "x",
            "have at least 3 samples and 1 feature",
            got=f"shape {array.shape}",
            remedy="draw more samples",
        )
    # float32 has 24 bits for digits, enough for integers of up to 16 bits.
    narrow = array.dtype.itemsize <= (4 if array.dtype.kind == "f" else 2)
    floats = array.astype(np.float32 if narrow else np.float64)
    if not np.isfinite(floats).all():
        bad = ~np.isfinite(floats)
        raise InputError(
            "x",
            "be finite",
            got=f"{bad.sum()} values that are not, the first in row {np.argwhere(bad)[0, 0]}",
            remedy="drop these samples or find their cause",
        )
    return floats


def _exponent(array: Float[np.ndarray, "sample feature"]) -> int:
    # The smallest value is negated instead of taking absolute values, which would copy the array.
    largest = float(max(array.max(), -array.min()))
    if largest and not 1 / LARGEST < largest < LARGEST:
        raise InputError(
            "the largest value of x",
            f"lie between {1 / LARGEST:g} and {LARGEST:g}",
            got=f"{largest:g}",
            remedy="rescale x",
        )
    return int(np.frexp(largest)[1])


def _first_occurrences(array: Float[np.ndarray, "sample feature"]) -> Int[np.ndarray, " point"]:
    """Return the rows that no earlier row equals, found by hash, because sorting thousands of columns is slow."""
    first: dict[bytes, int] = {}
    for row, values in enumerate(array):
        first.setdefault(hashlib.sha256(values.data).digest(), row)
    return np.fromiter(first.values(), dtype=np.intp)
