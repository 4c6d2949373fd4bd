from __future__ import annotations

import numpy as np
import pytest

from polariscope.core.errors import InputError
from polariscope.data.own.arrays import from_arrays
from polariscope.data.variants.standardised import StandardisedVariant

ROWS = np.random.default_rng(0).normal([0, 5, -300], [1, 0.1, 50], size=(500, 3)).astype(np.float32)


def test_every_feature_has_mean_0_and_deviation_1():
    values = StandardisedVariant(from_arrays(ROWS)).values(np.arange(500)).astype(np.float64)
    np.testing.assert_allclose(values.mean(axis=0), 0, atol=1e-6)
    np.testing.assert_allclose(values.std(axis=0), 1, atol=1e-6)


def test_inverse_gives_back_the_data_for_any_leading_axes():
    data = StandardisedVariant(from_arrays(ROWS))
    values = data.values(np.arange(500)).reshape(50, 10, 3)
    np.testing.assert_allclose(data.inverse(values), ROWS.reshape(50, 10, 3), rtol=1e-5, atol=1e-5)
    assert data.inverse(values).dtype == np.float32


def test_features_that_never_vary_become_0_and_come_back_and_this_is_said():
    rows = np.column_stack([ROWS[:, 0], np.full(500, 0.1), np.full(500, 7.0)])
    data = StandardisedVariant(from_arrays(rows))
    values = data.values(np.arange(500))
    assert (values[:, 1:] == 0).all() or np.abs(values[:, 1:]).max() < 1e-6
    np.testing.assert_allclose(data.inverse(values), rows, rtol=1e-6, atol=1e-6)
    assert data.choices == ("2 features that never vary are 0 when standardised",)
    assert StandardisedVariant(from_arrays(ROWS)).choices == ()


def test_statistics_of_other_data_can_be_given_and_are_recorded():
    data = StandardisedVariant(from_arrays(ROWS))
    record = data.options()
    few = StandardisedVariant(
        from_arrays(ROWS[:3]), mean=tuple(record["mean"]), deviation=tuple(record["deviation"])
    )
    np.testing.assert_array_equal(few.values([0, 1, 2]), data.values([0, 1, 2]))
    assert not data.is_unit_interval


def test_statistics_that_do_not_fit_are_refused():
    data = from_arrays(ROWS)
    with pytest.raises(InputError, match="mean and deviation must be passed together, got mean alone"):
        StandardisedVariant(data, mean=(0.0, 0.0, 0.0))
    with pytest.raises(InputError, match="mean must have a number for each of the 3 features, got 2"):
        StandardisedVariant(data, mean=(0.0, 0.0), deviation=(1.0, 1.0))
    with pytest.raises(InputError, match="deviation must be a list of numbers, each at least 0"):
        StandardisedVariant(data, mean=(0.0, 0.0, 0.0), deviation=(1.0, 1.0, -1.0))
