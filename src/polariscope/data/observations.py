"""Selection of the observations from which a result is computed: one record with the defaults of every entry point."""

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
    """Fields of :class:`Subset` as optional keyword arguments, for type checkers."""

    n_samples: int | None
    seed: int
    part: Part


class ObservationOptions(SubsetOptions, total=False):
    """Fields of :class:`Observations` as optional keyword arguments, for type checkers."""

    step: int | None


@checked
@dataclasses.dataclass(frozen=True)
class Subset:
    """A selection of observations: their number, the part of the split, and the seed."""

    n_samples: Annotated[int, Ge(1), Advice("None takes the whole dataset")] | None = 10_000
    """Number of observations, drawn at random without replacement; None for all, in the order of the data."""
    seed: Annotated[int, Ge(0)] = 0
    """Seed of the selection of observations and of all noise."""
    part: Part = "all"
    """Part of the run's split from which the observations are drawn."""

    def choose(self, n_observations: int, split: Callable[[], Split] | None) -> Int[np.ndarray, " sample"]:
        """Return the indices of these observations.

        :param n_observations: size of the dataset.
        :param split: function that returns the split of the run; None for a model that does not belong to a run.
        """
        if self.part == "all":
            pool = np.arange(n_observations)
        elif split is None:
            raise InputError(
                problem=(Argument("part", self.part), " requires a model that belongs to a run"),
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
    """A selection of observations and of the checkpoint that encodes them."""

    step: Annotated[int, Ge(0)] | None = None
    """Step of the checkpoint to use; None for the finished model."""

    def options(self) -> dict[str, Any]:
        """Return the fields by name, as methods of a run accept them."""
        return dataclasses.asdict(self)


LAYER_SAMPLES = 5_000
"""Default number of observations for comparing layers; the time grows with its square."""
