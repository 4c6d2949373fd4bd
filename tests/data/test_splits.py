"""Splits are disjoint, whole and seeded."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polariscope.core.errors import InputError
from polariscope.data.splits import (
    parts_of_column,
    split,
    split_everything,
    split_groups,
    split_parts,
)


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
        (2, (0.9, 0.05, 0.05), "the number of observations must be at least 3"),
        (10, (0.9, 0.1, 0.0), "three positive numbers"),
        (10, (0.9, 0.1, 0.1), "add up to 1, got .* with sum 1.1"),
        (10, (0.9, float("nan"), 0.1), "three positive numbers"),
    ],
)
def test_impossible_splits_are_refused(n, fractions, words):
    with pytest.raises(InputError, match=words):
        split(n, fractions)


def test_training_on_everything_validates_on_some_of_it_and_tests_on_nothing():
    parts = split_everything(200, seed=3)
    assert sorted(parts.train) == list(range(200))
    assert len(parts.validation) == 10
    assert set(parts.validation) <= set(parts.train)
    assert not len(parts.test)
    assert not parts.is_held_out
    assert len(split_everything(2).validation) == 1


@given(st.lists(st.integers(1, 20), min_size=3, max_size=30), st.integers(0, 3))
def test_no_group_is_in_two_parts_and_none_is_lost(sizes, seed):
    groups = np.random.default_rng(seed).permutation(np.repeat(np.arange(len(sizes)), sizes))
    parts = split_groups(groups, (0.1, 0.1), seed)
    pieces = (parts.train, parts.validation, parts.test)
    assert min(map(len, pieces)) >= 1
    assert sorted(np.concatenate(pieces)) == list(range(len(groups)))
    assert sum(len(np.unique(groups[piece])) for piece in pieces) == len(sizes)


def test_parts_of_groups_have_nearly_their_fractions():
    groups = np.repeat(np.arange(300), 3)
    parts = split_groups(groups, (0.2, 0.1))
    assert abs(len(parts.validation) - 180) <= 3
    assert abs(len(parts.test) - 90) <= 3
    again, other = split_groups(groups, (0.2, 0.1)), split_groups(groups, (0.2, 0.1), seed=1)
    assert (parts.test == again.test).all()
    assert set(parts.test.tolist()) != set(other.test.tolist())
    with pytest.raises(InputError, match="groups must be at least 3 to have one in each part, got 2"):
        split_groups(np.array([0, 0, 1]), (0.1, 0.1))


def test_parts_that_are_given_are_kept_and_validation_is_taken_from_training():
    parts = split_parts({"train": np.arange(60), "test": np.arange(60, 70)}, 80, train_fraction=0.9)
    assert sorted(parts.test) == list(range(60, 70))
    assert len(parts.validation) == 6
    assert sorted([*parts.train, *parts.validation]) == list(range(60)), "70 … 79 are in no part"
    whole = split_parts({"train": [3, 1], "validation": [0], "test": [2]}, 4, train_fraction=0.9)
    assert (sorted(whole.train), list(whole.validation), list(whole.test)) == ([1, 3], [0], [2])
    everything = split_parts({"train": np.arange(60), "test": np.arange(60, 70)}, 80, train_fraction=1.0)
    assert sorted(everything.train) == list(range(60))
    assert set(everything.validation) <= set(range(60))
    assert len(everything.test) == 10
    assert not everything.is_held_out


def test_groups_stay_together_in_parts_that_are_given():
    groups = np.array([0, 0, 1, 1, 2, 2, 3, 3])
    parts = split_parts({"train": np.arange(6), "test": [6, 7]}, 8, 0.7, groups=groups)
    assert not set(groups[parts.train]) & set(groups[parts.validation])
    with pytest.raises(
        InputError, match="groups must be in one part each, got 2, which is in train and in test"
    ):
        split_parts({"train": np.arange(5), "validation": [6], "test": [5]}, 8, 0.7, groups=groups)


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ({"train": [0, 1], "test": [1]}, "each at most once"),
        ({"train": [0, 4]}, "contain indices from 0 to 3"),
        ({"test": [0, 1]}, "samples in its training part, got an empty one"),
        ({"train": [0], "dev": [1]}, "no part named 'dev'"),
        ({"train": [0]}, "have samples to train and to validate on"),
    ],
)
def test_wrong_parts_are_refused(parts, words):
    with pytest.raises(InputError, match=words):
        split_parts(parts, 4, 0.9)


def test_a_column_names_parts_by_words_or_numbers():
    for column in (
        np.array(["Train", "test", "val", "train"]),
        np.array([0, 2, 1, 0]),
        np.array([0.0, 2, 1, 0]),
    ):
        parts = parts_of_column(column, "fold")
        assert {name: rows.tolist() for name, rows in parts.items()} == {
            "train": [0, 3],
            "validation": [2],
            "test": [1],
        }
    with pytest.raises(InputError, match=r"column 'fold' must contain train, validation or test .*got 3, 7"):
        parts_of_column(np.array([0, 3, 7]), "fold")
    with pytest.raises(InputError, match="got anna"):
        parts_of_column(np.array(["train", "anna"]), "fold")
