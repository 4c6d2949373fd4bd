"""The observations that a result is computed from: one record with its defaults, for every entry point."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Annotated, Any, Literal, TypedDict

import numpy as np
from annotated_types import Ge
from jaxtyping import Int

from polariscope.core.errors import Argument, InputError
from polariscope.core.option_values import Advice
from polariscope.core.options import checked
from polariscope.core.seeds import generator
from polariscope.data.splits import Split

Part = Literal["all", "train", "validation", "test"]


class SubsetOptions(TypedDict, total=False):
    """The fields of :class:`Subset` as keyword arguments, for type checkers; none is required."""

    n_samples: int | None
    seed: int
    part: Part


class ObservationOptions(SubsetOptions, total=False):
    """The fields of :class:`Observations` as keyword arguments, for type checkers; none is required."""

    step: int | None


@checked
@dataclasses.dataclass(frozen=True)
class Subset:
    """Observations of a dataset: how many, from which part, and the seed of the choice."""

    n_samples: Annotated[int, Ge(1), Advice("None takes the whole dataset")] | None = 10_000
    """Number of observations, drawn without replacement; none for all, in their order."""
    seed: Annotated[int, Ge(0)] = 0
    """Seed of the choice of observations and of all noise."""
    part: Part = "all"
    """Part of the run's split that they come from: all, train, validation or test."""

    def choose(self, n_observations: int, split: Callable[[], Split] | None) -> Int[np.ndarray, " sample"]:
        """Return the indices of these observations.

        :param n_observations: size of the dataset.
        :param split: returns the split of the run; None for a model that does not belong to a run.
        """
        if self.part == "all":
            pool = np.arange(n_observations)
        elif split is None:
            raise InputError(
                problem=(Argument("part", self.part), " needs a model that belongs to a run"),
                remedy="other models have no split",
            )
        else:
            pool = getattr(split(), self.part)
            if not len(pool):
                raise InputError(
                    problem=f"the {self.part} part of the run's split is empty",
                    remedy=("use ", Argument("part", "all"), " or train with a split that has one"),
                )
        if self.n_samples is None or self.n_samples >= len(pool):
            return pool
        return generator(self.seed, "encode").choice(pool, size=self.n_samples, replace=False)


@checked
@dataclasses.dataclass(frozen=True)
class Observations(Subset):
    """Observations of a run and the model that encodes them."""

    step: Annotated[int, Ge(0)] | None = None
    """Step of the checkpoint that is used; none for the finished model."""

    def options(self) -> dict[str, Any]:
        """Return the fields by name, as methods of a run take them."""
        return dataclasses.asdict(self)


LAYER_SAMPLES = 5_000
"""Default number of observations on which layers are compared; the time grows with its square."""
