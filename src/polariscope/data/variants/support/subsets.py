"""Variants that select observations without changing them."""

from __future__ import annotations

import abc
import dataclasses
import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import Int
from numpy.typing import ArrayLike

from polariscope.core.errors import InputError, unknown
from polariscope.data.dataset import AbstractDataset
from polariscope.data.variants import NOT_DELEGATED, AbstractVariant

BATCH = 4096
"""Number of observations whose factors are read together."""


@dataclasses.dataclass(frozen=True)
class AbstractSelection(AbstractVariant):
    """A selection of observations of the base, in any order; a member selects them."""

    @abc.abstractmethod
    def choose(self) -> Int[np.ndarray, " sample"]:
        """Return the base's indices of the observations, in order."""

    @functools.cached_property
    def rows(self) -> Int[np.ndarray, " sample"]:
        """The base's index of each observation."""
        return self.choose()

    def __len__(self) -> int:
        return len(self.rows)

    def index_of(self, factors: ArrayLike) -> Int[np.ndarray, " sample"]:
        """Return the indices of the observations with these factor values; each must have been selected exactly once.

        :param factors: factor values, (sample, factor).
        """
        # Ascending indices occur once and can be searched by bisection.
        if len(self.rows) > 1 and not (np.diff(self.rows) > 0).all():
            raise InputError(
                problem=f"observations of {self.base.name} can occur several times here, so factors do not "
                "determine an index"
            )
        wanted = self.base.index_of(factors)
        indices = np.minimum(np.searchsorted(self.rows, wanted), len(self.rows) - 1)
        missing = self.rows[indices] != wanted
        if missing.any():
            raise InputError(
                problem=(
                    f"{int(missing.sum())} of these {len(wanted)} observations of {self.base.name} are not in the "
                    "subset"
                ),
                remedy="use factors of observations in the subset",
            )
        return indices

    def parts(self) -> dict[str, Int[np.ndarray, " _"]] | None:
        """Return the base's predefined split in the indices of this dataset; None if there is none."""
        parts = self.base.parts()
        if parts is None:
            return None
        # Observations that were not selected drop out of their part.
        return {name: np.flatnonzero(np.isin(self.rows, part)) for name, part in parts.items()}


def delegate_for_rows(name: str) -> Callable[..., Any]:
    """Return a method that calls the base's method with the base's indices of the observations."""

    def method(self: AbstractSelection, indices: ArrayLike | int) -> Any:
        return getattr(self.base, name)(self.rows[self.check_indices(indices)])

    method.__name__ = name
    method.__doc__ = f"``{name}`` of the base, for the selected observations."
    return method


# Every method that takes indices needs those of the base instead.
for _name, _method in vars(AbstractDataset).items():
    if (
        _name not in NOT_DELEGATED
        and inspect.isfunction(_method)
        and "indices" in inspect.signature(_method).parameters
    ):
        setattr(AbstractSelection, _name, delegate_for_rows(_name))


def factors_of(data: AbstractDataset, columns: list[int]) -> np.ndarray:
    """Return some factors of all observations, read in batches."""
    parts = [
        data.factors(np.arange(first, min(first + BATCH, len(data))))[:, columns]
        for first in range(0, len(data), BATCH)
    ]
    return np.concatenate(parts)


def column_of(data: AbstractDataset, name: str) -> int:
    """Return the index of a factor."""
    if name not in data.factor_names:
        raise unknown(f"factor of {data.name}", name, data.factor_names)
    return data.factor_names.index(name)
