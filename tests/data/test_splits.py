"""Splits are disjoint, whole and seeded."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polariscope.core.errors import InputError
from polariscope.data.splits import split


@given(
    st.integers(3, 500),
    st.integers(0, 5),
    st.sampled_from([(0.9, 0.05, 0.05), (0.8, 0.1, 0.1), (0.01, 0.01, 0.98)]),
)
def test_every_index_is_in_exactly_one_part_and_none_is_empty(n, seed, fractions):
    parts = split(n, fractions, seed)
    pieces = (parts.train, parts.validation, parts.test)
    assert min(map(len, pieces)) >= 1
    assert sorted(np.concatenate(pieces)) == list(range(n))


def test_sizes_are_the_fractions():
    parts = split(1000, (0.7, 0.2, 0.1))
    assert (len(parts.train), len(parts.validation), len(parts.test)) == (700, 200, 100)


def test_parts_depend_on_the_seed_alone():
    first, again, other = split(100, seed=0), split(100, seed=0), split(100, seed=1)
    assert (first.train == again.train).all()
    assert set(first.test.tolist()) != set(other.test.tolist())


@pytest.mark.parametrize(
    ("n", "fractions", "words"),
    [
        (2, (0.9, 0.05, 0.05), "n must be at least 3"),
        (10, (0.9, 0.1, 0.0), "three positive numbers"),
        (10, (0.9, 0.1, 0.1), "add up to 1, got .* with sum 1.1"),
        (10, (0.9, float("nan"), 0.1), "three positive numbers"),
    ],
)
def test_impossible_splits_are_refused(n, fractions, words):
    with pytest.raises(InputError, match=words):
        split(n, fractions)
