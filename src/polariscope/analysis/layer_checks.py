"""What all measures do with an array first: look whether it can be compared. And how a kernel matrix is packed."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Shaped

from polariscope.core.arrays import refuse_masked
from polariscope.core.errors import InputError
from polariscope.numerics.distances import some_features


def check(
    x: Float[np.ndarray, "sample p"], name: str = "x", at_least: int = 2
) -> Float[np.ndarray, "sample p"]:
    """The array, if it is a representation that can be compared; else an error that says why not."""
    x = check_table(x, name)
    if len(x) < at_least:
        raise InputError(name, f"have at least {at_least} samples for this measure", got=len(x))
    if x.dtype not in (np.float32, np.float64):
        x = x.astype(np.float64)  # differences of small integers and half floats overflow
    for part in some_features(x):
        if not np.isfinite(part).all():
            raise InputError(name, "be finite", got="NaN or infinity", remedy="the model may have diverged")
    if is_constant(x):
        raise InputError(
            problem=f"{name} is the same for all {len(x)} samples, so it has no similarity with anything",
            remedy="leave it out",
        )
    return x


def check_table(x: Shaped[np.ndarray, "..."], name: str) -> Shaped[np.ndarray, "sample p"]:
    """The array, if it is a table of numbers; else an error."""
    refuse_masked(x, name)
    x = np.asarray(x)
    if x.ndim != 2 or 0 in x.shape or x.dtype.kind not in "fiub":
        raise InputError(
            name,
            "have numbers in the shape (sample, feature)",
            got=f"{x.dtype} of shape {x.shape}",
            remedy="flatten activations with x.reshape(len(x), -1)",
        )
    return x


def check_pair(
    x: Float[np.ndarray, "sample p"], y: Float[np.ndarray, "same q"], at_least: int = 2
) -> tuple[Float[np.ndarray, "sample p"], Float[np.ndarray, "same q"]]:
    """Two representations of the same samples."""
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
    """Whether no feature varies over the samples."""
    # ∞ − ∞ is not constant, and refused where it is compressed; a range too large for its type is not either.
    with np.errstate(invalid="ignore", over="ignore"):
        return not any(np.ptp(part, axis=0).any() for part in some_features(x))


def upper_triangle(
    matrix: Float[np.ndarray, "sample sample"], *, diagonal: bool
) -> Float[np.ndarray, " pair"]:
    """The entries above the diagonal, and on it if asked, row by row; indices for them would take more memory."""
    n, first = len(matrix), 0 if diagonal else 1
    packed = np.empty(n * (n + 1) // 2 - first * n, dtype=matrix.dtype)
    position = 0
    for i, row in enumerate(matrix):
        length = n - i - first
        packed[position : position + length] = row[i + first :]
        position += length
    return packed
