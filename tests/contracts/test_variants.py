"""Every variant keeps the contract of its family."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

from manipulations import keep_untrained
from polariscope.core.seeds import generator
from polariscope.data.chain import apply_variants
from polariscope.data.dataset import AbstractDataset
from polariscope.data.dataset import family as datasets
from polariscope.data.sources import load_dataset
from polariscope.data.variants import NOT_DELEGATED, AbstractVariant, family
from polariscope.data.variants.support.subsets import AbstractSelection
from polariscope.testing import VariantContract


class TestVariants(VariantContract):
    names = list(family)

    manipulations: ClassVar[Path]

    @pytest.fixture(scope="class", autouse=True)
    @classmethod
    def folder(cls, tmp_path_factory: pytest.TempPathFactory) -> None:
        cls.manipulations = tmp_path_factory.mktemp("manipulations")

    def make(self, base: AbstractDataset, name: str) -> AbstractVariant:
        if family.traits(name).get("bare") != "folder":
            return super().make(base, name)
        folder = self.manipulations / "-".join(map(str, base.shape))
        if not folder.exists():
            keep_untrained(folder, base)
        made = apply_variants(base, f"{name}:{folder}")
        assert isinstance(made, AbstractVariant)
        return made


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
