"""Number of observations that are read together in a pass over a whole dataset."""

from __future__ import annotations

VALUES = 2**22
"""Number of values that are read together."""


def rows_at_once(n_features: int) -> int:
    """Return the number of observations in a batch of bounded memory.

    :param n_features: number of values of one observation.

    >>> rows_at_once(4096), rows_at_once(2**30)
    (1024, 1)
    """
    return max(1, VALUES // n_features)
