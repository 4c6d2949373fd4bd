"""Counts are whole numbers from 0."""

from __future__ import annotations

import numpy as np
import pytest

from polariscope.core.errors import InputError
from polariscope.data import counts, reading
from polariscope.data.own.arrays import from_arrays


def test_integers_from_0_are_promised_to_be_counts_and_floats_are_not():
    assert from_arrays(np.array([[0, 3], [2, 9]])).is_counts
    assert from_arrays(np.array([[0, 3], [2, 9]], dtype=np.uint8)).is_counts
    assert not from_arrays(np.array([[0, -3], [2, 9]])).is_counts
    assert not from_arrays(np.array([[0.0, 3.0], [2.0, 9.0]])).is_counts
    assert not from_arrays(np.zeros((2, 8, 8), np.uint8)).is_counts, "images are divided by 255"


def test_floats_are_looked_at_to_the_last_row(monkeypatch):
    monkeypatch.setattr(reading, "VALUES", 4)  # two rows at a time
    rows = np.arange(14.0).reshape(7, 2)
    counts.check_counts(from_arrays(rows))
    rows[6, 1] = 0.5
    with pytest.raises(InputError, match=r"values of arrays must be counts.*got 0\.5; pass raw counts"):
        counts.check_counts(from_arrays(rows))


def test_totals_are_those_of_rows_spread_over_the_data(monkeypatch):
    rows = np.stack([np.arange(9), np.ones(9, int)], axis=1)
    np.testing.assert_array_equal(counts.totals_of(from_arrays(rows)), np.arange(9) + 1)
    monkeypatch.setattr(counts, "MAX_ROWS", 3)
    np.testing.assert_array_equal(counts.totals_of(from_arrays(rows)), [1, 5, 9])


def test_facts_are_those_of_the_whole_table_if_it_is_small():
    table = np.random.default_rng(0).poisson([0, 3, 40], size=(500, 3)).astype(float)
    facts = from_arrays(table).value_facts
    assert facts == counts.measure_rows(table)
    ratios = table[:, 1:].var(axis=0) / table[:, 1:].mean(axis=0)  # a column of zeros has none
    assert facts.dispersion == pytest.approx(np.median(ratios))
    assert facts.share_at_largest == np.mean(table == table.max())
    assert (facts.largest, facts.n_rows, facts.is_distinct) == (table.max(), 500, False)


def test_every_value_is_looked_at_and_the_rest_in_a_sample_of_rows(monkeypatch):
    monkeypatch.setattr(counts, "MAX_ROWS", 10)
    table = np.tile(np.arange(6), (90, 1))
    table[45, 2] = 99  # in none of the ten rows
    assert from_arrays(table).value_facts.largest == 99
    assert from_arrays(table).value_facts.n_rows == 10
    fractions = table.astype(float)
    fractions[45, 2] = 0.5
    assert from_arrays(fractions).value_facts.largest is None


def test_a_sparse_table_has_the_facts_of_the_dense_one():
    from scipy.sparse import csr_array

    table = np.random.default_rng(0).poisson(0.3, size=(300, 20)).astype(np.float32)
    assert from_arrays(csr_array(table)).value_facts == from_arrays(table).value_facts
    assert from_arrays(csr_array(np.zeros((3, 2)))).value_facts.largest == 0


def test_identifiers_are_columns_in_which_no_value_occurs_twice():
    rows = np.arange(50)
    assert from_arrays(np.stack([rows, np.full(50, 7)], axis=1)).value_facts.is_distinct
    assert not from_arrays(np.stack([rows, rows // 2], axis=1)).value_facts.is_distinct


def test_images_are_not_read():
    assert from_arrays(np.zeros((3, 8, 8), np.uint8)).value_facts == counts.ValueFacts(False, True)
