"""Checks of representations before they are compared, and packing of kernel matrices."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Shaped

from polariscope.core.arrays import as_array
from polariscope.core.errors import InputError
from polariscope.numerics.distances import some_features


def check(
    x: Float[np.ndarray, "sample p"], name: str = "x", at_least: int = 2
) -> Float[np.ndarray, "sample p"]:
    """Return the array if it can be compared; raise an error with the reason otherwise."""
    x = check_table(x, name)
    if len(x) < at_least:
        raise InputError(name, f"have at least {at_least} samples for this measure", got=len(x))
    if x.dtype not in (np.float32, np.float64):
        x = x.astype(np.float64)  # differences of small integers and half floats overflow
    for part in some_features(x):
        if not np.isfinite(part).all():
            raise InputError(name, "be finite", got="NaN or infinity", remedy="the model might have diverged")
    if is_constant(x):
        raise InputError(
            problem=f"{name} is the same for all {len(x)} samples, so similarities with it are undefined",
            remedy="leave it out",
        )
    return x


def check_table(x: Shaped[np.ndarray, "..."], name: str) -> Shaped[np.ndarray, "sample p"]:
    """Return the array if it is a table of numbers; raise an error otherwise."""
    x = as_array(x, name)
    if x.ndim != 2 or 0 in x.shape or x.dtype.kind not in "fiub":
        raise InputError(
            name,
            "be numbers of shape (sample, feature)",
            got=f"{x.dtype} of shape {x.shape}",
            remedy="flatten activations with x.reshape(len(x), -1)",
        )
    return x


def check_pair(
    x: Float[np.ndarray, "sample p"], y: Float[np.ndarray, "same q"], at_least: int = 2
) -> tuple[Float[np.ndarray, "sample p"], Float[np.ndarray, "same q"]]:
    """Return two representations after checking that they have the same samples."""
    x, y = check(x, "x", at_least), check(y, "y", at_least)
    if len(x) != len(y):
        raise InputError(
            "x and y",
            "have a row for each of the same samples",
            got=f"{len(x)} and {len(y)} rows",
            remedy="encode the same observations with both models",
        )
    return x, y


def is_constant(x: Float[np.ndarray, "sample p"]) -> bool:
    """Return True if no feature varies over the samples."""
    # ∞ − ∞ is NaN, which counts as varying; so does a range that overflows. Compression rejects both later.
    with np.errstate(invalid="ignore", over="ignore"):
        return not any(np.ptp(part, axis=0).any() for part in some_features(x))


def upper_triangle(
    matrix: Float[np.ndarray, "sample sample"], *, diagonal: bool
) -> Float[np.ndarray, " pair"]:
    """Return the entries above the diagonal, with ``diagonal`` also those on it, row by row.

    Indices (``np.triu_indices``) would take more memory than the entries.
    """
    n, first = len(matrix), 0 if diagonal else 1
    # Without the diagonal there are n entries less.
    packed = np.empty(n * (n + 1) // 2 - first * n, dtype=matrix.dtype)
    position = 0
    for i, row in enumerate(matrix):
        length = n - i - first
        packed[position : position + length] = row[i + first :]
        position += length
    return packed
