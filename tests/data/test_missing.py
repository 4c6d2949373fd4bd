"""Missing values of tables: refused by column, left out with their rows, or filled with medians."""

from __future__ import annotations

import numpy as np
import pytest

from polariscope.core.errors import InputError
from polariscope.data.missing import check_missing, fill, find_gaps, medians_of

NAN = float("nan")
TABLE = np.array([[1.0, NAN, 0.5], [2.0, 7.0, NAN], [4.0, NAN, 1.5], [6.0, 8.0, 2.5]])


def test_gaps_are_the_same_whatever_the_chunks():
    whole = find_gaps([(0, TABLE)])
    parts = find_gaps([(0, TABLE[:1]), (1, TABLE[1:3]), (3, TABLE[3:])])
    for gaps in (whole, parts):
        assert gaps.count.tolist() == [0, 2, 1]
        assert gaps.first[1:].tolist() == [0, 1]
        assert gaps.rows.tolist() == [0, 1, 2]
        assert gaps.complete.tolist() == [3]
        assert (gaps.total, gaps.n_samples) == (3, 4)


def test_the_message_counts_by_column_largest_first_and_names_five_columns_and_both_ways_out():
    with pytest.raises(InputError) as refused:
        find_gaps([(0, TABLE)]).refuse("table.csv", ("a", "b", "c"))
    assert str(refused.value) == (
        "table.csv lacks 3 of 12 values (NaN): column 'b' lacks 2 values, first in row 0; column 'c' lacks 1 value, "
        "first in row 1; leave out rows that lack a value with missing='drop', or fill in the median of each column "
        "with missing='median'."
    )
    wide = np.full((2, 8), NAN)
    with pytest.raises(
        InputError, match=r"column 4 lacks 2 values, first in row 0, and 3 more columns; leave"
    ):
        find_gaps([(0, wide)]).refuse("X")


def test_a_column_without_any_value_is_named():
    with pytest.raises(InputError, match="X has no value at all in column 'b'; leave out such columns"):
        find_gaps([(0, np.array([[1.0, NAN], [2.0, NAN]]))]).refuse_empty("X", ("a", "b"))
    find_gaps([(0, TABLE)]).refuse_empty("X")


def test_medians_are_those_of_the_known_values_and_whole_where_these_are():
    rows = np.array([[1.0, 0.5, 3.0], [2.0, NAN, 4.0], [NAN, 1.5, NAN]])
    medians = medians_of(rows)
    assert medians.tolist() == [1.0, 1.0, 3.0]
    filled = fill(rows, medians)
    assert filled.tolist() == [[1.0, 0.5, 3.0], [2.0, 1.0, 4.0], [1.0, 1.5, 3.0]]
    assert fill(rows.astype(np.float32), medians).dtype == np.float32


def test_another_policy_is_refused():
    with pytest.raises(InputError, match="missing must be one of refuse, drop, median, got 'mean'"):
        check_missing("mean")
