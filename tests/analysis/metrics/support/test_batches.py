"""Batches with one factor fixed, drawn from a table."""

from __future__ import annotations

import numpy as np
import pytest

from analysis.metrics.known import grid, noise
from oracles import STANDARD_ERRORS
from polariscope.analysis.code_table import Table
from polariscope.analysis.metrics.support.batches import Groups, assumptions, blocks, mean_by
from polariscope.core.errors import InputError

N_DRAWS = 40_000


def expect_frequencies(found: np.ndarray, probability: np.ndarray) -> None:
    """Each cell is as frequent as its probability says, within so many standard errors."""
    error = np.sqrt(probability * (1 - probability) / N_DRAWS)
    assert (np.abs(found / N_DRAWS - probability) <= STANDARD_ERRORS * error).all()


@pytest.fixture
def uneven() -> np.ndarray:
    """Values that occur three times, twice and once."""
    return np.array([[0], [1], [0], [2], [1], [0]])


@pytest.mark.parametrize("numbers", [[0, 1, 2], [1, 0, 2]])  # which value comes first
def test_pairs_are_the_enumerated_ones_equally_often(uneven: np.ndarray, numbers: list[int]) -> None:
    draw = np.random.default_rng(0)
    uneven = np.array(numbers)[uneven]
    first, second = Groups(uneven, ("a",)).pairs(np.zeros(N_DRAWS, dtype=int), draw)
    counts = np.zeros((6, 6))
    np.add.at(counts, (first, second), 1)
    share = (uneven == uneven.T) & ~np.eye(6, dtype=bool)
    # One of the 5 rows whose value occurs twice or more, then one of the others with its value.
    expect_frequencies(counts, share / np.maximum(1, share.sum(axis=1, keepdims=True)) / 5)


def test_batches_hold_any_row_with_the_value_equally_often(uneven: np.ndarray) -> None:
    rows = Groups(uneven, ("a",)).batches(np.zeros(N_DRAWS, dtype=int), 2, np.random.default_rng(0))
    assert (uneven[rows[:, 0]] == uneven[rows[:, 1]]).all()
    counts = np.zeros((6, 6))
    np.add.at(counts, (rows[:, 0], rows[:, 1]), 1)
    share = (uneven == uneven.T) & (uneven != 2)
    frequency = np.array([3, 2, 3, 1, 2, 3]) / 5  # of the row's value among the rows that can be fixed
    expect_frequencies(counts, share * frequency[:, None] / np.maximum(1, share.sum(axis=1)[:, None] ** 2))


def test_each_batch_fixes_the_factor_it_was_asked_for() -> None:
    classes = grid(3, 4, 5)
    factor = np.random.default_rng(0).integers(3, size=500)
    groups = Groups(classes, ("a", "b", "c"))
    rows = groups.batches(factor, 8, np.random.default_rng(1))
    spread = np.ptp(classes[rows], axis=1)
    assert (spread[np.arange(500), factor] == 0).all()
    assert spread.any(axis=1).all()
    first, second = groups.pairs(factor, np.random.default_rng(2))
    assert (classes[first, factor] == classes[second, factor]).all()
    assert (first != second).all()


def test_a_value_seen_once_is_left_out_and_said_so(uneven: np.ndarray) -> None:
    shared = Table(noise(6, 1), uneven, factor_names=("shape",))
    groups = Groups(shared.classes, shared.factor_names)
    said = " ".join(assumptions(shared, groups))
    assert "Factor 'shape' has 1 value with a single sample" in said
    assert "Batches are drawn from these 6 samples" in said


def test_factors_that_depend_on_each_other_are_named() -> None:
    twins = np.repeat(np.arange(3), 100)[:, None].repeat(2, axis=1)
    shared = Table(noise(300, 2), twins, factor_names=("x", "y"))
    assert "x and y" in " ".join(assumptions(shared, Groups(shared.classes, shared.factor_names)))


def test_a_factor_that_never_repeats_cannot_be_fixed() -> None:
    with pytest.raises(InputError, match="'time' has a different value in each of these 5 samples"):
        Groups(np.arange(5)[:, None], ("time",))


def test_blocks_cover_every_batch_once_in_bounded_memory() -> None:
    found = list(blocks(10_000, 64, 10))
    assert np.array_equal(np.concatenate([np.arange(10_000)[block] for block in found]), np.arange(10_000))
    assert max(block.stop - block.start for block in found) * 64 * 10 * 8 <= 2**24
    assert len(found) == -(-10_000 // (2**24 // (64 * 10 * 8)))  # as few as fit
    assert len(list(blocks(3, 10**6, 100))) == 3


def test_means_are_taken_over_the_batches_of_each_factor_and_0_where_there_is_none() -> None:
    found = mean_by(np.array([0, 2, 0, 2, 2]), np.array([1.0, 2.0, 2.0, 4.0, 0.0]), 4)
    assert found.tolist() == [1.5, 0, 2, 0]
