"""Variants that choose observations and leave them as they are."""

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
from polariscope.data.variants import OWN, AbstractVariant

BATCH = 4096
"""Observations whose factors are looked at together."""


@dataclasses.dataclass(frozen=True)
class AbstractSelection(AbstractVariant):
    """Some observations of the base, in some order; a member says which."""

    @abc.abstractmethod
    def choose(self) -> Int[np.ndarray, " sample"]:
        """The base's numbers of the observations, in order."""

    @functools.cached_property
    def rows(self) -> Int[np.ndarray, " sample"]:
        """The base's number of each observation."""
        return self.choose()

    def __len__(self) -> int:
        return len(self.rows)

    def index_of(self, factors: ArrayLike) -> Int[np.ndarray, " sample"]:
        """Where observations with these factor values are; refused where some were not chosen, or several times.

        :param factors: factor values, (sample, factor).
        """
        if len(self.rows) > 1 and not (np.diff(self.rows) > 0).all():
            raise InputError(
                problem=f"observations of {self.base.name} may have been chosen several times here, so factors do "
                "not give an index"
            )
        wanted = self.base.index_of(factors)
        places = np.minimum(np.searchsorted(self.rows, wanted), len(self.rows) - 1)
        missing = self.rows[places] != wanted
        if missing.any():
            raise InputError(
                problem=(
                    f"{int(missing.sum())} of these {len(wanted)} observations of {self.base.name} were not chosen"
                ),
                remedy="ask for factors that are among those of the chosen observations",
            )
        return places

    def parts(self) -> dict[str, Int[np.ndarray, " _"]] | None:
        """The base's own division into parts, in the numbers of this dataset; None where it has none."""
        parts = self.base.parts()
        if parts is None:
            return None
        return {name: np.flatnonzero(np.isin(self.rows, part)) for name, part in parts.items()}


def ask_base_for_rows(name: str) -> Callable[..., Any]:
    """A method that is the base's, for observations by their numbers there."""

    def method(self: AbstractSelection, indices: ArrayLike | int) -> Any:
        return getattr(self.base, name)(self.rows[self.check_indices(indices)])

    method.__name__ = name
    method.__doc__ = f"``{name}`` of the base, for the observations chosen."
    return method


for _name, _method in vars(AbstractDataset).items():
    if (
        _name not in OWN
        and inspect.isfunction(_method)
        and "indices" in inspect.signature(_method).parameters
    ):
        setattr(AbstractSelection, _name, ask_base_for_rows(_name))


def factors_of(data: AbstractDataset, columns: list[int]) -> np.ndarray:
    """Some factors of all observations, looked up in batches."""
    parts = [
        data.factors(np.arange(first, min(first + BATCH, len(data))))[:, columns]
        for first in range(0, len(data), BATCH)
    ]
    return np.concatenate(parts)


def column_of(data: AbstractDataset, name: str) -> int:
    """The index of a factor; an unknown one is refused."""
    if name not in data.factor_names:
        raise unknown(f"factor of {data.name}", name, data.factor_names)
    return data.factor_names.index(name)
