"""Datasets: observations by index, with their ground-truth factors where these are known.

A dataset is a frozen dataclass whose fields are its options. It answers for any indices, in any order, with
the same values every time, and never needs the whole of itself in memory.
"""

from __future__ import annotations

import abc
import dataclasses
import functools
import math
import types
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float, Int, Shaped, UInt8
from numpy.typing import ArrayLike

from polariscope.analysis.representation import FactorKind
from polariscope.core import files
from polariscope.core.errors import InputError, unknown
from polariscope.core.options import check_options, to_record
from polariscope.core.registry import open_family
from polariscope.data.reading import rows_at_once

if TYPE_CHECKING:
    from polariscope.data.counts import ValueFacts
    from polariscope.data.footprint import Footprint


class AbstractDataset(abc.ABC):
    """Observations by index. A member gives ``shape``, ``__len__`` and one of ``images`` and ``values``.

    ``shape`` of one observation is ``(channel, height, width)`` for images, ``(feature,)`` for flat arrays.
    """

    factor_names: tuple[str, ...] = ()
    factor_sizes: tuple[int, ...] = ()
    """Number of values of each factor; 0 for a continuous one."""
    factor_kinds: tuple[FactorKind, ...] = ()
    factor_classes: Mapping[str, tuple[str, ...]] = types.MappingProxyType({})
    """Names of the classes of factors that were text, by factor."""
    feature_names: tuple[str, ...] = ()
    """Names of the features of flat data; empty where they have none."""
    aside_names: tuple[str, ...] = ()
    """Names of columns that are neither features nor factors, which :meth:`aside_columns` gives."""
    choices: tuple[str, ...] = ()
    """What was decided for the user when the data were read, in a few words each: where the channels are …"""
    licence: str = ""
    """Under what terms the data may be used; empty where they are the user's or made by this package."""
    citation: str = ""
    """Key of the work to cite, which ``polariscope cite`` prints."""
    note: str = ""
    """What to know about the data before using them."""
    scratch_bytes: int = 0
    """Memory of temporary arrays while a batch of 64 is made, beyond the batch itself: what drawing needs."""

    @property
    @abc.abstractmethod
    def shape(self) -> tuple[int, ...]: ...

    @abc.abstractmethod
    def __len__(self) -> int: ...

    def images(self, indices: ArrayLike | int) -> UInt8[np.ndarray, "sample channel height width"]:
        """Images as bytes 0–255. Flat data have none.

        :param indices: numbers of the observations, from 0.
        """
        if len(self.shape) != 3:
            raise InputError(
                problem=f"{self.name} holds flat rows of {self.shape[0]} features, no images",
                remedy="use values()",
            )
        return np.round(self.values(indices) * 255).astype(np.uint8)

    def values(self, indices: ArrayLike | int) -> Float[np.ndarray, "sample *shape"]:
        """What a network is fed: float32; images scaled to [0, 1], flat rows as they are.

        The same for the same index every time: small data are read once and cached.

        :param indices: numbers of the observations, from 0.
        """
        return self.images(indices).astype(np.float32) / np.float32(255)

    def factors(self, indices: ArrayLike | int) -> Shaped[np.ndarray, "sample factor"]:
        """Ground-truth factors: integers, or floats when a factor is continuous.

        :param indices: numbers of the observations, from 0.
        """
        raise InputError(
            problem=f"{self.name} has no known factors",
            remedy="give it factors when you make it",
        )

    def index_of(self, factors: ArrayLike) -> Int[np.ndarray, " sample"]:
        """Where observations with these factor values are.

        :param factors: factor values, (sample, factor).
        """
        raise InputError(
            problem=f"{self.name} is not a full grid of factors, so factors do not give an index"
        )

    def ids(self, indices: ArrayLike | int) -> Shaped[np.ndarray, " sample"]:
        """What identifies each of these observations: its number, or the name of its row or file.

        :param indices: numbers of the observations, from 0.
        """
        return self.check_indices(indices)

    def parts(self) -> dict[str, Int[np.ndarray, " _"]] | None:
        """The dataset's own split: indices under "train", and "validation" and "test" where it has them. None: none."""
        return None

    def groups(self, indices: ArrayLike | int) -> Shaped[np.ndarray, " sample"] | None:
        """Which group each of these observations belongs to, such as a patient; None: there are no groups.

        Observations of a group stay together when the data are split.

        :param indices: numbers of the observations, from 0.
        """
        return None

    def aside_columns(self, indices: ArrayLike | int) -> dict[str, Shaped[np.ndarray, " sample"]]:
        """Columns that are neither features nor factors, for these observations: what they are split by.

        :param indices: numbers of the observations, from 0.
        """
        self.check_indices(indices)
        return {}

    def column(self, name: str) -> Shaped[np.ndarray, " sample"]:
        """The values of a factor, or of a column that was set aside, for every observation.

        They are in words where the classes have names.

        :param name: of the factor or column.
        """
        if name in self.aside_names:
            return self.aside_columns(np.arange(len(self)))[name]
        if name not in self.factor_names:
            known = (*self.factor_names, *self.aside_names)
            raise unknown("column", name, known, f"These are the factors and other columns of {self.name}.")
        values = self.factors(np.arange(len(self)))[:, self.factor_names.index(name)]
        classes = self.factor_classes.get(name)
        return values if classes is None else np.array(classes)[values.astype(np.int64)]

    def inverse(self, values: Float[np.ndarray, "*batch"]) -> Float[np.ndarray, "*batch"]:
        """From what a network sees, or makes, to the units of who owns the data; here they are the same.

        :param values: observations, along the last axes, as :meth:`values` gives them.
        """
        return values

    def check_indices(self, indices: ArrayLike | int) -> Int[np.ndarray, " sample"]:
        """Indices as an integer array within range; anything else is refused.

        :param indices: numbers of observations.
        """
        array = np.atleast_1d(np.asarray(indices))
        if array.size == 0:
            return np.zeros(0, dtype=np.int64)
        if array.ndim != 1 or not np.issubdtype(array.dtype, np.integer):
            raise InputError(
                "indices", "be a flat list of integers", got=f"{array.dtype} of shape {array.shape}"
            )
        if array.min() < 0 or array.max() >= len(self):
            raise InputError(
                "indices", f"lie in 0 … {len(self) - 1} for {self.name}", got=f"{array.min()} … {array.max()}"
            )
        return array.astype(np.int64, copy=False)

    @property
    def name(self) -> str:
        return family.name_of(self)

    @property
    def n_features(self) -> int:
        """Number of values in one observation."""
        return math.prod(self.shape)

    @property
    def is_unit_interval(self) -> bool:
        """Whether every value lies in [0, 1], as a Bernoulli likelihood needs."""
        return len(self.shape) == 3

    @property
    def is_counts(self) -> bool:
        """Whether every value is known to be a whole number from 0, as a likelihood of counts needs."""
        return False

    def stored_values(self) -> Iterator[Shaped[np.ndarray, "..."]]:
        """Yield every value, some at a time; the zeros that a sparse matrix leaves out can be missing."""
        rows = rows_at_once(self.n_features)
        for first in range(0, len(self), rows):
            yield self.values(np.arange(first, min(first + rows, len(self))))

    @functools.cached_property
    def value_facts(self) -> ValueFacts:
        """Facts about the values that decide which likelihood suits them; measured once."""
        from polariscope.data.counts import measure_values

        return measure_values(self)

    def footprint(self) -> Footprint:
        """Memory and disk that the dataset takes: the arrays it holds and a batch; what lies at its ``path``."""
        from polariscope.data.footprint import Footprint, batch_bytes, disk_bytes, held_bytes

        self.values([0])  # so what is made at first use exists
        held = held_bytes(tuple(vars(self).values()))
        words = (
            "Its arrays are held in memory."
            if held > 2**20
            else "Observations are made when they are asked for."
        )
        disk = disk_bytes(getattr(self, "path", None))
        return Footprint(held + batch_bytes(self.n_features) + self.scratch_bytes, disk, words)

    def describe(self) -> dict[str, Any]:
        """JSON record from which :func:`polariscope.data.sources.load_recorded` makes the dataset again."""
        assert dataclasses.is_dataclass(self)
        return {"name": self.name, **to_record(self)}

    @classmethod
    def from_record(cls, name: str, options: Mapping[str, Any]) -> AbstractDataset:
        """Make the dataset again from the options in its record, which an earlier version might have written.

        :param name: the name of this member of the family.
        :param options: the options by name.
        """
        return cls(**check_options(f"dataset {name!r}", cls, options))

    @property
    def fingerprint(self) -> str:
        """Hash of what the dataset holds: equal fingerprints, equal observations."""
        return files.digest(self.describe())


