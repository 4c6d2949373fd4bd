"""Jacobians of a decoder by forward differentiation, because latents are few and outputs many."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from polariscope.core.errors import PolariscopeError
from polariscope.geometry.decoder_function import Output, check_codes, decoder_function, place_codes
from polariscope.models.inference import evaluating
from polariscope.models.protocol import ModelLike

MAX_VALUES = 2**22  # entries of Jacobians in memory at a time, without those of hidden layers


def decoder_jacobian(
    model: ModelLike, codes: Float[np.ndarray, "sample latent"], *, output: Output = "mean"
) -> Float[np.ndarray, "sample value latent"]:
    r"""Compute the derivative of every output with respect to every latent, at each code.

    .. math:: J_i = \frac{\partial \mathrm{Dec}(z)}{\partial z} \Big|_{z = z_i}

    of the decoder's mean, or, with ``output="logits"``, of the logits of a Bernoulli likelihood. Pixels that are almost
    certainly black or white contribute to the logits but not to the mean. Outputs are flattened. A column of zeros is a
    latent that the decoder ignores (zietlow2022 Def. 1c: passive). The precision is that of the model's type.

    All Jacobians are returned, so use this for small outputs or few codes; :func:`decoder_metric` returns only JᵀJ.
    ``model`` is a model of this package, or any function of a batch of latents whose rows are independent.

    Reference: zietlow2022 §3.2.3, at the posterior means, which does not specify the output; ours is the mean.

    >>> slope = torch.tensor([[1.0, 2.0], [0.0, 3.0], [1.0, 1.0]])
    >>> decoder_jacobian(lambda z: z @ slope.T, np.zeros((1, 2), dtype=np.float32))[0].tolist()
    [[1.0, 2.0], [0.0, 3.0], [1.0, 1.0]]
    """
    return np.concatenate(list(jacobian_blocks(model, codes, output)))


def decoder_metric(
    model: ModelLike, codes: Float[np.ndarray, "sample latent"], *, output: Output = "mean"
) -> Float[np.ndarray, "sample latent latent"]:
    r"""Compute the pull-back metric of the decoder, JᵀJ in float64, at each code, with bounded memory.

    .. math:: \|\mathrm{Dec}(z + \delta) - \mathrm{Dec}(z)\|^2 = \delta^\top J^\top J \delta + O(\|\delta\|^3)

    Its eigenvectors are the right singular vectors V of J, its eigenvalues the squared singular values; it is
    diagonal if and only if the columns of J are orthogonal.
    """
    blocks = (block.astype(np.float64) for block in jacobian_blocks(model, codes, output))
    return np.concatenate([np.einsum("nvi,nvj->nij", block, block, optimize=True) for block in blocks])


def jacobian_blocks(
    model: ModelLike, codes: Float[np.ndarray, "sample latent"], output: Output = "mean"
) -> Iterator[Float[np.ndarray, "sample value latent"]]:
    """Yield the Jacobians of a few codes at a time."""
    codes = check_codes(model, codes)
    decoder = decoder_function(model, output)
    with torch.no_grad(), evaluating(model):
        # Decoded once to learn the number of output values.
        n_values = decoder(place_codes(model, codes[:1])).numel()
        rows = max(1, MAX_VALUES // (n_values * codes.shape[1]))
        for first in range(0, len(codes), rows):
            block = _jacobian(decoder, place_codes(model, codes[first : first + rows])).cpu().numpy()
            if not np.isfinite(block).all():
                raise PolariscopeError(
                    "the decoder's Jacobian is not finite at some codes; the model might have diverged."
                )
            yield block


def _jacobian(decoder: Any, z: Float[Tensor, "sample latent"]) -> Float[Tensor, "sample value latent"]:
    def along(direction: Tensor) -> Tensor:
        # Rows are independent, so one direction for all rows gives the derivative of each, and d passes suffice.
        _, derivative, *_ = torch.func.jvp(decoder, (z,), (direction.expand_as(z).contiguous(),))
        return derivative.flatten(1)

    basis = torch.eye(z.shape[1], dtype=z.dtype, device=z.device)
    with warnings.catch_warnings():
        # Torch's forward mode warns about torch.jit when it is first used.
        warnings.filterwarnings("ignore", message=".*torch.jit.script", category=DeprecationWarning)
        return torch.func.vmap(along, out_dims=2)(basis)
