"""The auxiliary variable u, which a conditional prior and its encoder see beside x: the factors."""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from polariscope.core.errors import InputError
from polariscope.data.dataset import AbstractDataset
from polariscope.models.model import Model


def auxiliary_of(
    model: Model, dataset: AbstractDataset, indices: Int[np.ndarray, " sample"]
) -> Float[Tensor, "sample auxiliary"] | None:
    """What encoder and prior are given beside the observations, on the model's device; mostly nothing."""
    if not model.blueprint.n_auxiliary:
        return None
    return auxiliary_values(dataset, indices).to(model.device, model.dtype)


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
