"""Variants that change the units of a table's features."""

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
    """Value that becomes 0."""
    unit: Float[np.ndarray, " feature"]
    """Difference that becomes 1; never 0."""

    def apply(self, rows: Float[np.ndarray, "*batch"], dtype: DTypeLike) -> Float[np.ndarray, "*batch"]:
        """Return rows in these units.

        :param rows: rows in their original units, features along the last axis.
        :param dtype: type of the result; the difference is computed in double precision.
        """
        # The offset is float64, so small differences of large values keep their digits.
        return ((rows - self.offset) / self.unit).astype(dtype)

    def inverse(self, values: Float[np.ndarray, "*batch"], dtype: DTypeLike) -> Float[np.ndarray, "*batch"]:
        """Return rows in their original units.

        :param values: rows in these units.
        :param dtype: type of the result.
        """
        return (values * self.unit + self.offset).astype(dtype)

    @property
    def log_volume(self) -> float:
        """Σ log unit: the difference between a log-density in these units and one in the original units."""
        return float(np.log(self.unit).sum())


@dataclasses.dataclass(frozen=True)
class AbstractRescaling(AbstractVariant):
    """A table in other units (:class:`Rescaling`); :meth:`inverse` converts back.

    The numbers that determine offset and unit are options. If they are not passed, they are measured on the whole
    dataset, in batches. They are recorded, so other data can later be converted to the same units.
    """

    is_change_of_units = True
    measured_names: ClassVar[tuple[str, ...]] = ()
    """Options that hold the measured numbers; either all or none of them are passed."""

    @property
    @abc.abstractmethod
    def offset(self) -> Float[np.ndarray, " feature"]:
        """Value that becomes 0."""

    @property
    @abc.abstractmethod
    def unit(self) -> Float[np.ndarray, " feature"]:
        """Difference that becomes 1; never 0."""

    @abc.abstractmethod
    def measure(self, statistics: Statistics) -> tuple[Float[np.ndarray, "..."], ...]:
        """Compute the measured numbers, in the order of ``measured_names``.

        :param statistics: statistics of the features.
        """

    @functools.cached_property
    def measured(self) -> dict[str, Float[np.ndarray, "..."]]:
        """The measured numbers by name, from the options or else from the data."""
        values = [getattr(self, name) for name in self.measured_names]
        numbers = (
            # Options that were passed are numbers of earlier data, such as those of the training.
            self.measure(self.statistics) if values[0] is None else tuple(np.array(value) for value in values)
        )
        return dict(zip(self.measured_names, numbers, strict=True))

    @functools.cached_property
    def rescaling(self) -> Rescaling:
        """Offset and unit of each feature."""
        return Rescaling(self.offset, self.unit)

    def measured_on(self, statistics: Statistics) -> Rescaling:
        """Return the units measured on other statistics, such as those of rows in double precision.

        :param statistics: statistics of the features.
        """
        numbers = zip(self.measured_names, self.measure(statistics), strict=True)
        measured: dict[str, Any] = {
            name: tuple(value.tolist()) if value.ndim else value.item() for name, value in numbers
        }
        # A copy with the numbers as options, because the class computes units from its options.
        return dataclasses.replace(self, **measured).rescaling

    @functools.cached_property
    def statistics(self) -> Statistics:
        """Statistics of the base dataset."""
        return statistics_of(self.base)

    def check(self) -> None:
        known = {name: value for name in self.measured_names if (value := getattr(self, name)) is not None}
        if 0 < len(known) < len(self.measured_names):
            raise InputError(
                " and ".join(self.measured_names), "be passed together", got=f"{next(iter(known))} alone"
            )
        for name, value in known.items():
            if isinstance(value, tuple) and len(value) != self.base.n_features:
                raise InputError(
                    name, f"have a number for each of the {self.base.n_features} features", got=len(value)
                )

    def options(self) -> dict[str, Any]:
        """Return the options, with the measured numbers filled in."""
        return {**super().options(), **to_plain(self.measured)}

    def values(self, indices: ArrayLike | int) -> Float[np.ndarray, "sample feature"]:
        return self.rescaling.apply(self.base.values(indices), np.float32)

    def inverse(self, values: Float[np.ndarray, "*batch"]) -> Float[np.ndarray, "*batch"]:
        return self.base.inverse(self.rescaling.inverse(values, values.dtype))
