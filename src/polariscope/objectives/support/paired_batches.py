"""Functions shared by objectives on pairs of observations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jaxtyping import Float
from torch import Tensor

from polariscope.core.errors import Argument, InputError
from polariscope.data.pairs import Transition
from polariscope.models.model import Blueprint
from polariscope.objectives import Batch

if TYPE_CHECKING:
    from polariscope.data.dataset import AbstractDataset


def pair_of(batch: Batch) -> Float[Tensor, "sample *shape"]:
    """Return the partner of each observation; raise an error for a batch without pairs."""
    if batch.pair is None:
        raise InputError(
            problem="the objective compares pairs, and this batch has none",
            remedy="train on a dataset with discrete factors",
        )
    return batch.pair


def refuse_conditional_prior(name: str, blueprint: Blueprint) -> None:
    """Raise an error for a conditional prior, because the objective encodes observations without auxiliary values."""
    if blueprint.n_auxiliary:
        raise InputError(
            problem=f"objective {name!r} does not support the auxiliary variable of a conditional prior",
            remedy=("use ", Argument("prior", "isotropic"), ", or ", Argument("objective", "ivae")),
        )


def check_pairs(name: str, transition: Transition, data: AbstractDataset, blueprint: Blueprint) -> None:
    """Raise an error if pairs cannot be drawn from the data, or if the model requires auxiliary values."""
    transition.check(data)
    transition.check_moves(data)
    refuse_conditional_prior(name, blueprint)
