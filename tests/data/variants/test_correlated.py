from __future__ import annotations

import numpy as np
import pytest

from polariscope.core.errors import InputError
from polariscope.data.own.arrays import from_arrays
from polariscope.data.rendered.sprites import SpritesDataset
from polariscope.data.variants.correlated import CorrelatedVariant

SPRITES = SpritesDataset(image_size=16)


def joint(data: CorrelatedVariant, first: int, second: int) -> np.ndarray:
    factors = data.factors(np.arange(len(data)))
    table = np.zeros((data.factor_sizes[first], data.factor_sizes[second]))
    np.add.at(table, (factors[:, first], factors[:, second]), 1)
    return table / len(data)


def test_the_joint_distribution_is_that_of_the_equation():
    data = CorrelatedVariant(SPRITES, "scale", "x", spread=0.2, n=200_000)
    i, j = np.meshgrid(np.arange(6) / 5, np.arange(32) / 31, indexing="ij")
    p = np.exp(-((i - j) ** 2) / (2 * 0.2**2))
    p /= p.sum()
    found = joint(data, 1, 3)
    assert (np.abs(found - p) < 5.5 * np.sqrt(p * (1 - p) / len(data)) + 1e-12).all()


def test_other_factors_stay_uniform_and_independent():
    data = CorrelatedVariant(SPRITES, "scale", "x", spread=0.2, n=100_000)
    factors = data.factors(np.arange(len(data)))
    assert np.corrcoef(factors[:, 1], factors[:, 3])[0, 1] > 0.7
    for other in (0, 2, 4):
        assert abs(np.corrcoef(factors[:, 1], factors[:, other])[0, 1]) < 5 / np.sqrt(len(data))
        share = np.bincount(factors[:, other]) / len(data)
        p = 1 / SPRITES.factor_sizes[other]
        assert np.abs(share - p).max() < 5 * np.sqrt(p / len(data))


def test_a_wide_band_changes_nothing_and_a_narrow_one_keeps_the_diagonal():
    np.testing.assert_allclose(
        CorrelatedVariant(SPRITES, "x", "y", spread=1e6).probabilities, 1 / len(SPRITES)
    )
    narrow = CorrelatedVariant(SPRITES, "x", "y", spread=1e-6, n=1000).factors(np.arange(1000))
    np.testing.assert_array_equal(narrow[:, 3], narrow[:, 4])


def test_what_a_number_draws_does_not_depend_on_how_many_there_are():
    few, many = (CorrelatedVariant(SPRITES, "x", "y", n=n).rows for n in (10, 1000))
    np.testing.assert_array_equal(few, many[:10])
    assert len(CorrelatedVariant(SPRITES, "x", "y")) == len(SPRITES)


def test_an_observation_that_may_be_there_twice_has_no_index():
    with pytest.raises(InputError, match="occur several times here, so factors do not determine an index"):
        CorrelatedVariant(SPRITES, "x", "y", n=100).index_of([[0, 0, 0, 0, 0]])


def test_factors_that_cannot_be_correlated_are_refused():
    with pytest.raises(InputError, match="no factor of sprites named 'colour'"):
        CorrelatedVariant(SPRITES, "colour", "x")
    with pytest.raises(InputError, match="must be two factors, got 'x' twice"):
        CorrelatedVariant(SPRITES, "x", "x")
    table = from_arrays(np.zeros((3, 2)), [[0.5, 1], [0.7, 2], [0.9, 3]], factor_names=["a", "b"])
    with pytest.raises(InputError, match="factor 'a' must have two values or more"):
        CorrelatedVariant(table, "a", "b")
