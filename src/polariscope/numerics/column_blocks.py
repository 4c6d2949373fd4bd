"""Functions of the columns of a large array, a few columns at a time."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from jaxtyping import Shaped

LARGE = 2**26
"""Bytes of a block; the temporaries of a function of a block are about as large."""


def by_columns(
    function: Callable[[Shaped[np.ndarray, "sample column"]], Shaped[np.ndarray, " column"]],
    array: Shaped[np.ndarray, "sample column"],
) -> Shaped[np.ndarray, " column"]:
    """Return a number for each column, from blocks of columns, so temporaries stay small compared with the array.

    :param function: function of an array that reduces its first axis.
    :param array: array of any size; it is a single block up to 64 MB.

    >>> by_columns(lambda x: x.std(axis=0), np.array([[1.0, 2.0], [3.0, 2.0]]))
    array([1., 0.])
    """
    # At least two columns: NumPy sums a single column in another order, which changes the last bits.
    n_blocks = min(-(-array.nbytes // LARGE), array.shape[1] // 2)
    if n_blocks < 2:
        return function(array)
    return np.concatenate([function(block) for block in np.array_split(array, n_blocks, axis=1)])
