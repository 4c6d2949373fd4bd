"""What objectives on pairs of observations have in common."""

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
    """The partner of each observation; a batch without is refused."""
    if batch.pair is None:
        raise InputError(
            problem="the objective compares pairs, and this batch has none",
            remedy="train on a dataset with discrete factors",
        )
    return batch.pair


def refuse_conditional_prior(name: str, blueprint: Blueprint) -> None:
    """The objective encodes observations without their auxiliary values."""
    if blueprint.n_auxiliary:
        raise InputError(
            problem=f"objective {name!r} has no use for the auxiliary variable of a conditional prior",
            remedy=("use ", Argument("prior", "isotropic"), ", or ", Argument("objective", "ivae")),
        )


def check_pairs(name: str, transition: Transition, data: AbstractDataset, blueprint: Blueprint) -> None:
    """Refuse data whose pairs cannot be drawn, and models that need more than the observations of a pair."""
    transition.check(data)
    transition.check_moves(data)
    refuse_conditional_prior(name, blueprint)
