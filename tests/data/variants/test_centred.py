from __future__ import annotations

import numpy as np
import pytest

from polariscope.core.errors import InputError
from polariscope.data.own.arrays import from_arrays
from polariscope.data.variants.centred import CentredVariant

ROWS = np.random.default_rng(0).normal([0, 5, -300], [1, 2, 5], size=(500, 3)).astype(np.float32)
ROOT = float(np.sqrt(ROWS.astype(np.float64).var(axis=0).mean()))


def test_the_mean_is_0_the_mean_variance_1_and_ratios_of_variances_stay():
    values = CentredVariant(from_arrays(ROWS)).values(np.arange(500)).astype(np.float64)
    np.testing.assert_allclose(values.mean(axis=0), 0, atol=1e-6)
    assert values.var(axis=0).mean() == pytest.approx(1, rel=1e-6)
    np.testing.assert_allclose(
        values.var(axis=0) / values[:, 0].var(), ROWS.var(axis=0) / ROWS[:, 0].var(), rtol=1e-4
    )


def test_inverse_gives_back_the_data_for_any_leading_axes():
    data = CentredVariant(from_arrays(ROWS))
    values = data.values(np.arange(500)).reshape(50, 10, 3)
    np.testing.assert_allclose(data.inverse(values), ROWS.reshape(50, 10, 3), rtol=1e-5, atol=1e-5)


def test_what_was_measured_is_recorded_as_numbers_and_can_be_given_for_other_data():
    data = CentredVariant(from_arrays(ROWS))
    record = data.options()
    assert record["deviation"] == pytest.approx(ROOT, rel=1e-6)
    assert len(record["mean"]) == 3
    few = CentredVariant(
        from_arrays(ROWS[:3]), mean=tuple(record["mean"]), deviation=float(record["deviation"])
    )
    np.testing.assert_array_equal(few.values([0, 1, 2]), data.values([0, 1, 2]))
    assert few.fingerprint != data.fingerprint
    assert not data.is_unit_interval
    assert not data.is_counts


def test_a_table_that_never_varies_is_only_shifted():
    data = CentredVariant(from_arrays(np.full((4, 2), 7.0)))
    assert data.values([0, 3]).tolist() == [[0, 0], [0, 0]]
    assert data.unit.tolist() == [1, 1]


def test_it_says_what_it_did_and_when_the_largest_features_decide():
    said = f"table centred and divided by {ROOT:.3g}, the root of its mean feature variance"
    assert CentredVariant(from_arrays(ROWS)).choices == (said,)
    unequal = CentredVariant(from_arrays(ROWS * [1, 1, 100.0]))
    (words,) = unequal.choices
    ratio = 1e4 * ROWS[:, 2].astype(float).var() / ROWS[:, 0].astype(float).var()
    assert (
        f"(the variances of its features differ by a factor of {ratio:,.0f}, so the largest dominate" in words
    )
    assert "standardise" in words
    constant = np.column_stack([ROWS, np.ones(500)])  # one that never varies has no ratio to the others
    assert "differ" not in CentredVariant(from_arrays(constant)).choices[0]


def test_numbers_that_do_not_fit_are_refused():
    data = from_arrays(ROWS)
    with pytest.raises(InputError, match="mean and deviation must be passed together, got mean alone"):
        CentredVariant(data, mean=(0.0, 0.0, 0.0))
    with pytest.raises(InputError, match="mean must have a number for each of the 3 features, got 2"):
        CentredVariant(data, mean=(0.0, 0.0), deviation=1.0)
    with pytest.raises(InputError, match="deviation must be positive, got 0"):
        CentredVariant(data, mean=(0.0, 0.0, 0.0), deviation=0.0)
