"""Batches for a step: observations, and what else an objective needs."""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from polariscope.data import AbstractDataset
from polariscope.data._labels import discrete_factors
from polariscope.data.transitions import Transition
from polariscope.errors import InputError
from polariscope.model import Model
from polariscope.objectives import AbstractObjective, Batch
from polariscope.seeds import generator


class Feed:
    """Makes a batch from indices; a pair's partner is a function of the seed, the step and the stream's name.

    An objective that needs pairs says by its ``transition`` how they are drawn.
    """

    def __init__(
        self, data: AbstractDataset, objective: AbstractObjective, model: Model, n_data: int, seed: int
    ) -> None:
        self.data, self.objective, self.model = data, objective, model
        self.n_data, self.seed = n_data, seed
        self.transition: Transition | None = getattr(objective, "transition", None)

    def values(self, indices: Int[np.ndarray, " sample"]) -> Float[Tensor, "sample *shape"]:
        return self.model.place(torch.from_numpy(self.data.values(indices)))

    def batch(self, indices: Int[np.ndarray, " sample"], step: int, stream: str = "train") -> Batch:
        device, dtype = self.model.device, self.model.dtype
        auxiliary = pair = shared = labels = None
        if self.model.blueprint.n_auxiliary:
            auxiliary = auxiliary_values(self.data, indices).to(device, dtype)
        if "labels" in self.objective.needs:
            labels = torch.from_numpy(class_labels(self.data, indices)).to(device)
        if "pairs" in self.objective.needs:
            assert self.transition is not None
            draws = generator(self.seed, "pairs", stream, step)
            partners, same = self.transition.draw(self.data, indices, draws)
            pair = self.values(partners)
            shared = torch.from_numpy(same).to(device, dtype)
        return Batch(self.values(indices), step, self.n_data, auxiliary, pair, shared, labels)


def auxiliary_values(
    data: AbstractDataset, indices: Int[np.ndarray, " sample"]
) -> Float[Tensor, "sample factor"]:
    """The factors as floats; those of n values 0 … n − 1 are divided by n − 1, so that they lie in [0, 1].

    The published iVAE code passes raw factor values; the scale only changes the first layer's weights, and
    raw indices up to 39 beside a categorical 0–2 make it start badly conditioned.
    """
    if not data.factor_names:
        raise InputError(
            f"{data.name} has no factors or labels to condition on; pass factors= when you make it."
        )
    factors = data.factors(indices).astype(np.float32)
    sizes = np.array([max(size - 1, 1) for size in data.factor_sizes], dtype=np.float32)
    return torch.from_numpy(factors / sizes)


def class_labels(
    data: AbstractDataset, indices: Int[np.ndarray, " sample"]
) -> Int[np.ndarray, "sample factor"]:
    """The classes of the discrete factors."""
    columns = [data.factor_names.index(name) for name in discrete_factors(data)]
    return data.factors(indices)[:, columns].astype(np.int64)
