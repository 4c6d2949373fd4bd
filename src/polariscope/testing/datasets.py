"""Contract of every dataset that can be built without a file."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Collection, Sequence
from typing import Any, ClassVar

import numpy as np
import pytest

from polariscope.core.errors import InputError
from polariscope.core.options import options_of
from polariscope.core.seeds import generator
from polariscope.data.dataset import AbstractDataset, AbstractGridDataset, family
from polariscope.data.sources import load_dataset, load_recorded
from polariscope.testing.contract import AbstractContract, each


def check_observations(data: AbstractDataset, indices: np.ndarray) -> None:
    """Check the shape, type and range of observations, and that images are the same values as bytes.

    :param data: the dataset.
    :param indices: indices of some observations.
    """
    values = data.values(indices)
    assert values.shape == (len(indices), *data.shape)
    assert values.dtype == np.float32
    assert np.isfinite(values).all()
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


class DatasetContract(AbstractContract):
    """Contract of every dataset that can be built without a file."""

    need_options: ClassVar[Sequence[str]] = ()
    """Names of members that cannot be built without options, such as a file; only their classes are tested."""
    decided_by_files: ClassVar[Collection[str]] = ()
    """Names of members whose fingerprint depends on files, not on numeric settings."""

    @pytest.fixture
    def data(self, name: str) -> AbstractDataset:
        """Return the dataset with its defaults."""
        return load_dataset(name)

    @pytest.fixture
    def indices(self, data: AbstractDataset) -> np.ndarray:
        """Return indices of some observations, with repetitions."""
        return generator(0, "contract").integers(len(data), size=50)

    @each("name", lambda contract: [*contract.names, *contract.need_options])
    def test_every_dataset_is_a_frozen_documented_dataclass(self, name: str) -> None:
        concept = family[name]
        assert issubclass(concept, AbstractDataset)
        assert concept.__dataclass_params__.frozen
        assert len(family.summary(name)) > 20
        for option in options_of(concept).values():
            assert option.help, f"{name}.{option.name} has no docstring"

    def test_shapes_and_types(self, data: AbstractDataset, indices: np.ndarray) -> None:
        assert len(data) > 0
        assert len(data.shape) in (1, 3)
        assert data.n_features == math.prod(data.shape)
        check_observations(data, indices)

    def test_observations_do_not_depend_on_order_repetition_or_company(
        self, data: AbstractDataset, indices: np.ndarray
    ) -> None:
        values = data.values(indices)
        np.testing.assert_array_equal(data.values(indices[::-1]), values[::-1])
        np.testing.assert_array_equal(data.values(np.repeat(indices, 2)), np.repeat(values, 2, axis=0))
        np.testing.assert_array_equal(np.concatenate([data.values(int(index)) for index in indices]), values)
        np.testing.assert_array_equal(load_dataset(data.name).values(indices), values)
        assert data.values([]).shape == (0, *data.shape)

    def test_callers_cannot_change_the_dataset(self, data: AbstractDataset, indices: np.ndarray) -> None:
        before = data.values(indices)
        data.values(indices)[:] = -1
        if data.factor_names:
            data.factors(indices)[:] = -1
            assert (data.factors(indices) != -1).any()
        np.testing.assert_array_equal(data.values(indices), before)

    def test_factors_match_their_names_sizes_and_kinds(
        self, data: AbstractDataset, indices: np.ndarray
    ) -> None:
        assert len(data.factor_names) == len(data.factor_sizes) == len(data.factor_kinds)
        if not data.factor_names:
            with pytest.raises(InputError, match="has no known factors"):
                data.factors(indices)
            return
        factors = data.factors(indices)
        assert factors.shape == (50, len(data.factor_names))
        assert len(set(data.factor_names)) == len(data.factor_names)
        assert np.issubdtype(factors.dtype, np.floating) == ("continuous" in data.factor_kinds)
        for size, kind, column in zip(data.factor_sizes, data.factor_kinds, factors.T, strict=True):
            assert (size == 0) == (kind == "continuous")
            if size:
                assert column.min() >= 0
                assert column.max() < size
        np.testing.assert_array_equal(data.factors(indices[::-1]), factors[::-1])

    def test_grids_go_from_indices_to_factors_and_back(
        self, data: AbstractDataset, indices: np.ndarray
    ) -> None:
        if not isinstance(data, AbstractGridDataset):
            with pytest.raises(InputError, match="not a full grid"):
                data.index_of([[0] * max(1, len(data.factor_names))])
            return
        assert len(data) == math.prod(data.factor_sizes)
        np.testing.assert_array_equal(data.index_of(data.factors(indices)), indices)
        ends = data.factors([0, len(data) - 1])
        np.testing.assert_array_equal(
            ends, [np.zeros(len(data.factor_sizes)), np.array(data.factor_sizes) - 1]
        )
        with pytest.raises(InputError, match=f"factor '{data.factor_names[0]}' must lie in 0"):
            data.index_of([[data.factor_sizes[0]] + [0] * (len(data.factor_sizes) - 1)])
        with pytest.raises(InputError, match="factors must be integers of shape"):
            data.index_of([[0]])

    def test_the_record_makes_the_dataset_again(self, data: AbstractDataset, indices: np.ndarray) -> None:
        record = json.loads(json.dumps(data.describe(), allow_nan=False))
        again = load_recorded(record)
        assert again.describe() == data.describe()
        assert again.fingerprint == data.fingerprint
        np.testing.assert_array_equal(again.values(indices), data.values(indices))

    def test_fingerprint_changes_with_the_settings(self, data: AbstractDataset) -> None:
        assert dataclasses.is_dataclass(data)
        changed = 0
        for field in dataclasses.fields(data):
            value = getattr(data, field.name)
            if type(value) in (int, float):
                other = dataclasses.replace(data, **{field.name: value + 1})
                assert other.fingerprint != data.fingerprint
                changed += 1
        # The fingerprint of originals depends on their files, which other tests check; some data have no settings.
        assert changed or data.name in self.decided_by_files or not dataclasses.fields(data)

    @pytest.mark.parametrize(
        ("wrong", "message"),
        [
            ([-1], "must lie in 0 … "),
            ([2**40], "must lie in 0 … "),
            ([0.5], "flat list of integers"),
            ([[0]], "flat list"),
        ],
    )
    def test_indices_that_do_not_exist_are_refused(
        self, data: AbstractDataset, wrong: list[Any], message: str
    ) -> None:
        for read in (data.values, data.factors):
            with pytest.raises(InputError, match=message):
                read(wrong)
