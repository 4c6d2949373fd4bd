"""Points for the estimators of dimension: which samples and features are left, in which unit, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from polariscope.core.errors import InputError
from polariscope.numerics.points import LARGEST, NEGLIGIBLE, points_of


def test_three_samples_of_one_feature_are_enough_and_two_are_not():
    assert points_of(np.array([[1.0], [2.0], [4.0]])).values.shape == (3, 1)
    with pytest.raises(InputError, match="x must have at least 3 samples and 1 feature"):
        points_of(np.array([[1.0], [2.0]]))
    with pytest.raises(InputError, match=r"x must have at least 3 samples and 1 feature, got shape \(3, 0\)"):
        points_of(np.ones((3, 0)))


@pytest.mark.parametrize("x", [np.ones(4), np.ones((4, 2, 1))])
def test_samples_without_two_axes_are_refused(x):
    with pytest.raises(InputError, match=r"x must have two axes, \(sample, feature\)"):
        points_of(x)


def test_points_are_the_different_samples_and_the_features_that_vary_in_a_unit_that_rounds_nothing():
    draw = np.random.default_rng(0).normal(size=(6, 3))
    x = 40 * np.column_stack([draw[:, 0], np.full(6, 0.7), draw[:, 1:]])[[0, 1, 0, 2, 3, 3, 4, 5]]
    x[4, 2] = -300.0  # the largest value may be negative; the fourth and fifth point differ now
    found = points_of(x)
    assert found.rows.tolist() == [0, 1, 3, 4, 5, 6, 7]
    assert (found.n_samples, found.n_features) == (8, 4)
    assert (found.n_duplicates, found.n_constant) == (1, 1)
    np.testing.assert_array_equal(found.values * 2.0**found.exponent, x[found.rows][:, [0, 2, 3]])
    assert 0.5 <= np.abs(found.values).max() < 1


def test_without_duplicates_every_sample_is_a_point():
    x = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [0.0, 0.0]])
    found = points_of(x)
    assert found.rows.tolist() == [0, 1, 2, 3]
    assert (found.n_duplicates, found.n_constant) == (0, 0)
    np.testing.assert_array_equal(found.values, x / 2)


def test_a_negative_zero_is_a_zero():
    assert points_of(np.array([[0.0], [-0.0], [1.0]])).rows.tolist() == [0, 2]


def test_differences_are_told_apart_down_to_where_their_squares_vanish():
    """Each value is scaled to the largest, 1/2 here: twice the limit becomes the limit, which is still a number."""
    kept = np.array([[1.0], [2 * NEGLIGIBLE], [0.0]])
    assert points_of(kept).n_duplicates == 0
    assert points_of(kept).values[1, 0] ** 2 > 0
    lost = np.array([[1.0], [1.9 * NEGLIGIBLE], [0.0]])
    assert points_of(lost).rows.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (np.float16, np.float32),
        (np.float32, np.float32),
        (np.float64, np.float64),
        (np.int8, np.float32),
        (np.uint16, np.float32),
        (np.int32, np.float64),
        (np.int64, np.float64),
    ],
)
def test_the_type_is_the_smallest_float_that_holds_the_numbers(kind, expected):
    """float32 has 24 bits for digits: enough for every integer of 16 bits, not for all of 32."""
    x = np.array([[0], [1], [2]], dtype=kind)
    if np.dtype(kind).kind in "iu":
        x[2] = np.iinfo(kind).max
    found = points_of(x)
    assert found.values.dtype == expected
    np.testing.assert_array_equal(np.ldexp(found.values, found.exponent), x)


@pytest.mark.parametrize("size", [LARGEST, 1 / LARGEST])
def test_values_whose_squares_overflow_or_vanish_are_refused(size):
    x = np.array([[0.0], [0.5], [-1.0]])
    with pytest.raises(InputError, match="largest value of x must lie between 1e-150 and 1e\\+150"):
        points_of(x * size)
    inside = points_of(x * (size / 2 if size > 1 else size * 2))
    np.testing.assert_array_equal(inside.values.argsort(axis=0).ravel(), [2, 0, 1])


@pytest.mark.parametrize("value", [0.0, 3.0])
def test_samples_that_are_all_the_same_are_refused(value):
    with pytest.raises(InputError, match="x must vary, but its 4 samples are all equal"):
        points_of(np.full((4, 2), value))


def test_the_first_row_that_is_not_finite_is_named():
    x = np.array([[1.0, 2.0], [3.0, np.inf], [np.nan, 5.0]])
    with pytest.raises(InputError, match="x must be finite, got 2 values that are not, the first in row 1"):
        points_of(x)
