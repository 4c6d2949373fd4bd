"""What is compared: models, or activations that are at hand."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from polariscope.core.errors import InputError
from polariscope.core.seeds import normals
from polariscope.data.dataset import AbstractDataset
from polariscope.layers.scratch import Scratch
from polariscope.models.inference import EncodedBatch, collect
from polariscope.models.protocol import AbstractModel

Layers = Mapping[str, Shaped[np.ndarray, "..."]]


@dataclasses.dataclass(frozen=True, eq=False)
class Source:
    """One of the things compared: its name, the group it is averaged in, and where its layers come from."""

    label: str
    group: str
    model: Callable[[], AbstractModel] | None
    """Loads the model, one at a time; None for given activations."""
    layers: Layers | None
    run: Path | None
    checkpoint: tuple[int, int] | None = None
    """Of a checkpoint, which of the runs it belongs to, from 0, and its step."""
    ids: Shaped[np.ndarray, " sample"] | None = None
    """What identifies the samples of given activations, where it is known."""


def encode_layers(
    source: Source,
    number_of: Callable[[str], int],
    dataset: AbstractDataset,
    indices: Int[np.ndarray, " sample"],
    seed: int,
    arrays: Scratch,
) -> tuple[str, dict[str, Float[np.ndarray, "sample feature"]]]:
    """The digest of a model, and every layer of it on these observations, flattened, in float32.

    Different runs draw different noise: noise in common would make the sampled layers of two collapsed models alike.
    Checkpoints of one run, and the same model twice, share it, so a model scores 1 with itself.

    :param source: the model.
    :param number_of: returns the number of the stream of noise for the digest of the model.
    :param dataset: what is encoded.
    :param indices: which observations.
    :param seed: seed of the noise.
    :param arrays: makes the arrays, in memory or in files.
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

    def compute(seen: EncodedBatch) -> dict[str, Tensor]:
        noise = normals(seed, *stream, indices=seen.indices, width=seen.posterior.mean.shape[1])
        drawn = torch.from_numpy(noise).to(seen.posterior.mean)
        layers = model.activations(seen.x, drawn, seen.auxiliary)
        return {name: activation.flatten(1) for name, activation in layers}

    return model.digest, collect(model, dataset, indices, compute, make=arrays.array)
