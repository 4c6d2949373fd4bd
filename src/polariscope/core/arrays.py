"""Arrays of numbers from whatever a user has."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Shaped

from polariscope.core.errors import InputError


def real_numbers(value: Any, name: str) -> Shaped[np.ndarray, "*_"]:
    """The array that ``value`` is or holds, of real numbers or truth values; ``name`` is what the caller named it.

    >>> real_numbers([[1, 2], [3, 4]], "codes").shape
    (2, 2)
    """
    try:
        array = np.asarray(value)
    except Exception as error:  # whatever another library's __array__ raises
        raise InputError(
            f"{name} must be an array of numbers, got {type(value).__name__} ({error}); "
            "for a tensor pass tensor.detach().cpu().numpy()."
        ) from None
    if array.dtype.kind not in "iubf":
        raise InputError(f"{name} must be an array of real numbers, got an array of {array.dtype}.")
    return array