class AbstractGridDataset(AbstractDataset):
    """Every combination of discrete factors once, the last factor varying fastest."""

    def __len__(self) -> int:
        return math.prod(self.factor_sizes)

    def factors(self, indices: ArrayLike | int) -> Int[np.ndarray, "sample factor"]:
        indices = self.check_indices(indices)
        return np.stack(np.unravel_index(indices, self.factor_sizes), axis=1).astype(np.int64)

    def index_of(self, factors: ArrayLike) -> Int[np.ndarray, " sample"]:
        array = np.atleast_2d(np.asarray(factors))
        if (
            array.ndim != 2
            or array.shape[1] != len(self.factor_sizes)
            or not np.issubdtype(array.dtype, np.integer)
        ):
            raise InputError(
                "factors",
                (
                    f"be integers of shape (sample, {len(self.factor_sizes)}) for "
                    f"{', '.join(self.factor_names)}"
                ),
                got=f"{array.dtype} of shape {array.shape}",
            )
        for column, (name, size) in enumerate(zip(self.factor_names, self.factor_sizes, strict=True)):
            if array.size and (array[:, column].min() < 0 or array[:, column].max() >= size):
                raise InputError(
                    f"factor {name!r}",
                    f"lie in 0 … {size - 1}",
                    got=f"{array[:, column].min()} … {array[:, column].max()}",
                )
        return np.ravel_multi_index(tuple(array.T), self.factor_sizes).astype(np.int64)


dataset = family = open_family(
    __name__,
    "dataset",
    folders=("polariscope.data.rendered", "polariscope.data.published", "polariscope.data.own"),
    group="polariscope.datasets",
)
