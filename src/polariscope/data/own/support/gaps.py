"""Rows of a table, read as needed, with missing values removed or filled."""

from __future__ import annotations

import dataclasses

import numpy as np
from jaxtyping import Float, Int, Shaped

from polariscope.core.errors import InputError
from polariscope.core.text import plural
from polariscope.data.missing import Gaps, Missing, fill, find_gaps, medians_of
from polariscope.data.own.support.rows import AbstractRows, stored

MEDIAN_VALUES, MEDIAN_ROWS = 2**26, 10_000
"""Maximum number of values, and minimum number of rows, from which medians are computed; larger tables are sampled."""


class SelectedRows(AbstractRows):
    """A selection of rows.

    :param base: the rows to select from.
    :param row_numbers: numbers of the selected rows, ascending.
    """

    def __init__(self, base: AbstractRows, row_numbers: Int[np.ndarray, " row"]) -> None:
        self.base, self.row_numbers = base, row_numbers
        self.shape, self.dtype = (len(row_numbers), *base.shape[1:]), base.dtype
        self.held = (*base.held, row_numbers)

    def take(self, indices: Int[np.ndarray, " row"]) -> Shaped[np.ndarray, "row ..."]:
        return self.base.take(self.row_numbers[indices])


class FilledRows(AbstractRows):
    """Rows with missing values replaced.

    :param base: the rows.
    :param medians: the replacement for each column.
    """

    def __init__(self, base: AbstractRows, medians: Float[np.ndarray, " feature"]) -> None:
        self.base, self.medians, self.shape, self.dtype = base, medians, base.shape, base.dtype
        self.held = (*base.held, medians)

    def take(self, indices: Int[np.ndarray, " row"]) -> Shaped[np.ndarray, "row ..."]:
        return fill(self.base.take(indices), self.medians)

    def slice(self, start: int, stop: int) -> Shaped[np.ndarray, "row ..."]:
        return fill(self.base.slice(start, stop), self.medians)


@dataclasses.dataclass(frozen=True, eq=False)
class Complete:
    """A table without missing values."""

    rows: AbstractRows
    row_numbers: Int[np.ndarray, " row"] | None = None
    """Numbers of the remaining rows if others were left out, otherwise None."""
    choices: tuple[str, ...] = ()
    """Description of the changes, in a few words."""


def without_gaps(rows: AbstractRows, policy: Missing, where: str, names: tuple[str, ...] = ()) -> Complete:
    """Return the rows of a table without missing values, which are refused, left out or filled in.

    Medians are those of all rows, including held-out ones. If there are more than 2^26 values, equally spaced rows are
    used.

    :param rows: the table.
    :param policy: treatment of missing values.
    :param where: name of the table in messages.
    :param names: (default none) names of its columns.
    """
    # The minimum propagates NaN, without a temporary array as large as the chunk.
    if rows.dtype.kind != "f" or not any(np.isnan(chunk.min(initial=0)) for _, chunk in stored(rows)):
        return Complete(rows)
    gaps = find_gaps(rows.chunks())
    if policy == "refuse":
        gaps.refuse(where, names)
    gaps.refuse_empty(where, names)
    return _dropped(rows, gaps, where) if policy == "drop" else _filled(rows, gaps)


def _dropped(rows: AbstractRows, gaps: Gaps, where: str) -> Complete:
    row_numbers = gaps.complete
    if not len(row_numbers):
        raise InputError(
            problem=f"every row of {where} lacks a value", remedy="leave out columns that lack many values"
        )
    plural = "s that lack" if len(gaps.rows) > 1 else " that lacks"
    choice = f"{len(gaps.rows):,} of {gaps.n_samples:,} rows left out: row{plural} a value"
    return Complete(SelectedRows(rows, row_numbers), row_numbers, (choice,))


def _filled(rows: AbstractRows, gaps: Gaps) -> Complete:
    max_rows = max(MEDIAN_ROWS, MEDIAN_VALUES // rows.shape[1])
    # Spread over the whole table, whose rows can be sorted.
    sample = np.linspace(0, len(rows) - 1, min(len(rows), max_rows)).astype(np.int64)
    medians = medians_of(rows.take(sample))
    which = "all rows" if len(sample) == len(rows) else f"{len(sample):,} rows"
    choice = f"{plural(gaps.total, 'missing value')} filled with the median of the column over {which}"
    return Complete(FilledRows(rows, medians), choices=(choice,))
