"""Number of observations that are read together when all of a dataset is looked through."""

from __future__ import annotations

VALUES = 2**22
"""Values that are read together."""


def rows_at_once(n_features: int) -> int:
    """Return the number of observations in a batch, from the size of one: memory is bounded.

    :param n_features: values of one observation.

    >>> rows_at_once(4096), rows_at_once(2**30)
    (1024, 1)
    """
    return max(1, VALUES // n_features)
