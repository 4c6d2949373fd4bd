"""Truncation to decimals, as in published algorithms, and rounding to significant digits."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int

NOISE = 1e-9
"""Rounding error in units of the last decimal: 2.9999999999 counts as 3."""


def truncate(values: Float[np.ndarray, "*shape"], decimals: int) -> Int[np.ndarray, "*shape"]:
    """Truncate towards 0 to a number of decimals, in integer units of the last one: 312 for 3.129 and 2 decimals.

    Integers are used because differences of decimal fractions are not exact: 3.12 − 3.13 is above −0.01 in floating
    point, and (312 − 313) / 100 is not.

    >>> truncate(np.array([3.129, -0.019, 0.29]), decimals=2)
    array([312,  -1,  29])
    """
    scaled = values.astype(np.float64) * 10**decimals
    # The noise is added away from 0, because truncation goes towards 0.
    return np.trunc(scaled + np.copysign(NOISE, scaled)).astype(np.int64)


def significant(value: float, digits: int = 3) -> float:
    """Round a number to significant digits, for records that people read.

    >>> significant(0.0987654), significant(123456.0), significant(0.0)
    (0.0988, 123000.0, 0.0)
    """
    return float(f"{value:.{digits - 1}e}")
