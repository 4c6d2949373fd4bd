"""Variants that put the features of a table into other units."""

from __future__ import annotations

import abc
import dataclasses
import functools
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from polariscope.core.errors import InputError
from polariscope.core.records import to_plain
from polariscope.data.variants import AbstractVariant
from polariscope.data.variants.support.statistics import Statistics, statistics_of


@dataclasses.dataclass(frozen=True)
class AbstractRescaling(AbstractVariant):
    """A row x becomes (x − offset) / unit; :meth:`inverse` is the way back.

    What offset and unit are made of is measured on the whole dataset given, in batches, unless it is given. It is
    recorded, so other data that a model is shown later are put into the same units.
    """

    is_change_of_units = True
    measured_names: ClassVar[tuple[str, ...]] = ()
    """The options that stand for what is measured: given together, or not at all."""

    @property
    @abc.abstractmethod
    def offset(self) -> Float[np.ndarray, " feature"]:
        """What becomes 0."""

    @property
    @abc.abstractmethod
    def unit(self) -> Float[np.ndarray, " feature"]:
        """What becomes 1 above it; never 0."""

    @abc.abstractmethod
    def measure(self) -> tuple[Float[np.ndarray, "..."], ...]:
        """What is measured, in the order of ``measured_names``."""

    @functools.cached_property
    def measured(self) -> dict[str, Float[np.ndarray, "..."]]:
        """What was given, or else is measured, by name."""
        given = [getattr(self, name) for name in self.measured_names]
        numbers = self.measure() if given[0] is None else tuple(np.array(value) for value in given)
        return dict(zip(self.measured_names, numbers, strict=True))

    @functools.cached_property
    def statistics(self) -> Statistics:
        """Of the base."""
        return statistics_of(self.base)

    def check(self) -> None:
        given = {name: value for name in self.measured_names if (value := getattr(self, name)) is not None}
        if 0 < len(given) < len(self.measured_names):
            raise InputError(
                " and ".join(self.measured_names), "be given together", got=f"{next(iter(given))} alone"
            )
        for name, value in given.items():
            if isinstance(value, tuple) and len(value) != self.base.n_features:
                raise InputError(
                    name, f"have a number for each of the {self.base.n_features} features", got=len(value)
                )

    def options(self) -> dict[str, Any]:
        """The options, with what was measured in numbers."""
        return {**super().options(), **to_plain(self.measured)}

    def values(self, indices: ArrayLike | int) -> Float[np.ndarray, "sample feature"]:
        return ((self.base.values(indices) - self.offset) / self.unit).astype(np.float32)

    def inverse(self, values: Float[np.ndarray, "*batch"]) -> Float[np.ndarray, "*batch"]:
        return self.base.inverse((values * self.unit + self.offset).astype(values.dtype))
