"""Variants that put the features of a table into other units."""

from __future__ import annotations

import abc
import dataclasses
import functools
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike, DTypeLike

from polariscope.core.errors import InputError
from polariscope.core.records import to_plain
from polariscope.data.streamed_statistics import Statistics, statistics_of
from polariscope.data.variants import AbstractVariant


@dataclasses.dataclass(frozen=True, eq=False)
class Rescaling:
    """Change of the units of rows: x becomes (x − offset) / unit."""

    offset: Float[np.ndarray, " feature"]
    """What becomes 0."""
    unit: Float[np.ndarray, " feature"]
    """What becomes 1 above it; never 0."""

    def apply(self, rows: Float[np.ndarray, "*batch"], dtype: DTypeLike) -> Float[np.ndarray, "*batch"]:
        """Return rows in these units.

        :param rows: in the units of their owner, features along the last axis.
        :param dtype: of the result; the difference is taken in double precision.
        """
        return ((rows - self.offset) / self.unit).astype(dtype)

    def inverse(self, values: Float[np.ndarray, "*batch"], dtype: DTypeLike) -> Float[np.ndarray, "*batch"]:
        """Return rows in the units of their owner.

        :param values: in these units.
        :param dtype: of the result.
        """
        return (values * self.unit + self.offset).astype(dtype)

    @property
    def log_volume(self) -> float:
        """Σ log unit: the difference between a log-density in these units and one in those of the owner."""
        return float(np.log(self.unit).sum())


@dataclasses.dataclass(frozen=True)
class AbstractRescaling(AbstractVariant):
    """A table in other units (:class:`Rescaling`); :meth:`inverse` is the way back.

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
    def measure(self, statistics: Statistics) -> tuple[Float[np.ndarray, "..."], ...]:
        """Return what is measured, in the order of ``measured_names``.

        :param statistics: of the features.
        """

    @functools.cached_property
    def measured(self) -> dict[str, Float[np.ndarray, "..."]]:
        """What was given, or else is measured, by name."""
        values = [getattr(self, name) for name in self.measured_names]
        numbers = (
            self.measure(self.statistics) if values[0] is None else tuple(np.array(value) for value in values)
        )
        return dict(zip(self.measured_names, numbers, strict=True))

    @functools.cached_property
    def rescaling(self) -> Rescaling:
        """Offset and unit of each feature."""
        return Rescaling(self.offset, self.unit)

    def measured_on(self, statistics: Statistics) -> Rescaling:
        """Return the units that other statistics lead to, such as those of rows in double precision.

        :param statistics: of the features.
        """
        numbers = zip(self.measured_names, self.measure(statistics), strict=True)
        measured: dict[str, Any] = {
            name: tuple(value.tolist()) if value.ndim else value.item() for name, value in numbers
        }
        return dataclasses.replace(self, **measured).rescaling

    @functools.cached_property
    def statistics(self) -> Statistics:
        """Of the base."""
        return statistics_of(self.base)

    def check(self) -> None:
        known = {name: value for name in self.measured_names if (value := getattr(self, name)) is not None}
        if 0 < len(known) < len(self.measured_names):
            raise InputError(
                " and ".join(self.measured_names), "be given together", got=f"{next(iter(known))} alone"
            )
        for name, value in known.items():
            if isinstance(value, tuple) and len(value) != self.base.n_features:
                raise InputError(
                    name, f"have a number for each of the {self.base.n_features} features", got=len(value)
                )

    def options(self) -> dict[str, Any]:
        """The options, with what was measured in numbers."""
        return {**super().options(), **to_plain(self.measured)}

    def values(self, indices: ArrayLike | int) -> Float[np.ndarray, "sample feature"]:
        return self.rescaling.apply(self.base.values(indices), np.float32)

    def inverse(self, values: Float[np.ndarray, "*batch"]) -> Float[np.ndarray, "*batch"]:
        return self.base.inverse(self.rescaling.inverse(values, values.dtype))
