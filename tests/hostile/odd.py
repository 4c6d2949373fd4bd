"""Names for generated code: ``from hostile.odd import *``."""

from __future__ import annotations

import math
import sys
import warnings

import numpy as np
import pandas
import torch

import polariscope as ps

SILENT_CODE = 9
"""Exit code of code that found a wrong result; it prints the reason."""

__all__ = ["NegativeLength", "Raises", "expect", "math", "np", "pandas", "ps", "put", "sys", "torch"]

# Building hostile arrays overflows, and polariscope notes latents that are not in use.
np.seterr(all="ignore")
warnings.simplefilter("ignore", UserWarning)


class Raises:
    """An object that raises when it is converted to an array."""

    def __array__(self, *words: object, **options: object) -> np.ndarray:
        raise KeyError("no array")

    def __len__(self) -> int:
        return 3


class NegativeLength:
    """An object whose length raises a ValueError."""

    def __len__(self) -> int:
        return -1


def put(array: object, value: object) -> np.ndarray:
    """Return a copy of an array with one odd value in its middle."""
    copied = np.array(array)
    if copied.size:
        copied.flat[copied.size // 2] = value
    return copied


def expect(condition: bool, message: str) -> None:
    """Exit with the code of a silent error if a result is wrong."""
    if not condition:
        print("SILENT:", message, flush=True)
        sys.exit(SILENT_CODE)
