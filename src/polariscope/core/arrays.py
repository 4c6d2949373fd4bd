"""Conversion of user input to arrays of numbers."""

from __future__ import annotations

import numpy as np
from jaxtyping import Shaped

from polariscope.core.errors import InputError

LARGEST_WHOLE = 2**53
"""Largest integer up to which floats represent every integer."""


def real_numbers(value: object, name: str) -> Shaped[np.ndarray, "*_"]:
    """Convert ``value`` to an array of real numbers or truth values; ``name`` is the argument in messages.

    >>> real_numbers([[1, 2], [3, 4]], "codes").shape
    (2, 2)
    """
    array = as_array(value, name)
    if array.dtype.kind not in "iubf":
        raise InputError(name, "be an array of real numbers", got=f"an array of {array.dtype}")
    return array


def as_array(value: object, name: str) -> Shaped[np.ndarray, "*_"]:
    """Convert ``value`` to an array of any type; masked arrays and objects that cannot be converted raise an error.

    :param value: the user's object.
    :param name: its name in messages.
    """
    refuse_masked(value, name)
    try:
        return np.asarray(value)
    except Exception as error:  # __array__ of another library can raise anything
        raise InputError(
            name,
            "be an array of numbers",
            got=f"{type(value).__name__} ({error})",
            remedy="for a tensor pass tensor.detach().cpu().numpy()",
        ) from None


def refuse_masked(value: object, name: str) -> None:
    """Reject a masked array, or a list of them: conversion to an ordinary array would reveal the masked values."""
    parts = value if isinstance(value, (list, tuple)) else (value,)
    masked = [part for part in parts if isinstance(part, np.ma.MaskedArray)]
    if masked:
        count = sum(int(np.ma.count_masked(part)) for part in masked)
        raise InputError(
            name,
            "be an ordinary array",
            got=(
                f"a masked array, of which {count} of {sum(part.size for part in masked)} values are masked; these "
                "values would be used"
            ),
            remedy="drop these samples, e.g. with np.ma.compress_rows, or fill them in with filled()",
        )


def refuse_large_integers(values: Shaped[np.ndarray, "..."], name: str) -> None:
    """Reject integers beyond 2^53, which would equal their neighbours after conversion to floats.

    :param values: an array of any type; only integers of 64 bits are checked.
    :param name: the argument in messages, or the column.
    """
    if values.dtype.kind not in "iu" or values.dtype.itemsize < 8 or not values.size:
        return
    large = (values > LARGEST_WHOLE) | (values < -LARGEST_WHOLE)
    if large.any():
        row, *rest = (int(position) for position in np.argwhere(large)[0])
        raise InputError(
            name,
            "contain no integers beyond 2^53, which floats cannot distinguish from their neighbours",
            got=f"{values[large][0]} in row {row}" + "".join(f", column {column}" for column in rest),
            remedy="leave out this column, or subtract a constant from it",
        )
