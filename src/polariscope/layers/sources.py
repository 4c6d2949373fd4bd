"""What is compared: models, or activations that are at hand."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float, Int, Shaped

from polariscope.core.errors import InputError
from polariscope.core.seeds import derive
from polariscope.data.dataset import AbstractDataset
from polariscope.layers.scratch import Scratch
from polariscope.models.inference import auxiliary_of
from polariscope.models.model import Model

BATCH = 256  # fixed, so that the noise of the sampled layer does not depend on memory

Layers = Mapping[str, Shaped[np.ndarray, "..."]]


@dataclasses.dataclass(frozen=True, eq=False)
class Source:
    """One of the things compared: its name, the group it is averaged in, and where its layers come from."""

    label: str
    group: str
    model: Callable[[], Model] | None
    """Loads the model, one at a time; None for given activations."""
    layers: Layers | None
    run: Path | None
    checkpoint: tuple[int, int] | None = None
    """Of a checkpoint, which of the runs it belongs to, from 0, and its step."""


def encode_layers(
    source: Source,
    number: int,
    dataset: AbstractDataset,
    indices: Int[np.ndarray, " sample"],
    seed: int,
    place: Scratch,
) -> tuple[str, dict[str, Float[np.ndarray, "sample feature"]]]:
    """The digest of a model, and every layer of it on these observations, flattened, in float32.

    Each model draws its own noise: noise in common would make the sampled layers of two collapsed models alike.
    """
    assert source.model is not None
    model = source.model()
    if tuple(dataset.shape) != model.blueprint.shape:
        raise InputError(
            f"{source.label} takes observations of shape {model.blueprint.shape}, got data of shape "
            f"{tuple(dataset.shape)}; compare models of the same data."
        )
    noise = torch.Generator(model.device).manual_seed(derive(seed, "compare", "sampled", number))
    layers: dict[str, np.ndarray] = {}
    model.eval()
    for start in range(0, len(indices), BATCH):
        for name, values in _activations(model, dataset, indices[start : start + BATCH], noise):
            if name not in layers:
                layers[name] = place.array((len(indices), values.shape[1]))
            layers[name][start : start + BATCH] = values
    return model.digest, layers


def _activations(
    model: Model, dataset: AbstractDataset, rows: np.ndarray, noise: torch.Generator
) -> Iterator[tuple[str, np.ndarray]]:
    with torch.inference_mode():
        u = auxiliary_of(model, dataset, rows)
        x = model.place(torch.from_numpy(dataset.values(rows)))
        for name, activation in model.activations(x, noise, u):
            yield name, activation.flatten(1).float().cpu().numpy()
