"""What every variant promises, over every kind of data it can be made of."""

from __future__ import annotations

import dataclasses
import inspect
import json
from pathlib import Path

import numpy as np
import pytest

from manipulations import keep_untrained
from polariscope.core.errors import InputError
from polariscope.core.options import options_of
from polariscope.core.seeds import generator
from polariscope.data.chain import apply_variants
from polariscope.data.dataset import AbstractDataset
from polariscope.data.dataset import family as datasets
from polariscope.data.rendered.sprites import SpritesDataset
from polariscope.data.sources import load_dataset, load_recorded, parse_source
from polariscope.data.variants import KINDS, NOT_DELEGATED, AbstractVariant, delegate_to_base, family
from polariscope.data.variants.support.selection import AbstractSelection

FACTORS = ("shape", "scale", "orientation", "x", "y")
KIND_OF = {"grey": "images", "colours": "images", "rows": "rows"}
PAIRS = [
    (name, base)
    for name in family
    for base, kind in KIND_OF.items()
    if family.traits(name)["of"] in (kind, "anything")
]


FOLDERS: dict[tuple[int, ...], Path] = {}
"""Manipulations by the shape of the observations that they are for."""


@pytest.fixture(scope="module")
def bases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, AbstractDataset]:
    """Two hundred observations of each kind, in files, some of them twice."""
    folder: Path = tmp_path_factory.mktemp("data")
    sprites = SpritesDataset(image_size=16)
    indices = np.random.default_rng(0).integers(len(sprites), size=180)
    indices = np.concatenate([indices, indices[:20]])
    about = {"factors": sprites.factors(indices), "factor_names": FACTORS}
    about["factor_kinds"] = sprites.factor_kinds
    tints = np.random.default_rng(1).uniform(0.3, 1, size=(200, 3, 1, 1))
    rows = np.random.default_rng(2).normal([0, 5, -300, 2], [1, 0.1, 50, 0], size=(200, 4))
    rows[180:] = rows[:20]
    arrays = {
        "grey": sprites.images(indices),
        "colours": (sprites.images(indices) * tints).astype(np.uint8),
        "rows": rows,
    }
    for name, array in arrays.items():
        np.savez(folder / f"{name}.npz", X=array, **about)
    found = {name: parse_source(f"arrays:{folder / name}.npz") for name in arrays}
    for name, base in found.items():
        FOLDERS[tuple(base.shape)] = folder / f"manipulated-{name}"
        keep_untrained(folder / f"manipulated-{name}", base)
    return found


def make(base: AbstractDataset, name: str) -> AbstractVariant:
    traits = family.traits(name)
    given = traits.get("example", name)
    if traits.get("bare") == "folder":  # its example names a folder that is made for the data
        given = f"{name}:{FOLDERS[tuple(base.shape)]}"
    made = apply_variants(base, given)
    assert isinstance(made, AbstractVariant)
    return made


@pytest.fixture(params=PAIRS, ids="-".join)
def data(request, bases) -> AbstractVariant:
    name, base = request.param
    return make(bases[base], name)


@pytest.fixture
def indices(data) -> np.ndarray:
    return np.random.default_rng(3).integers(len(data), size=40)


@pytest.mark.parametrize("name", list(family))
def test_every_variant_is_a_frozen_documented_dataclass_over_a_base(name):
    concept = family[name]
    assert issubclass(concept, AbstractVariant)
    assert concept.__dataclass_params__.frozen
    assert dataclasses.fields(concept)[0].name == "base"
    assert "base" not in options_of(concept)
    assert family.traits(name)["of"] in KINDS
    assert len(family.summary(name)) > 20
    is_random = "seed" in options_of(concept)
    assert (
        not is_random or "seed" in (concept.__doc__ or "").lower() or issubclass(concept, AbstractSelection)
    )


@pytest.mark.parametrize(("name", "base"), [(name, base) for name in family for base in KIND_OF])
def test_what_it_cannot_be_made_of_is_refused(bases, name, base):
    if (name, base) not in PAIRS:
        with pytest.raises(
            InputError, match=f"variant '{name}' applies to (images|rows), but arrays contains"
        ):
            make(bases[base], name)


def test_shapes_types_and_ranges(data, indices):
    values = data.values(indices)
    assert values.shape == (40, *data.shape)
    assert values.dtype == np.float32
    assert np.isfinite(values).all()
    assert len(data) >= 1
    if data.is_unit_interval:
        assert values.min() >= 0
        assert values.max() <= 1
    if len(data.shape) == 3:
        images = data.images(indices)
        assert images.dtype == np.uint8
        np.testing.assert_array_equal(values, images.astype(np.float32) / np.float32(255))
    else:
        with pytest.raises(InputError, match="not images; use values"):
            data.images(indices)


def test_observations_do_not_depend_on_order_repetition_or_company(data, indices):
    values = data.values(indices)
    np.testing.assert_array_equal(data.values(indices[::-1]), values[::-1])
    np.testing.assert_array_equal(data.values(np.repeat(indices, 2)), np.repeat(values, 2, axis=0))
    np.testing.assert_array_equal(np.concatenate([data.values(int(index)) for index in indices]), values)
    assert data.values([]).shape == (0, *data.shape)


