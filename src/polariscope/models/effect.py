"""The effect of each latent on the decoder, the evidence that a latent is in use."""

from __future__ import annotations

import math

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from polariscope.analysis.code_view import CodeView, Per
from polariscope.analysis.regime.use import MAX_OBSERVATIONS, Effect
from polariscope.core.seeds import generator
from polariscope.data.dataset import AbstractDataset
from polariscope.models.inference import collect, encode_batches, inference_mode
from polariscope.models.protocol import AbstractModel


def decoder_effect(
    model: AbstractModel,
    dataset: AbstractDataset,
    indices: Int[np.ndarray, " sample"],
    seed: int = 0,
    per: Per = CodeView.per,
) -> Effect:
    r"""Return the increase of the reconstruction loss if a latent is exchanged between observations, and its error.

    .. math:: e_j = \mathrm{E}\left[\log p(x \mid z) - \log p(x \mid \tilde z^{(j)})\right]

    in nats, with z ~ q(z|x) and :math:`\tilde z^{(j)}` the same with latent j of another observation. It is 0 if the
    decoder ignores the latent, and also if the latent carries no information about x, since the exchanged value is then
    as good as the original one. Unlike the KL, it does not depend on the prior.

    Each observation lends its value to K others and borrows from K others. K is chosen such that at most 1,000
    exchanges are made of each latent, so a small sample is exchanged more often. Exchanges that share an observation
    are correlated. With :math:`a_i` and :math:`b_i` the mean increase over the exchanges in which observation i borrows
    and lends, and v the variance of all increases, the mean over n observations has the variance
    :math:`(\mathrm{Var}(a + b) - v / K) / n`.

    :param model: a model; without a decoder, or with fewer than three observations, the effect is empty.
    :param dataset: the data.
    :param indices: observations, preferably held-out; if there are more than 1,000, a random 1,000 are used.
    :param seed: (default 0) seed of the selection, of the draws and of the exchange.
    :param per: (default "channel") unit of codes with several axes. A channel is exchanged with all its positions.
    """
    n = min(len(indices), MAX_OBSERVATIONS)
    if not model.has_decoder or n < 3:
        return Effect()
    # In this random order each observation borrows from the one before it, then from the one before that.
    sample = generator(seed, "effect").permutation(indices)[:n]
    codes = torch.from_numpy(
        collect(model, dataset, sample, lambda batch: {"z": batch.draw(seed, "effect")})["z"]
    )
    # At most half of the observations, so no two observations exchange in both directions.
    n_shifts = max(1, min(MAX_OBSERVATIONS // n, (n - 1) // 2))
    # Known only now: a wrapped model learns the shape of its codes from the first batch.
    size = math.prod(model.code_shape[1:]) if per == "channel" else 1
    units = [slice(begin, begin + size) for begin in range(0, codes.shape[1], size)]
    rises = np.zeros((n_shifts, n, len(units)))
    with inference_mode(model):
        for batch in encode_batches(model, dataset, sample):
            z = codes[batch.rows].to(model.device, model.dtype)
            before = _log_density(model, z, batch.x)
            for shift in range(n_shifts):
                # The order is random, so neighbours in it are unrelated.
                lenders = (np.arange(n)[batch.rows] - shift - 1) % n
                lent = codes[lenders].to(model.device, model.dtype)
                for latent, columns in enumerate(units):
                    exchanged = z.clone()
                    exchanged[:, columns] = lent[:, columns]
                    rise = before - _log_density(model, exchanged, batch.x)
                    rises[shift, batch.rows, latent] = rise.cpu().numpy()
    return Effect(tuple(rises.mean(axis=(0, 1)).tolist()), tuple(standard_errors(rises).tolist()))


def standard_errors(rises: Float[np.ndarray, "shift sample latent"]) -> Float[np.ndarray, " latent"]:
    """Return the standard error of the mean increase of each latent.

    :param rises: increases, with that of observation i with the value of observation i − k − 1 at ``[k, i]``.
    """
    n_shifts, n, _ = rises.shape
    borrowed = rises.mean(axis=0)
    # Shifted back to the lender, whose value caused the increase.
    lent = np.mean([np.roll(rise, -shift - 1, axis=0) for shift, rise in enumerate(rises)], axis=0)
    total = (borrowed + lent).var(axis=0, ddof=1) - rises.var(axis=(0, 1)) / n_shifts
    # The estimate of the correlations is noisy, so the variance is at least that of independent exchanges.
    return np.sqrt(np.maximum(total, borrowed.var(axis=0, ddof=1)) / n)


def _log_density(
    model: AbstractModel, z: Float[Tensor, "sample latent"], x: Float[Tensor, "sample *shape"]
) -> Float[Tensor, " sample"]:
    return model.decode(z).like(x).log_density(x).double()
