"""Decoders as functions of codes: a model of this package, or any function or module of latents."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal, get_args

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from polariscope.core.arrays import refuse_masked
from polariscope.core.errors import Argument, InputError, unknown
from polariscope.core.types import ArrayInput
from polariscope.data.data_like import DataLike
from polariscope.models.inference import batch_size, chunks, inference_mode
from polariscope.models.protocol import AbstractModel, ModelLike

Output = Literal["mean", "logits"]


def opened(model: ModelLike, data: DataLike) -> tuple[AbstractModel, DataLike]:
    """Return a model of any library, and the data in its units.

    A function is refused, because it is not known whether it encodes or decodes.

    :param model: the model.
    :param data: a dataset or an array.
    """
    if isinstance(model, AbstractModel):
        return model, data  # converted when observations are chosen
    from polariscope.models.open_model import is_whole, open_model, type_name

    if not is_whole(model):
        raise InputError(
            "model",
            "have an encoder and a decoder",
            got=type_name(model),
            remedy="wrap yours with polariscope.wrap",
        )
    whole, dataset = open_model(model, data)
    assert dataset is not None
    return whole, dataset


def whole_or_function(model: ModelLike) -> ModelLike:
    """Return an object of another library that has an encoder and a decoder as a model; others unchanged.

    :param model: the object.
    """
    if isinstance(model, AbstractModel):
        return model
    from polariscope.models.open_model import is_whole, open_model

    if not is_whole(model):
        return model
    whole = open_model(model)[0]
    return whole if whole.has_decoder else model


def decode(model: ModelLike, codes: Float[np.ndarray, "sample latent"]) -> Float[np.ndarray, "sample *shape"]:
    """Return the decoder's mean at each code, in float32."""
    codes = check_codes(model, codes)
    decoder = decoder_function(model)
    # The output size of a function is unknown before it is called.
    size = batch_size(math.prod(model.shape) if isinstance(model, AbstractModel) else codes.shape[1])
    with inference_mode(model):
        outputs = [
            decoder(place_codes(model, codes[rows])).float().cpu().numpy()
            for rows in chunks(len(codes), size)
        ]
    return np.concatenate(outputs)


def decoder_function(
    model: ModelLike, output: Output = "mean"
) -> Callable[[Float[Tensor, "sample latent"]], Float[Tensor, "sample *shape"]]:
    """Return a function from latents to the mean of p(x|z), or to the logits of a Bernoulli likelihood.

    ``model`` is a model of this package, or any function or module that maps a batch of latents to a batch of outputs,
    which are used as the mean.
    """
    if output not in get_args(Output):
        raise unknown("output", str(output), get_args(Output))
    model = whole_or_function(model)
    if isinstance(model, AbstractModel):
        if not model.has_decoder:
            raise InputError("model", "have a decoder, but this one has none")
        return (lambda z: model.decode(z).mean) if output == "mean" else (lambda z: _logits(model, z))
    if not callable(model):
        raise InputError(
            "model", "be a model or a function from latents to outputs", got=type(model).__name__
        )
    if output != "mean":
        raise InputError(
            problem=(Argument("output", "logits"), " requires a model of this package"),
            remedy="wrap your decoder so that it returns logits",
        )
    return lambda z: _foreign_outputs(model, z)


def _foreign_outputs(
    model: Callable[[Any], Any], z: Float[Tensor, "sample latent"]
) -> Float[Tensor, "sample *shape"]:
    """Return the outputs of another decoder, after checking that there is a row of values for each code."""
    try:
        outputs = model(z)
    except RuntimeError as error:
        raise InputError(
            "the decoder",
            "take a batch of latents",
            got=f"an error for codes of shape {tuple(z.shape)} and type {z.dtype} ({error})",
            remedy=(
                "codes are passed to a function without conversion; if its weights are float32, pass "
                "codes.astype(np.float32)"
            ),
        ) from error
    if not isinstance(outputs, Tensor) or outputs.ndim < 2 or len(outputs) != len(z):
        got = f"shape {tuple(outputs.shape)}" if isinstance(outputs, Tensor) else type(outputs).__name__
        raise InputError(
            "the decoder",
            "return a tensor with a row of values for each code",
            got=f"{got} for codes of shape {tuple(z.shape)}",
            remedy="if there is a single value for each code, return outputs[:, None]",
        )
    return outputs


def _logits(model: AbstractModel, z: Float[Tensor, "sample latent"]) -> Float[Tensor, "sample *shape"]:
    from polariscope.models.likelihoods.bernoulli import BernoulliDistribution

    likelihood = model.decode(z)
    if not isinstance(likelihood, BernoulliDistribution):
        raise InputError(
            problem=(Argument("output", "logits"), " requires a Bernoulli likelihood"),
            got=type(likelihood).__name__,
            remedy=("use ", Argument("output", "mean")),
        )
    return likelihood.logits


def check_codes(model: ModelLike, codes: ArrayInput) -> Float[np.ndarray, "sample latent"]:
    """Return codes as an array, after checking that they are finite with a column for each latent."""
    refuse_masked(codes, "codes")
    array = np.asarray(codes)
    if not np.issubdtype(array.dtype, np.floating):
        raise InputError("codes", "be floats", got=array.dtype, remedy="pass rep.mean")
    n_latents = model.n_latents if isinstance(model, AbstractModel) and model.is_sized else None
    if array.ndim != 2 or 0 in array.shape or (n_latents is not None and array.shape[1] != n_latents):
        raise InputError(
            "codes",
            f"have shape (sample, {n_latents or 'latent'}) with at least one of each",
            got=array.shape,
            remedy="encode the data with the same model",
        )
    if not np.isfinite(array).all():
        raise InputError(
            "codes",
            "be finite",
            got=f"{int((~np.isfinite(array)).sum())} NaN or infinite of {array.size} values",
            remedy="the model might have diverged",
        )
    return array


def place_codes(
    model: ModelLike, codes: Float[np.ndarray, "sample latent"]
) -> Float[Tensor, "sample latent"]:
    """Move codes to the decoder's device and type; for a function they are not changed."""
    # Codes can be a view with negative strides, which PyTorch rejects.
    z = torch.from_numpy(np.ascontiguousarray(codes))
    first = next(model.parameters(), None) if isinstance(model, nn.Module) else None
    return z if first is None else z.to(device=first.device, dtype=first.dtype)
