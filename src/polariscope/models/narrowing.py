"""A model with some of the latents of a wider one."""

from __future__ import annotations

import torch
from jaxtyping import Int
from torch import Tensor

from polariscope.core.errors import InputError
from polariscope.models.model import Model


def take_latents(model: Model, wide: Model, latents: Int[Tensor, " latent"]) -> None:
    """Give a model the weights of a wider one of its kind, with only some of its latents.

    Where a tensor is as long as the number of latents in one direction, the rows or columns of these latents are
    taken; all others are equal in both. So the model encodes as the wide one does, and decodes as that does where the
    other latents are 0, the mean of the prior.

    :param model: whose weights are replaced.
    :param wide: where they come from.
    :param latents: which latents of the wide model, one for each of the model's, in their order.
    """
    if len(latents) != model.n_latents or len(set(latents.tolist())) != len(latents):
        raise InputError("latents", f"be {model.n_latents} different latents", got=f"{latents.tolist()}")
    if not model.is_diagonal or not wide.is_diagonal:
        raise InputError(
            problem="latents can be taken apart only where the posterior has independent ones",
            remedy="use a diagonal posterior",
        )
    source = wide.state_dict()
    taken = {}
    for name, target in model.state_dict().items():
        tensor = source[name]
        for direction in range(tensor.ndim):
            if tensor.shape[direction] != target.shape[direction]:
                tensor = torch.index_select(tensor, direction, latents.to(tensor.device))
        taken[name] = tensor
    model.load_state_dict(taken)
