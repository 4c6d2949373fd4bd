"""Batches for a step: observations and additional inputs of an objective."""

from __future__ import annotations

import functools
import threading

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from polariscope.core.seeds import generator
from polariscope.data.dataset import AbstractDataset
from polariscope.data.labels import discrete_factors
from polariscope.data.pairs import Transition
from polariscope.models.inference import auxiliary_of
from polariscope.models.model import Model
from polariscope.objectives import AbstractObjective, Batch

DATA_LOCK = threading.RLock()
"""Lock that is held while data are read, because some readers are not thread-safe, and while layers are constructed,
because they draw from the global generator of PyTorch."""
MAX_CACHED = 2**22
"""Maximum number of values that are cached in memory, 16 MB, so a batch only has to select rows."""


class ModelValues:
    """Observations of a dataset on a model's device; a small dataset is read once, since reading delays small nets.

    :param data: the dataset.
    :param model: the model with the device and precision.
    """

    def __init__(self, data: AbstractDataset, model: Model) -> None:
        self.data, self.model = data, model

    def __call__(self, indices: Int[np.ndarray, " sample"]) -> Float[Tensor, "sample *shape"]:
        cached = self._cached
        values = self.data.values(indices) if cached is None else cached[indices]
        return self.model.place(torch.from_numpy(values))

    @functools.cached_property
    def _cached(self) -> Float[np.ndarray, "sample *shape"] | None:
        if len(self.data) * self.data.n_features > MAX_CACHED:
            return None
        return self.data.values(np.arange(len(self.data)))


class Feed:
    """Source of batches by index; a pair's partner is a function of the seed, the step and the stream's name.

    An objective that needs pairs defines their distribution by its ``transition``.
    """

    def __init__(
        self, data: AbstractDataset, objective: AbstractObjective, model: Model, n_data: int, seed: int
    ) -> None:
        self.data, self.objective, self.model = data, objective, model
        self.n_data, self.seed = n_data, seed
        self.values = ModelValues(data, model)
        transition: Transition | None = getattr(objective, "transition", None)
        self.pairing = transition.on(data) if transition is not None and "pairs" in objective.needs else None

    def batch(self, indices: Int[np.ndarray, " sample"], step: int, stream: str = "train") -> Batch:
        with DATA_LOCK:
            return self._batch(indices, step, stream)

    def _batch(self, indices: Int[np.ndarray, " sample"], step: int, stream: str) -> Batch:
        device, dtype = self.model.device, self.model.dtype
        pair = shared = labels = None
        auxiliary = auxiliary_of(self.model, self.data, indices)
        if "labels" in self.objective.needs:
            labels = torch.from_numpy(class_labels(self.data, indices)).to(device)
        if "pairs" in self.objective.needs:
            assert self.pairing is not None
            partners, same = self.pairing.draw(indices, generator(self.seed, "pairs", stream, step))
            pair = self.values(partners)
            shared = torch.from_numpy(same).to(device, dtype)
        return Batch(self.values(indices), step, self.n_data, auxiliary, pair, shared, labels)


def class_labels(
    data: AbstractDataset, indices: Int[np.ndarray, " sample"]
) -> Int[np.ndarray, "sample factor"]:
    """Return the classes of the discrete factors."""
    columns = [data.factor_names.index(name) for name in discrete_factors(data)]
    return data.factors(indices)[:, columns].astype(np.int64)
