"""Contract of every variant, applied to each kind of data."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pytest

from polariscope.core.errors import InputError
from polariscope.core.options import options_of
from polariscope.data.chain import apply_variants
from polariscope.data.dataset import AbstractDataset
from polariscope.data.rendered.sprites import SpritesDataset
from polariscope.data.sources import load_recorded, parse_source
from polariscope.data.variants import KINDS, NOT_DELEGATED, AbstractVariant, delegate_to_base, family
from polariscope.testing.contract import AbstractContract, each
from polariscope.testing.datasets import check_observations

FACTORS = ("shape", "scale", "orientation", "x", "y")
Bases: TypeAlias = "dict[str, AbstractDataset]"
"""Data of each kind by name."""
Pair: TypeAlias = "tuple[str, str]"
"""Name of a member, and kind of data."""
KIND_OF = {"grey": "images", "colours": "images", "rows": "rows"}


def with_every_base(contract: AbstractContract) -> list[tuple[str, str]]:
    """Return every member with every kind of data."""
    return [(name, base) for name in contract.names for base in KIND_OF]


def pairs(contract: AbstractContract) -> list[tuple[str, str]]:
    """Return every member with the data that it applies to."""
    return [
        (name, base)
        for name, base in with_every_base(contract)
        if family.traits(name)["of"] in (KIND_OF[base], "anything")
    ]


class VariantContract(AbstractContract):
    """Contract of every variant."""

    @pytest.fixture(scope="class")
    @classmethod
    def bases(cls, tmp_path_factory: pytest.TempPathFactory) -> Bases:
        """Write two hundred observations of each kind to files, some of them twice, and open them."""
        folder: Path = tmp_path_factory.mktemp("data")
        sprites = SpritesDataset(image_size=16)
        indices = np.random.default_rng(0).integers(len(sprites), size=180)
        # Some observations occur twice, so the variant 'unique' changes the data.
        indices = np.concatenate([indices, indices[:20]])
        about: dict[str, Any] = {"factors": sprites.factors(indices), "factor_names": FACTORS}
        about["factor_kinds"] = sprites.factor_kinds
        tints = np.random.default_rng(1).uniform(0.3, 1, size=(200, 3, 1, 1))
        # The last feature is constant.
        rows = np.random.default_rng(2).normal([0, 5, -300, 2], [1, 0.1, 50, 0], size=(200, 4))
        rows[180:] = rows[:20]
        arrays = {
            "grey": sprites.images(indices),
            "colours": (sprites.images(indices) * tints).astype(np.uint8),
            "rows": rows,
        }
        for name, array in arrays.items():
            np.savez(folder / f"{name}.npz", X=array, **about)
        return {name: parse_source(f"arrays:{folder / name}.npz") for name in arrays}

    def make(self, base: AbstractDataset, name: str) -> AbstractVariant:
        """Return a variant of a dataset, with the options of its ``example``.

        :param base: the dataset.
        :param name: name of the member.
        """
        made = apply_variants(base, family.traits(name).get("example", name))
        assert isinstance(made, AbstractVariant)
        return made

    def test_every_variant_is_a_frozen_documented_dataclass_over_a_base(self, name: str) -> None:
        concept = family[name]
        assert issubclass(concept, AbstractVariant)
        assert concept.__dataclass_params__.frozen
        assert dataclasses.fields(concept)[0].name == "base"
        assert "base" not in options_of(concept)
        assert family.traits(name)["of"] in KINDS
        assert len(family.summary(name)) > 20
        is_random = "seed" in options_of(concept)
        assert not is_random or "seed" in (concept.__doc__ or "").lower() or hasattr(concept, "rows")

    @each("name, base", with_every_base)
    def test_what_it_cannot_be_made_of_is_refused(self, bases: Bases, name: str, base: str) -> None:
        if (name, base) not in pairs(self):
            with pytest.raises(
                InputError, match=f"variant '{name}' applies to (images|rows), but arrays contains"
            ):
                self.make(bases[base], name)

    @each("pair", pairs, ids="-".join)
    def test_shapes_types_and_ranges(self, pair: Pair, bases: Bases) -> None:
        data = self.make(bases[pair[1]], pair[0])
        indices = np.random.default_rng(3).integers(len(data), size=40)
        assert len(data) >= 1
        check_observations(data, indices)

    @each("pair", pairs, ids="-".join)
    def test_observations_do_not_depend_on_order_repetition_or_company(
        self, pair: Pair, bases: Bases
    ) -> None:
        data = self.make(bases[pair[1]], pair[0])
        indices = np.random.default_rng(3).integers(len(data), size=40)
        values = data.values(indices)
        np.testing.assert_array_equal(data.values(indices[::-1]), values[::-1])
        np.testing.assert_array_equal(data.values(np.repeat(indices, 2)), np.repeat(values, 2, axis=0))
        np.testing.assert_array_equal(np.concatenate([data.values(int(index)) for index in indices]), values)
        assert data.values([]).shape == (0, *data.shape)

    @each("pair", pairs, ids="-".join)
    def test_callers_cannot_change_the_dataset(self, pair: Pair, bases: Bases) -> None:
        data = self.make(bases[pair[1]], pair[0])
        indices = np.random.default_rng(3).integers(len(data), size=40)
        before = data.values(indices)
        data.values(indices)[:] = -1
        data.factors(indices)[:] = -1
        np.testing.assert_array_equal(data.values(indices), before)
        assert (data.factors(indices) != -1).any()

    @each("pair", pairs, ids="-".join)
    def test_it_is_recorded_and_restored(self, pair: Pair, bases: Bases) -> None:
        data = self.make(bases[pair[1]], pair[0])
        indices = np.random.default_rng(3).integers(len(data), size=40)
        record = json.loads(json.dumps(data.describe(), allow_nan=False))
        again = load_recorded(record)
        assert again.describe() == data.describe()
        assert again.fingerprint == data.fingerprint
        np.testing.assert_array_equal(again.values(indices), data.values(indices))
        np.testing.assert_array_equal(again.factors(indices), data.factors(indices))

    @each("pair", pairs, ids="-".join)
    def test_its_fingerprint_differs_from_the_bases_and_between_options(
        self, pair: Pair, bases: Bases
    ) -> None:
        data = self.make(bases[pair[1]], pair[0])
        assert data.fingerprint != data.base.fingerprint
        others: dict[str, Any] = {
            "seed": 1,
            "n": 49,
            "spread": 0.3,
            "epsilon": 0.2,
            "probability": 0.2,
            "fill": 0.5,
        }
        for name in others.keys() & options_of(type(data)).keys():
            changed = dataclasses.replace(data, **{name: others[name]})
            assert changed.fingerprint != data.fingerprint, name

    @each("pair", pairs, ids="-".join)
    def test_variants_nest(self, pair: Pair, bases: Bases) -> None:
        data = self.make(bases[pair[1]], pair[0])
        twice: Any = apply_variants(data, ["subset:n=20", "unique"])
        indices = np.arange(len(twice))
        below = twice.base.rows[twice.rows[indices]]
        np.testing.assert_array_equal(twice.values(indices), data.values(below))
        np.testing.assert_array_equal(twice.factors(indices), data.factors(below))
        np.testing.assert_array_equal(twice.ids(indices), data.ids(below))
        assert [each["name"] for each in twice.describe()["variants"]][-2:] == ["subset", "unique"]
        assert load_recorded(twice.describe()).fingerprint == twice.fingerprint
        assert twice.root is data.root

    @each("pair", pairs, ids="-".join)
    def test_it_can_be_made_of_a_variant(self, pair: Pair, bases: Bases) -> None:
        data = self.make(bases[pair[1]], pair[0])
        name = family.name_of(data)
        below = apply_variants(data.base, "subset:n=100")
        over = self.make(below, name)
        assert over.base is below
        assert over.factors([0]).shape == (1, 5)
        assert over.fingerprint != data.fingerprint

    @each("pair", pairs, ids="-".join)
    def test_factors_and_ids_are_those_of_the_observations(self, pair: Pair, bases: Bases) -> None:
        data = self.make(bases[pair[1]], pair[0])
        indices = np.random.default_rng(3).integers(len(data), size=40)
        rows = data.rows[indices] if hasattr(data, "rows") else indices
        np.testing.assert_array_equal(data.factors(indices), data.base.factors(rows))
        np.testing.assert_array_equal(data.ids(indices), data.base.ids(rows))
        if hasattr(data, "rows"):
            np.testing.assert_array_equal(data.values(indices), data.base.values(rows))

    @each("pair", pairs, ids="-".join)
    def test_all_that_it_does_not_change_is_the_bases(self, pair: Pair, bases: Bases) -> None:
        data = self.make(bases[pair[1]], pair[0])
        for name in vars(AbstractDataset):
            if name.startswith("_") or name in NOT_DELEGATED:
                continue
            home = next(kind for kind in type(data).__mro__ if name in vars(kind))
            assert home is not AbstractDataset, (
                f"{name} would be inherited from the default, not taken from the base"
            )
            if home is AbstractVariant and isinstance(
                vars(AbstractVariant)[name], type(delegate_to_base("x"))
            ):
                assert getattr(data, name) == getattr(data.base, name), name

    @each("pair", pairs, ids="-".join)
    def test_inverse_goes_back_to_the_units_of_the_data(self, pair: Pair, bases: Bases) -> None:
        data = self.make(bases[pair[1]], pair[0])
        indices = np.random.default_rng(3).integers(len(data), size=40)
        if type(data).is_change_of_units:
            back, before = data.inverse(data.values(indices)), data.base.values(indices)
            np.testing.assert_allclose(back, before, rtol=1e-5, atol=1e-5)
        else:
            np.testing.assert_array_equal(data.inverse(data.values(indices)), data.values(indices))

    @each("pair", pairs, ids="-".join)
    @pytest.mark.parametrize(
        ("wrong", "message"),
        [([-1], "must lie in 0 … "), ([2**40], "must lie in 0 … "), ([0.5], "flat list of integers")],
    )
    def test_indices_that_do_not_exist_are_refused(
        self, pair: Pair, bases: Bases, wrong: list[int | float], message: str
    ) -> None:
        data = self.make(bases[pair[1]], pair[0])
        for ask in (data.values, data.factors):
            with pytest.raises(InputError, match=message):
                ask(wrong)
