"""Variants by name, and what is restored of them."""

from __future__ import annotations

import numpy as np
import pytest

from polariscope.core.errors import InputError
from polariscope.data.chain import apply_variants, parse_variant, restore
from polariscope.data.own.arrays import from_arrays
from polariscope.data.rendered.sprites import SpritesDataset
from polariscope.data.sources import load_dataset, load_recorded

SPRITES = SpritesDataset(image_size=16)
ROWS = np.random.default_rng(0).normal(5, 3, size=(40, 3))


def test_the_first_variant_is_innermost():
    data = load_dataset("sprites", image_size=16, variants=["colour", "grey"])
    assert data.shape == (1, 16, 16)
    assert apply_variants(SPRITES, ["grey", "colour"]).shape == (3, 16, 16)
    assert [each["name"] for each in data.describe()["variants"]] == ["colour", "grey"]
    assert data.name == "sprites"


def test_no_variants_leave_the_dataset_as_it_is():
    assert apply_variants(SPRITES) is SPRITES
    assert load_dataset("sprites", image_size=16, variants=[]) == SPRITES


def test_the_command_lines_spelling_gives_the_same():
    written = apply_variants(SPRITES, "pixel-noise:epsilon=0.2,seed=4")
    assert written == apply_variants(SPRITES, [{"name": "pixel-noise", "epsilon": 0.2, "seed": 4}])
    assert parse_variant("cropped:image-size=8") == {"name": "cropped", "image_size": "8"}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("color", "no variant named 'color'.*Did you mean 'colour'"),
        ("colour:sead=1", "no option of variant 'colour' named 'sead'.*Did you mean 'seed'"),
        ("colour:seed", "variant must be NAME or NAME:OPTION=VALUE"),
        ("colour:seed=1,seed=2", "variant must set 'seed' only once"),
        ("colour:seed=one", "option seed of variant 'colour' must be an integer, got 'one'"),
        ("cropped", "variant 'cropped' requires image_size"),
        ([3], "variants must be names, or mappings"),
        ([{"seed": 1}], "variants must be names, or mappings"),
        (SPRITES, "variants must be names, or mappings"),
    ],
)
@pytest.mark.usefixtures("unannotated")
def test_what_is_no_variant_is_refused_with_a_suggestion(given, words):
    with pytest.raises(InputError, match=words):
        apply_variants(SPRITES, given)


@pytest.mark.usefixtures("unannotated")
def test_shorthands_come_last():
    data = apply_variants(ROWS, "subset:n=10", standardise=True)
    assert [each["name"] for each in data.variants()] == ["subset", "standardised"]
    np.testing.assert_allclose(data.values(np.arange(10)).std(axis=0), 1, rtol=1e-5)
    assert apply_variants(ROWS, scale=True).is_unit_interval
    with pytest.raises(InputError, match="standardise and scale both rescale"):
        apply_variants(ROWS, standardise=True, scale=True)
    with pytest.raises(InputError, match=r"scale must be True or False, got 2\.0; put the part in front"):
        apply_variants(ROWS, scale=2.0)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="'standardised' applies to rows, but sprites contains images"):
        apply_variants(SPRITES, standardise=True)


def test_records_are_restored_and_changed_data_refused():
    data = apply_variants(SPRITES, ["subset:n=100", "colour"])
    assert load_recorded(data.describe()) == data


def test_units_of_training_are_those_of_other_data():
    trained = apply_variants(ROWS, ["subset:n=20"], standardise=True)
    other = restore(trained.describe(), from_arrays(ROWS + 1))
    assert len(other) == 40
    np.testing.assert_allclose(other.inverse(other.values([0])), ROWS[:1] + 1, rtol=1e-5)
    mean = np.array(trained.variants()[-1]["mean"])
    deviation = np.array(trained.variants()[-1]["deviation"])
    np.testing.assert_allclose(other.values([3])[0], (ROWS[3] + 1 - mean) / deviation, rtol=1e-4, atol=1e-5)


def test_the_same_arrays_from_memory_get_all_variants():
    trained = apply_variants(ROWS, ["subset:n=20"], standardise=True)
    assert restore(trained.describe(), from_arrays(ROWS)).fingerprint == trained.fingerprint


def test_data_with_variants_of_their_own_and_clean_data_stay_as_they_are():
    noisy = apply_variants(SPRITES, "pixel-noise")
    assert restore(noisy.describe(), SPRITES) is SPRITES
    assert restore(noisy.describe(), noisy) is noisy
    assert restore(SPRITES.describe(), SPRITES) is SPRITES
