"""Models with a subset of the latents of a wider model."""

from __future__ import annotations

import torch
from jaxtyping import Int
from torch import Tensor

from polariscope.core.errors import InputError
from polariscope.models.model import Model


def take_latents(model: Model, wide: Model, latents: Int[Tensor, " latent"]) -> None:
    """Initialise a model with the weights of a wider one of its kind, for a subset of its latents.

    Tensors with an axis of the length of the number of latents are indexed along it; all others are equal in both.
    The model then encodes as the wide one does, and decodes as the wide one does if the other latents are 0, the mean
    of the prior.

    :param model: the model whose weights are replaced.
    :param wide: the model with the weights.
    :param latents: latents of the wide model, one for each latent of the model, in their order.
    """
    if len(latents) != model.n_latents or len(set(latents.tolist())) != len(latents):
        raise InputError("latents", f"be {model.n_latents} different latents", got=f"{latents.tolist()}")
    if not model.is_diagonal or not wide.is_diagonal:
        raise InputError(
            problem="latents can be selected only if they are independent in the posterior",
            remedy="use a diagonal posterior",
        )
    source = wide.state_dict()
    state = {}
    for name, target in model.state_dict().items():
        tensor = source[name]
        for direction in range(tensor.ndim):
            # Only axes of latents differ between the two models.
            if tensor.shape[direction] != target.shape[direction]:
                tensor = torch.index_select(tensor, direction, latents.to(tensor.device))
        state[name] = tensor
    model.load_state_dict(state)
