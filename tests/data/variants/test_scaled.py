from __future__ import annotations

import numpy as np

from polariscope.data.own.arrays import from_arrays
from polariscope.data.variants.scaled import ScaledVariant

ROWS = np.random.default_rng(0).normal([0, 5, -300], [1, 0.1, 50], size=(500, 3)).astype(np.float32)


def test_every_feature_goes_from_0_to_1():
    data = ScaledVariant(from_arrays(ROWS))
    values = data.values(np.arange(500))
    assert values.min(axis=0).tolist() == [0, 0, 0]
    assert values.max(axis=0).tolist() == [1, 1, 1]
    assert data.is_unit_interval
    np.testing.assert_allclose(data.inverse(values), ROWS, rtol=1e-5, atol=2e-5)


def test_by_the_range_of_the_table_proportions_are_kept():
    data = ScaledVariant(from_arrays(ROWS), by="table")
    values = data.values(np.arange(500)).astype(np.float64)
    assert values.min() == 0
    assert values.max() == 1
    span = float(ROWS.max()) - float(ROWS.min())
    np.testing.assert_allclose(values.std(axis=0) * span, ROWS.astype(np.float64).std(axis=0), rtol=1e-4)


def test_a_feature_that_never_varies_becomes_0():
    data = ScaledVariant(from_arrays(np.column_stack([ROWS[:, 0], np.full(500, 3.0)])))
    assert (data.values(np.arange(500))[:, 1] == 0).all()
    assert (data.inverse(data.values([4]))[:, 1] == 3).all()


def test_a_range_that_was_given_promises_the_unit_interval_only_where_the_data_lie_in_it():
    wide = ScaledVariant(from_arrays(ROWS), low=(-10.0, 0.0, -900.0), high=(10.0, 10.0, 0.0))
    tight = ScaledVariant(from_arrays(ROWS), low=(0.0, 0.0, -900.0), high=(10.0, 10.0, 0.0))
    assert wide.is_unit_interval
    assert not tight.is_unit_interval
