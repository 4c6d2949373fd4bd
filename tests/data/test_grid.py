"""Combinations of factors are found where they are."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from polariscope.core.errors import InputError
from polariscope.data import grid as grid_module
from polariscope.data.grid import FactorGrid
from polariscope.data.own.arrays import ArraysDataset, from_arrays


def arrays_of(factors: list[list[int]] | np.ndarray) -> ArraysDataset:
    return from_arrays(np.zeros((len(factors), 2)), np.array(factors))


def test_arrays_that_hold_every_combination_once_are_found_by_their_factors_in_any_order():
    full = np.stack(np.meshgrid([3, 5, 9], [0, 1], [-1, 4], indexing="ij"), axis=-1).reshape(-1, 3)
    data = arrays_of(np.random.default_rng(0).permutation(full))
    assert FactorGrid.of(data).is_full
    indices = np.arange(len(data))
    np.testing.assert_array_equal(data.index_of(data.factors(indices)), indices)
    assert data.index_of([3, 1, 4]).shape == (1,)


def test_a_part_of_a_grid_finds_what_it_has_and_names_what_it_has_not():
    data = arrays_of([[0, 0], [1, 1], [0, 1], [1, 1]])
    assert not FactorGrid.of(data).is_full
    np.testing.assert_array_equal(data.index_of([[0, 1], [0, 0]]), [2, 0])
    with pytest.raises(InputError, match="got factor-1 1, factor-2 0, which no observation has"):
        data.index_of([1, 0])
    with pytest.raises(InputError, match="got factor-1 1, factor-2 1, which 2 observations have"):
        data.index_of([1, 1])
    with pytest.raises(
        InputError, match="factor 'factor-2' must have a value that occurs in the data, got 7"
    ):
        data.index_of([1, 7])
    with pytest.raises(InputError, match=r"integers of shape \(sample, 2\)"):
        data.index_of([[0.5, 1]])


def test_values_from_0_are_their_own_codes_and_others_are_ranked():
    grid = FactorGrid.of(arrays_of([[0, 10], [1, 30], [2, 20]]))
    np.testing.assert_array_equal(grid.codes, [[0, 0], [1, 2], [2, 1]])
    assert grid.sizes == (3, 3)


@pytest.mark.parametrize("tries", [1, 32])
def test_one_that_agrees_is_any_of_those_a_scan_finds_with_the_same_chance(tries, monkeypatch):
    monkeypatch.setattr(grid_module, "TRIES", tries)  # 1: mostly from the list of all that agree
    factors = np.random.default_rng(0).integers(0, [3, 4, 2], size=(60, 3))
    grid = FactorGrid.of(arrays_of(factors))
    for kept in ([True, False, False], [True, True, False], [True, True, True]):
        draws = np.repeat(grid.codes[7:8], 5000, axis=0), np.tile(kept, (5000, 1))
        counts = np.bincount(grid.sample_matching(*draws, np.random.default_rng(1)), minlength=60)
        agree = (factors[:, kept] == factors[7, kept]).all(axis=1)
        assert (counts[~agree] == 0).all()
        assert agree.sum() == 1 or stats.chisquare(counts[agree]).pvalue > 1e-6


def test_a_cell_gives_each_of_its_observations_the_same_chance():
    grid = FactorGrid.of(arrays_of([[0, 0], [1, 1], [0, 0], [0, 1], [0, 0]]))
    cells = grid.cells(np.zeros((30_000, 2), int))
    counts = np.bincount(grid.sample_from(cells, np.random.default_rng(0)), minlength=5)
    assert (counts[[1, 3]] == 0).all()
    assert (np.abs(counts[[0, 2, 4]] / 30_000 - 1 / 3) < 5 * np.sqrt(2 / 9 / 30_000)).all()
    np.testing.assert_array_equal(grid.cells(np.array([[1, 0], [1, 1]])), [-1, 2])


def test_cells_that_share_factors_are_counted():
    grid = FactorGrid.of(arrays_of([[0, 1], [0, 2], [1, 1], [1, 1]]))
    np.testing.assert_array_equal(grid.cell_codes, [[0, 0], [0, 1], [1, 0]])
    np.testing.assert_array_equal(grid.cells_sharing(np.array([True, False])), [2, 2, 1])
    np.testing.assert_array_equal(grid.cells_sharing(np.array([False, False])), [3, 3, 3])


def test_continuous_factors_form_no_grid():
    with pytest.raises(InputError, match="arrays has continuous factors"):
        FactorGrid.of(from_arrays(np.zeros((3, 2)), [0.5, 1.5, 2.5]))
    with pytest.raises(InputError, match="not a full grid of factors"):
        from_arrays(np.zeros((3, 2)), [0.5, 1.5, 2.5]).index_of([[0]])
    wide = np.stack([np.arange(2000)] * 6, axis=1)
    with pytest.raises(InputError, match="more combinations than can be numbered"):
        FactorGrid.of(arrays_of(wide))