def test_callers_cannot_change_the_dataset(data, indices):
    before = data.values(indices)
    data.values(indices)[:] = -1
    data.factors(indices)[:] = -1
    np.testing.assert_array_equal(data.values(indices), before)
    assert (data.factors(indices) != -1).any()


def test_it_is_recorded_and_restored(data, indices):
    record = json.loads(json.dumps(data.describe(), allow_nan=False))
    again = load_recorded(record)
    assert again.describe() == data.describe()
    assert again.fingerprint == data.fingerprint
    np.testing.assert_array_equal(again.values(indices), data.values(indices))
    np.testing.assert_array_equal(again.factors(indices), data.factors(indices))


def test_its_fingerprint_differs_from_the_bases_and_between_options(data):
    assert data.fingerprint != data.base.fingerprint
    others = {"seed": 1, "n": 49, "spread": 0.3, "epsilon": 0.2, "probability": 0.2, "fill": 0.5}
    for name in others.keys() & options_of(type(data)).keys():
        changed = dataclasses.replace(data, **{name: others[name]})
        assert changed.fingerprint != data.fingerprint, name


def test_variants_nest(data, bases):
    twice = apply_variants(data, ["subset:n=20", "unique"])
    kept = np.arange(len(twice))
    below = twice.base.rows[twice.rows[kept]]
    np.testing.assert_array_equal(twice.values(kept), data.values(below))
    np.testing.assert_array_equal(twice.factors(kept), data.factors(below))
    np.testing.assert_array_equal(twice.ids(kept), data.ids(below))
    assert [each["name"] for each in twice.describe()["variants"]][-2:] == ["subset", "unique"]
    assert load_recorded(twice.describe()).fingerprint == twice.fingerprint
    assert twice.root is data.root


def test_it_can_be_made_of_a_variant(data):
    name = family.name_of(data)
    below = apply_variants(data.base, "subset:n=100")
    over = make(below, name)
    assert over.base is below
    assert over.factors([0]).shape == (1, 5)
    assert over.fingerprint != data.fingerprint


def test_factors_and_ids_are_those_of_the_observations(data, indices):
    rows = data.rows[indices] if isinstance(data, AbstractSelection) else indices
    np.testing.assert_array_equal(data.factors(indices), data.base.factors(rows))
    np.testing.assert_array_equal(data.ids(indices), data.base.ids(rows))
    if isinstance(data, AbstractSelection):
        np.testing.assert_array_equal(data.values(indices), data.base.values(rows))


def test_all_that_it_does_not_change_is_the_bases(data):
    for name in vars(AbstractDataset):
        if name.startswith("_") or name in NOT_DELEGATED:
            continue
        home = next(kind for kind in type(data).__mro__ if name in vars(kind))
        assert home is not AbstractDataset, f"{name} would be answered by the default, not by the base"
        if home is AbstractVariant and isinstance(vars(AbstractVariant)[name], type(delegate_to_base("x"))):
            assert getattr(data, name) == getattr(data.base, name), name


def test_what_others_add_to_datasets_is_delegated_too():
    """The names are read from the class, so a new one is the base's without a change here."""
    names = {name for name in vars(AbstractDataset) if not name.startswith("_")} - {*NOT_DELEGATED}
    assert names <= set(vars(AbstractVariant))
    methods = {
        name
        for name in names
        if inspect.isfunction(vars(AbstractDataset)[name])
        and "indices" in inspect.signature(vars(AbstractDataset)[name]).parameters
    }
    assert {"images", "values", "factors", "ids"} <= methods <= set(vars(AbstractSelection))


def test_inverse_goes_back_to_the_units_of_the_data(data, indices):
    if type(data).is_change_of_units:
        back, before = data.inverse(data.values(indices)), data.base.values(indices)
        np.testing.assert_allclose(back, before, rtol=1e-5, atol=1e-5)
    else:
        np.testing.assert_array_equal(data.inverse(data.values(indices)), data.values(indices))


@pytest.mark.parametrize(
    ("wrong", "words"),
    [([-1], "must lie in 0 … "), ([2**40], "must lie in 0 … "), ([0.5], "flat list of integers")],
)
def test_indices_that_do_not_exist_are_refused(data, wrong, words):
    for ask in (data.values, data.factors):
        with pytest.raises(InputError, match=words):
            ask(wrong)


@pytest.mark.parametrize("name", ["colour", "noisy", "background"])
@pytest.mark.parametrize("source", [name for name in datasets if "original" in datasets.traits(name)])
def test_nuisances_apply_to_every_rendered_look_alike(source, name):
    base = load_dataset(source, image_size=12)
    data = apply_variants(base, name)
    indices = generator(0, "look-alikes", source).integers(len(base), size=6)
    images = data.images(indices)
    assert images.shape == (6, 3, 12, 12)
    np.testing.assert_array_equal(np.concatenate([data.images([index]) for index in indices]), images)
    np.testing.assert_array_equal(data.factors(indices), base.factors(indices))
    assert (images != base.images(indices)).any(axis=(1, 2, 3)).all()
