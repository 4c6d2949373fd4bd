"""Jacobians of a decoder by forward differentiation, because latents are few and outputs many.

Some layers of other libraries, such as fused attention, have no forward derivative. Reverse differentiation, applied
twice, then gives the same derivatives, and central differences are the last resort.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from polariscope.core.errors import InputError, PolariscopeError
from polariscope.geometry.decoder_function import (
    Output,
    check_codes,
    decoder_function,
    place_codes,
    whole_or_function,
)
from polariscope.models.inference import evaluating
from polariscope.models.protocol import AbstractModel, ModelLike

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
    model = whole_or_function(model)
    codes = check_codes(model, codes)
    decoder = decoder_function(model, output)
    with torch.no_grad(), evaluating(model):
        # Decoded once to learn the number of output values.
        n_values = decoder(place_codes(model, codes[:1])).numel()
        rows = max(1, MAX_VALUES // (n_values * codes.shape[1]))
        jacobian = _working_method(model, decoder, place_codes(model, codes[:1]))
        for first in range(0, len(codes), rows):
            block = jacobian(decoder, place_codes(model, codes[first : first + rows])).cpu().numpy()
            if not np.isfinite(block).all():
                raise PolariscopeError(
                    "the decoder's Jacobian is not finite at some codes; the model might have diverged."
                )
            yield block


Method = Callable[[Any, Float[Tensor, "sample latent"]], Float[Tensor, "sample value latent"]]


def _working_method(model: ModelLike, decoder: Any, z: Float[Tensor, "sample latent"]) -> Method:
    """Return the first method that can differentiate a decoder; a model gets a note if it is not the usual one."""
    methods: dict[str, Method] = {
        "": _forward,
        "by reverse differentiation": _reverse,
        "by central differences, which are less exact": _differences,
    }
    if not isinstance(model, AbstractModel):
        return _forward  # a function has no notes
    for name, method in methods.items():
        try:
            method(decoder, z)
        # Errors of a decoder of another library are translated, and contain the original one.
        except (NotImplementedError, RuntimeError, InputError) as error:
            cause = error.__cause__ if isinstance(error, InputError) else error
            if not isinstance(cause, NotImplementedError | RuntimeError) or method is _differences:
                raise
            continue
        if name and hasattr(model, "add_note"):
            model.add_note(  # type: ignore[operator]
                "jacobian",
                f"A layer of the decoder has no forward derivative, so its Jacobian is computed {name}.",
            )
        return method
    raise AssertionError("the last method returns or raises an error")


def _forward(decoder: Any, z: Float[Tensor, "sample latent"]) -> Float[Tensor, "sample value latent"]:
    def along(direction: Tensor) -> Tensor:
        # Rows are independent, so one direction for all rows gives the derivative of each, and d passes suffice.
        _, derivative, *_ = torch.func.jvp(decoder, (z,), (direction.expand_as(z).contiguous(),))
        return derivative.flatten(1)

    basis = torch.eye(z.shape[1], dtype=z.dtype, device=z.device)
    with warnings.catch_warnings():
        # Torch's forward mode warns about torch.jit when it is first used.
        warnings.filterwarnings("ignore", message=".*torch.jit.script", category=DeprecationWarning)
        return torch.func.vmap(along, out_dims=2)(basis)


def _reverse(decoder: Any, z: Float[Tensor, "sample latent"]) -> Float[Tensor, "sample value latent"]:
    """Differentiate vᵀ J(z) with respect to v, which is J along a direction; d passes suffice."""
    from torch.nn.attention import SDPBackend, sdpa_kernel

    columns = []
    # Only this form of attention has a second derivative.
    with torch.enable_grad(), sdpa_kernel(SDPBackend.MATH):
        z = z.detach().clone().requires_grad_()
        outputs = decoder(z)
        weights = torch.zeros_like(outputs, requires_grad=True)
        (pulled,) = torch.autograd.grad(outputs, z, weights, create_graph=True)
        for latent in range(z.shape[1]):
            (column,) = torch.autograd.grad(pulled[:, latent].sum(), weights, retain_graph=True)
            columns.append(column.flatten(1).detach())
    return torch.stack(columns, dim=2)


def _differences(decoder: Any, z: Float[Tensor, "sample latent"]) -> Float[Tensor, "sample value latent"]:
    """Return central differences, with the step that balances rounding and curvature."""
    columns = []
    step = torch.finfo(z.dtype).eps ** (1 / 3)
    for latent in range(z.shape[1]):
        size = (z[:, latent].abs() + 1) * step
        above, below = z.clone(), z.clone()
        above[:, latent] += size
        below[:, latent] -= size
        # The width after rounding.
        width = (above - below)[:, latent]
        difference = (decoder(above) - decoder(below)).flatten(1)
        columns.append(difference / width[:, None])
    return torch.stack(columns, dim=2)
