"""The effect of each latent on the decoder: the evidence that a latent is in use."""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from polariscope.analysis.regime.use import MAX_OBSERVATIONS, Effect
from polariscope.core.seeds import generator
from polariscope.data.dataset import AbstractDataset
from polariscope.models.inference import collect, look, looking
from polariscope.models.protocol import AbstractModel


def decoder_effect(
    model: AbstractModel, dataset: AbstractDataset, indices: Int[np.ndarray, " sample"], seed: int = 0
) -> Effect:
    r"""Return the rise of the reconstruction loss when one latent is taken from another observation, and its error.

    .. math:: e_j = \mathrm{E}\left[\log p(x \mid z) - \log p(x \mid \tilde z^{(j)})\right]

    in nats, with z ~ q(z|x) and :math:`\tilde z^{(j)}` the same with latent j of another observation. It is 0 if the
    decoder ignores the latent, and also if the latent carries nothing about x: then the exchanged value is as good as
    its own. Unlike the KL, it does not depend on the prior.

    :param model: a model; without a decoder, or with fewer than two observations, the effect is empty.
    :param dataset: the data.
    :param indices: observations, at best held out; the first 1,000 are used.
    :param seed: (default 0) seed of the draws and of the exchange.
    """
    if not model.has_decoder or len(indices) < 2:
        return Effect()
    chosen = indices[:MAX_OBSERVATIONS]
    codes = torch.from_numpy(
        collect(model, dataset, chosen, lambda seen: {"z": seen.draw(seed, "effect")})["z"]
    )
    # In random order each observation takes the value of the next, so nobody keeps its own.
    order = generator(seed, "effect").permutation(len(chosen))
    lender = np.empty(len(chosen), dtype=np.int64)
    lender[order] = np.roll(order, 1)
    rises = np.zeros((len(chosen), codes.shape[1]))
    with looking(model):
        for seen in look(model, dataset, chosen):
            own = codes[seen.rows].to(model.device, model.dtype)
            other = codes[lender[seen.rows]].to(model.device, model.dtype)
            before = _log_density(model, own, seen.x)
            for latent in range(codes.shape[1]):
                moved = own.clone()
                moved[:, latent] = other[:, latent]
                rise = before - _log_density(model, moved, seen.x)
                rises[seen.rows, latent] = rise.cpu().numpy()
    errors = rises.std(axis=0, ddof=1) / np.sqrt(len(chosen))
    return Effect(tuple(rises.mean(axis=0).tolist()), tuple(errors.tolist()))


def _log_density(
    model: AbstractModel, z: Float[Tensor, "sample latent"], x: Float[Tensor, "sample *shape"]
) -> Float[Tensor, " sample"]:
    return model.decode(z).like(x).log_density(x).double()
