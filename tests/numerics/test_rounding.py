"""Cutting to decimals: towards 0, exact in differences, steady under rounding errors."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from polariscope.numerics.rounding import truncate


@given(thousandths=st.lists(st.integers(-(10**6), 10**6), min_size=1))
def test_cutting_is_towards_zero_in_exact_arithmetic(thousandths: list[int]) -> None:
    expected = [int(Fraction(value, 10)) for value in thousandths]  # int cuts towards 0
    assert truncate(np.array(thousandths) / 1000, 2).tolist() == expected


def test_a_number_that_lost_its_last_bit_is_still_cut_to_itself() -> None:
    values = np.array([3.13, 10.0, 0.29, -1.1])
    for near in (np.nextafter(values, -np.inf), values, np.nextafter(values, np.inf)):
        assert truncate(near, 2).tolist() == [313, 1000, 29, -110]


def test_differences_are_exact_where_those_of_fractions_are_not() -> None:
    assert 3.12 - 3.13 > -0.01
    entropy, shared = truncate(np.array([3.129, 3.131]), 2)
    assert (entropy - shared) / 100 == -0.01
