"""Missing values of tables: refused, or dropped with their rows, or filled with medians."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Literal, get_args

import numpy as np
from jaxtyping import Float, Int, Shaped

from polariscope.core.errors import Argument, InputError, Text
from polariscope.core.text import listed, noun, plural

Missing = Literal["refuse", "drop", "median"]
"""What is done about missing values: they are refused; rows that lack a value are left out; or each missing value is
replaced by the median of its column."""
MAX_NAMED = 5
"""Columns that a message names."""
OPTIONS: Text = (
    "leave out rows that lack a value with ",
    Argument("missing", "drop"),
    ", or fill in the median of each column with ",
    Argument("missing", "median"),
)
"""What to do about missing values."""


def check_missing(policy: object) -> None:
    """Refuse what is not one of the ways to treat missing values.

    :param policy: what was given.
    """
    if policy not in get_args(Missing):
        raise InputError("missing", f"be one of {', '.join(get_args(Missing))}", got=f"{policy!r}")


@dataclasses.dataclass(frozen=True, eq=False)
class Gaps:
    """Where values of a table are missing."""

    count: Int[np.ndarray, " feature"]
    """Number of missing values of each column."""
    first: Int[np.ndarray, " feature"]
    """Row of the first one; of columns without, any number."""
    rows: Int[np.ndarray, " gap"]
    """Rows that lack a value."""
    n_samples: int

    @property
    def total(self) -> int:
        """Number of missing values."""
        return int(self.count.sum())

    @property
    def complete(self) -> Int[np.ndarray, " sample"]:
        """Rows that lack no value."""
        return np.setdiff1d(np.arange(self.n_samples), self.rows, assume_unique=True)

    def refuse(self, where: str, names: Sequence[str] = ()) -> None:
        """Raise an error with the number of missing values by column, the largest first.

        :param where: how messages call the table.
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
        """Refuse a table with columns that have no value at all, so neither a row nor a median is left.

        :param where: how messages call the table.
        :param names: (default: their numbers) names of the columns.
        """
        empty = np.flatnonzero(self.count == self.n_samples).tolist()
        if empty:
            named = listed((_name(column, names) for column in empty), MAX_NAMED)
            raise InputError(
                problem=f"{where} has no value at all in column {named}",
                remedy="leave such columns out",
            )


def _name(column: int, names: Sequence[str]) -> str:
    return repr(str(names[column])) if len(names) else str(column)


def find_gaps(chunks: Iterable[tuple[int, Shaped[np.ndarray, "_ feature"]]]) -> Gaps:
    """Return where values are missing, that is NaN.

    :param chunks: rows of a table, some at a time, with the number of the first; at least one.
    """
    count: Int[np.ndarray, " feature"] | None = None
    first, rows, n_samples = np.zeros(0, dtype=np.int64), [], 0
    for start, chunk in chunks:
        is_missing = np.isnan(chunk)
        here, at = is_missing.sum(axis=0), start + is_missing.argmax(axis=0)
        first = at if count is None else np.where(count == 0, at, first)
        count = here if count is None else count + here
        rows.append(start + np.flatnonzero(is_missing.any(axis=1)))
        n_samples += len(chunk)
    assert count is not None
    return Gaps(count, first, np.concatenate(rows), n_samples)


def medians_of(values: Float[np.ndarray, "sample feature"]) -> Float[np.ndarray, " feature"]:
    """Return the median of the known values of each column, rounded down in columns of whole numbers.

    Counts and columns of 0 and 1 stay what they are if they are filled with it.

    :param values: a table in which every column has a value.

    >>> medians_of(np.array([[1.0, 0.5], [np.nan, 2.0], [4.0, np.nan]]))
    array([2.  , 1.25])
    """
    median = np.nanmedian(values.astype(np.float64), axis=0)
    is_whole = ((values == np.rint(values)) | np.isnan(values)).all(axis=0)
    return np.where(is_whole, np.floor(median), median)


def fill(
    values: Float[np.ndarray, "sample feature"], medians: Float[np.ndarray, " feature"]
) -> Float[np.ndarray, "sample feature"]:
    """Return a table with missing values replaced.

    :param values: the table.
    :param medians: the value for each column.
    """
    return np.where(np.isnan(values), medians.astype(values.dtype), values)
