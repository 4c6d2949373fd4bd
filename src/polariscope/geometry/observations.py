"""Observations for an analysis, and their posteriors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from polariscope.core.errors import InputError
from polariscope.core.seeds import generator
from polariscope.data.dataset import AbstractDataset
from polariscope.geometry.decoder import BATCH
from polariscope.models.inference import auxiliary_of
from polariscope.models.model import Model
from polariscope.models.posteriors import AbstractPosteriorDistribution


def choose_observations(
    model: Any, data: Any, n_samples: int | None, seed: int
) -> tuple[AbstractDataset, Int[np.ndarray, " sample"]]:
    """The dataset (or array as one) and ``n_samples`` of its indices, drawn without replacement; None: all."""
    if not isinstance(model, Model):
        raise InputError(
            f"model must be a model of ours, with encoder and decoder, got {type(model).__name__}."
        )
    dataset = data if isinstance(data, AbstractDataset) else _as_dataset(model, data)
    if tuple(dataset.shape) != model.blueprint.shape:
        raise InputError(
            f"the model was trained on observations of shape {model.blueprint.shape}, got data of shape "
            f"{tuple(dataset.shape)}; use data like those it was trained on."
        )
    if n_samples is not None and n_samples < 1:
        raise InputError(f"n_samples must be at least 1, or None for all of the data, got {n_samples}.")
    if n_samples is None or n_samples >= len(dataset):
        return dataset, np.arange(len(dataset))
    return dataset, generator(seed, "geometry", "observations").choice(
        len(dataset), size=n_samples, replace=False
    )


def _as_dataset(model: Model, array: Any) -> AbstractDataset:
    """An array as data are: images of bytes divided by 255, those of floats in [0, 1] or refused."""
    from polariscope.data.own.arrays import from_arrays

    shape = model.blueprint.shape
    as_in_model = len(shape) == 3 and tuple(getattr(array, "shape", ()))[1:] == shape
    return from_arrays(array, layout="channels-first" if as_in_model else None)


def posteriors(
    model: Model, dataset: AbstractDataset, indices: Int[np.ndarray, " sample"]
) -> Iterator[tuple[Float[Tensor, "sample *shape"], AbstractPosteriorDistribution]]:
    """Batches of observations and q(z|x) for them; to be read inside ``torch.inference_mode``."""
    for first in range(0, len(indices), BATCH):
        rows = indices[first : first + BATCH]
        x = model.place(torch.from_numpy(dataset.values(rows)))
        yield x, model.encode(x, auxiliary_of(model, dataset, rows))
