"""Counts: whole numbers from 0."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Shaped

from polariscope.core.errors import Argument, InputError
from polariscope.data.dataset import AbstractDataset

VALUES = 2**22
"""How many values are looked at together."""
MOST_ROWS = 10_000
"""From how many observations the usual total is taken."""


def refuse_non_counts(values: Shaped[np.ndarray, "sample ..."], name: str = "values") -> None:
    """Refuse values that are negative or not whole.

    :param values: observations, in any shape.
    :param name: (default "values") what to call them.
    """
    problem = None
    if values.size and values.min() < 0:
        problem = f"{values.min():g}"
    elif (odd := values[values != np.rint(values)]).size:
        problem = f"{odd[0]:g}"
    if problem is not None:
        raise InputError(
            name,
            "be counts, whole numbers from 0, for this likelihood",
            got=problem,
            remedy=(
                "pass raw counts, neither scaled nor transformed, or use ",
                Argument("likelihood", "gaussian"),
            ),
        )


def check_counts(data: AbstractDataset) -> None:
    """Look at every value of a dataset that does not promise counts, and refuse the first that is none.

    :param data: a dataset.
    """
    if data.is_counts:
        return
    rows = max(1, VALUES // data.n_features)
    for first in range(0, len(data), rows):
        refuse_non_counts(
            data.values(np.arange(first, min(first + rows, len(data)))), f"values of {data.name}"
        )


def totals_of(data: AbstractDataset) -> Float[np.ndarray, " sample"]:
    """Totals of up to 10,000 observations, spread evenly over the dataset.

    :param data: a dataset.
    """
    chosen = np.linspace(0, len(data) - 1, min(len(data), MOST_ROWS)).astype(np.int64)
    rows = max(1, VALUES // data.n_features)
    parts = [
        data.values(chosen[first : first + rows]).reshape(-1, data.n_features).sum(axis=1, dtype=np.float64)
        for first in range(0, len(chosen), rows)
    ]
    return np.concatenate(parts)
