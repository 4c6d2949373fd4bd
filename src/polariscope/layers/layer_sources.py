"""Sources of a comparison: models, or activations."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from polariscope.analysis.code_view import Pool
from polariscope.core.errors import InputError
from polariscope.core.seeds import normals
from polariscope.data.dataset import AbstractDataset
from polariscope.layers.scratch import Scratch
from polariscope.models.inference import EncodedBatch, collect
from polariscope.models.protocol import AbstractModel

CODES = ("mean", "variance", "sampled")
"""Names of the layers that contain codes."""
Layers = Mapping[str, Shaped[np.ndarray, "..."]]


@dataclasses.dataclass(frozen=True, eq=False)
class Source:
    """A model or activations to compare: the name, the group for averages, and the origin of its layers."""

    label: str
    group: str
    model: Callable[[], AbstractModel] | None
    """Function that loads the model, so only one is in memory at a time; None for activations."""
    layers: Layers | None
    run: Path | None
    checkpoint: tuple[int, int] | None = None
    """Number of the run of a checkpoint, from 0, and its step."""
    ids: Shaped[np.ndarray, " sample"] | None = None
    """Identifiers of the samples of activations, if they are known."""


def encode_layers(
    source: Source,
    number_of: Callable[[str], int],
    dataset: AbstractDataset,
    indices: Int[np.ndarray, " sample"],
    seed: int,
    arrays: Scratch,
    pool: Pool = "none",
) -> tuple[str, dict[str, Float[np.ndarray, "sample feature"]]]:
    """Return the digest of a model, and all its layers for these observations, flattened, in float32.

    Different runs use different noise, because common noise would make the sampled layers of two collapsed models
    similar. Checkpoints of one run, and the same model twice, share it, so a model scores 1 with itself.

    :param source: source with a model.
    :param number_of: function that returns the number of the stream of noise for the digest of the model.
    :param dataset: dataset to encode.
    :param indices: indices of the observations.
    :param seed: seed of the noise.
    :param arrays: allocator of the arrays.
    :param pool: (default "none") "mean" to average each channel of a layer over its positions; the input is not pooled.
    """
    assert source.model is not None
    model = source.model()
    if model.shape and tuple(dataset.shape) != model.shape:
        raise InputError(
            problem=f"{source.label} takes observations of shape {model.shape}",
            got=f"data of shape {tuple(dataset.shape)}",
            remedy="compare models of the same data",
        )
    stream = ("compare", "sampled", number_of(model.digest))

    def compute(encoded: EncodedBatch) -> dict[str, Tensor]:
        noise = normals(seed, *stream, indices=encoded.indices, width=encoded.posterior.mean.shape[1])
        drawn = torch.from_numpy(noise).to(encoded.posterior.mean)
        layers = model.activations(encoded.x, drawn, encoded.auxiliary)
        return {name: columns_of(name, activation) for name, activation in layers}

    def columns_of(name: str, activation: Tensor) -> Tensor:
        # Codes are flat; their shape is that of the model.
        if pool == "mean" and name in CODES:
            activation = activation.reshape(len(activation), *model.code_shape)
        if pool == "mean" and name != "input" and activation.ndim > 2:
            return activation.flatten(2).mean(dim=2)
        return activation.flatten(1)

    return model.digest, collect(model, dataset, indices, compute, make=arrays.array)
