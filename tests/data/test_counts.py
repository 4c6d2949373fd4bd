"""Counts are whole numbers from 0."""

from __future__ import annotations

import numpy as np
import pytest

from polariscope.core.errors import InputError
from polariscope.data import counts
from polariscope.data.own.arrays import from_arrays


def test_integers_from_0_are_promised_to_be_counts_and_floats_are_not():
    assert from_arrays(np.array([[0, 3], [2, 9]])).is_counts
    assert from_arrays(np.array([[0, 3], [2, 9]], dtype=np.uint8)).is_counts
    assert not from_arrays(np.array([[0, -3], [2, 9]])).is_counts
    assert not from_arrays(np.array([[0.0, 3.0], [2.0, 9.0]])).is_counts
    assert not from_arrays(np.zeros((2, 8, 8), np.uint8)).is_counts, "images are divided by 255"


def test_floats_are_looked_at_to_the_last_row(monkeypatch):
    monkeypatch.setattr(counts, "VALUES", 4)  # two rows at a time
    rows = np.arange(14.0).reshape(7, 2)
    counts.check_counts(from_arrays(rows))
    rows[6, 1] = 0.5
    with pytest.raises(InputError, match=r"values of arrays must be counts.*got 0\.5; pass raw counts"):
        counts.check_counts(from_arrays(rows))


def test_totals_are_those_of_rows_spread_over_the_data(monkeypatch):
    rows = np.stack([np.arange(9), np.ones(9, int)], axis=1)
    np.testing.assert_array_equal(counts.totals_of(from_arrays(rows)), np.arange(9) + 1)
    monkeypatch.setattr(counts, "MOST_ROWS", 3)
    np.testing.assert_array_equal(counts.totals_of(from_arrays(rows)), [1, 5, 9])
