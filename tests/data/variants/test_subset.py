from __future__ import annotations

import numpy as np
import pytest

from polariscope.core.errors import InputError
from polariscope.data.chain import apply_variants
from polariscope.data.own.arrays import from_arrays
from polariscope.data.rendered.sprites import SpritesDataset
from polariscope.data.variants.subset import SubsetVariant

SPRITES = SpritesDataset(image_size=16)


def test_a_number_is_drawn_without_replacement_and_kept_in_order():
    data = SubsetVariant(SPRITES, n=1000, seed=1)
    assert len(data) == 1000
    assert (np.diff(data.rows) > 0).all()
    assert (data.rows != SubsetVariant(SPRITES, n=1000, seed=2).rows).any()
    # Positions are uniform: the mean of 1000 has a standard error of N / √12000.
    assert abs(data.rows.mean() - len(SPRITES) / 2) < 5 * len(SPRITES) / np.sqrt(12_000)


@pytest.mark.parametrize(
    "given",
    [
        "subset:shape=0,x=3-10",
        {"name": "subset", "shape": 0, "x": (3, 10)},
        {"name": "subset", "where": {"shape": 0, "x": "3-10"}},
        {"name": "subset", "where": ["shape=0", "x=3-10"]},
    ],
)
def test_factors_are_written_in_several_ways_for_the_same_subset(given):
    data = apply_variants(SPRITES, given)
    assert len(data) == 6 * 40 * 8 * 32
    factors = data.factors(np.arange(len(data)))
    assert set(factors[:, 0]) == {0}
    assert set(factors[:, 3]) == set(range(3, 11))
    assert data.fingerprint == SubsetVariant(SPRITES, where=("shape=0", "x=3-10")).fingerprint
    assert data.factor_sizes == SPRITES.factor_sizes


def test_several_values_and_a_number_among_those_that_match():
    data = apply_variants(SPRITES, {"name": "subset", "shape": [0, 2], "n": 500})
    factors = data.factors(np.arange(500))
    assert set(factors[:, 0]) == {0, 2}
    assert apply_variants(SPRITES, "subset:shape=0/2,n=500").fingerprint == data.fingerprint


def test_continuous_factors_and_negative_numbers():
    level = np.linspace(-2, 2, 41)
    data = from_arrays(np.zeros((41, 2)), level, factor_names=["level"])
    chosen = apply_variants(data, "subset:level=-1.5--0.5")
    np.testing.assert_allclose(
        chosen.factors(np.arange(len(chosen)))[:, 0], level[(level >= -1.5) & (level <= -0.5)]
    )


def test_factors_give_the_index_where_the_observation_was_chosen():
    data = SubsetVariant(SPRITES, where=("shape=1", "orientation=0-9"))
    every = np.arange(len(data))[::97]
    np.testing.assert_array_equal(data.index_of(data.factors(every)), every)
    with pytest.raises(InputError, match="1 of these 2 observations of sprites are not in the subset"):
        data.index_of([[1, 0, 0, 0, 0], [0, 0, 0, 0, 0]])


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("subset", "requires a number of observations or values of factors"),
        ("subset:n=0", "n must be at least 1"),
        ("subset:n=737281", "n must be at most 737280, the observations of sprites, got 737281"),
        ("subset:shape=0,n=300000", "n must be at most 245760, the observations of sprites with shape 0"),
        ("subset:shape=7", "no observation of sprites has shape 7"),
        ("subset:x=10-3", "no observation of sprites has x 10-3"),
        ("subset:shap=0", "no option of variant 'subset' or factor named 'shap'.*Did you mean 'shape'"),
        ("subset:where=colour", "no factor of sprites named 'colour'"),
        ("subset:x=left", "the values of factor 'x' must be a number, a range such as 3-10"),
        ("subset:where=x", "the values of factor 'x' must be a number"),
    ],
)
def test_subsets_that_make_no_sense_are_refused(given, words):
    with pytest.raises(InputError, match=words):
        apply_variants(SPRITES, given)


def test_the_parts_of_the_base_are_kept_in_its_own_numbers():
    class Divided(SpritesDataset):
        def parts(self) -> dict[str, np.ndarray]:
            return {"train": np.arange(0, 1000), "test": np.arange(1000, 1200)}

    data = SubsetVariant(Divided(image_size=16), where=("shape=0", "scale=0", "orientation=0", "x=31"))
    found = data.parts()
    assert found is not None
    np.testing.assert_array_equal(data.rows[found["train"]], np.arange(31 * 32, 1000))
    np.testing.assert_array_equal(data.rows[found["test"]], np.arange(1000, 1024))
    assert SubsetVariant(SPRITES, n=5).parts() is None
