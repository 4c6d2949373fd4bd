"""Treatment of missing values in tables: refuse them, drop their rows, or fill them with medians."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Literal, get_args

import numpy as np
from jaxtyping import Float, Int, Shaped

from polariscope.core.errors import Argument, InputError, Text
from polariscope.core.text import listed, noun, plural

Missing = Literal["refuse", "drop", "median"]
"""Treatment of missing values: "refuse" raises an error, "drop" leaves out rows with a missing value, and "median"
replaces each missing value with the median of its column."""
MAX_NAMED = 5
"""Maximum number of columns that a message names."""
OPTIONS: Text = (
    "leave out rows that lack a value with ",
    Argument("missing", "drop"),
    ", or fill in the median of each column with ",
    Argument("missing", "median"),
)
"""Remedies for missing values, as part of an error message."""


def check_missing(policy: object) -> None:
    """Raise an error unless a policy for missing values is valid.

    :param policy: the value to check.
    """
    if policy not in get_args(Missing):
        raise InputError("missing", f"be one of {', '.join(get_args(Missing))}", got=f"{policy!r}")


@dataclasses.dataclass(frozen=True, eq=False)
class Gaps:
    """Positions of the missing values of a table."""

    count: Int[np.ndarray, " feature"]
    """Number of missing values in each column."""
    first: Int[np.ndarray, " feature"]
    """Row of the first missing value of each column; arbitrary for columns without missing values."""
    rows: Int[np.ndarray, " gap"]
    """Rows with a missing value."""
    n_samples: int

    @property
    def total(self) -> int:
        """Number of missing values."""
        return int(self.count.sum())

    @property
    def complete(self) -> Int[np.ndarray, " sample"]:
        """Rows without a missing value."""
        return np.setdiff1d(np.arange(self.n_samples), self.rows, assume_unique=True)

    def refuse(self, where: str, names: Sequence[str] = ()) -> None:
        """Raise an error with the number of missing values in each column, the largest number first.

        :param where: name of the table in messages.
        :param names: (default: their numbers) names of the columns.
        """
        columns = np.argsort(-self.count, kind="stable")[: np.count_nonzero(self.count)].tolist()
        named = [
            f"column {_name(column, names)} lacks "
            f"{plural(int(self.count[column]), 'value')}, first in row {self.first[column]}"
            for column in columns[:MAX_NAMED]
        ]
        more = len(columns) - len(named)
        rest = f", and {more} more {noun(more, 'column')}" if more else ""
        all_values = self.n_samples * len(self.count)
        raise InputError(
            problem=f"{where} lacks {self.total:,} of {all_values:,} values (NaN): {'; '.join(named)}{rest}",
            remedy=OPTIONS,
        )

    def refuse_empty(self, where: str, names: Sequence[str] = ()) -> None:
        """Raise an error if a column has no values at all, since then no complete row and no median exists.

        :param where: name of the table in messages.
        :param names: (default: their numbers) names of the columns.
        """
        empty = np.flatnonzero(self.count == self.n_samples).tolist()
        if empty:
            named = listed((_name(column, names) for column in empty), MAX_NAMED)
            raise InputError(
                problem=f"{where} has no value at all in column {named}",
                remedy="leave out such columns",
            )


def _name(column: int, names: Sequence[str]) -> str:
    return repr(str(names[column])) if len(names) else str(column)


def find_gaps(chunks: Iterable[tuple[int, Shaped[np.ndarray, "_ feature"]]]) -> Gaps:
    """Find the missing values (NaN) of a table.

    :param chunks: chunks of rows, each with the number of its first row; at least one chunk.
    """
    count: Int[np.ndarray, " feature"] | None = None
    first, rows, n_samples = np.zeros(0, dtype=np.int64), [], 0
    for start, chunk in chunks:
        is_missing = np.isnan(chunk)
        chunk_count, chunk_first = is_missing.sum(axis=0), start + is_missing.argmax(axis=0)
        # The first row stays once a column has a missing value.
        first = chunk_first if count is None else np.where(count == 0, chunk_first, first)
        count = chunk_count if count is None else count + chunk_count
        rows.append(start + np.flatnonzero(is_missing.any(axis=1)))
        n_samples += len(chunk)
    assert count is not None
    return Gaps(count, first, np.concatenate(rows), n_samples)


def medians_of(values: Float[np.ndarray, "sample feature"]) -> Float[np.ndarray, " feature"]:
    """Return the median of the known values of each column, rounded down in columns of integers.

    Filling with it keeps counts integer, and columns of 0 and 1 binary.

    :param values: a table in which every column has a value.

    >>> medians_of(np.array([[1.0, 0.5], [np.nan, 2.0], [4.0, np.nan]]))
    array([2.  , 1.25])
    """
    median = np.nanmedian(values.astype(np.float64), axis=0)
    # Missing values do not decide whether a column contains integers.
    is_whole = ((values == np.rint(values)) | np.isnan(values)).all(axis=0)
    return np.where(is_whole, np.floor(median), median)


def fill(
    values: Float[np.ndarray, "sample feature"], medians: Float[np.ndarray, " feature"]
) -> Float[np.ndarray, "sample feature"]:
    """Replace the missing values of a table.

    :param values: the table.
    :param medians: the replacement for each column.
    """
    return np.where(np.isnan(values), medians.astype(values.dtype), values)
