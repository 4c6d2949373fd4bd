"""The loop that runs a network without training it: a dataset through an encoder, in batches."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from polariscope.analysis.representation import Representation
from polariscope.core.errors import InputError
from polariscope.core.seeds import derive, generator
from polariscope.data.dataset import AbstractDataset
from polariscope.models.model import Model
from polariscope.models.posteriors import AbstractPosteriorDistribution, kl
from polariscope.models.posteriors.diagonal import DiagonalGaussian

BATCH = 256  # fixed, so that the noise does not depend on how much memory there is
DECODER_BATCH = 64  # where outputs are decoded too


def represent(
    model: Any, dataset: AbstractDataset, indices: Int[np.ndarray, " sample"], seed: int
) -> Representation:
    """Mean, variance and one draw of the posterior of each of these observations.

    :param model: ours, or any function or module that returns ``(mean, log_variance)`` for a batch.
    :param seed: seed of the draws.
    """
    if not isinstance(model, Model):
        return _assemble(dataset, indices, _foreign(model, dataset, indices, seed), {})
    if tuple(dataset.shape) != model.blueprint.shape:
        raise InputError(
            f"the model was trained on observations of shape {model.blueprint.shape}, got data of shape "
            f"{tuple(dataset.shape)}; use the data it was trained on."
        )
    return _assemble(dataset, indices, _own(model, dataset, indices, seed), _prior_fields(model))


def _batches(dataset: AbstractDataset, indices: np.ndarray) -> Iterator[Tensor]:
    for start in range(0, len(indices), BATCH):
        yield torch.from_numpy(dataset.values(indices[start : start + BATCH]))


def _own(model: Model, dataset: AbstractDataset, indices: np.ndarray, seed: int) -> dict[str, np.ndarray]:
    noise = torch.Generator(model.device).manual_seed(derive(seed, "sampled"))
    collected = _Columns(len(indices))
    model.eval()
    with torch.inference_mode():
        for x in _batches(dataset, indices):
            rows = indices[collected.position : collected.position + len(x)]
            u = auxiliary_of(model, dataset, rows)
            q, prior = model.encode(model.place(x), u), model.prior.given(u)
            z = q.sample(noise)
            columns = {"mean": q.mean, "variance": q.variance, "sampled": z}
            if model.blueprint.posterior.has_density:
                columns["rate"] = kl(q, prior, z)
            if not model.blueprint.posterior.is_diagonal:
                columns["covariance"] = q.covariance
            normal = prior.normal()
            if u is not None and normal is not None:
                columns |= {"prior_mean": normal[0], "prior_variance": torch.exp(normal[1])}
            collected.add(**columns)
    return collected.arrays


def _foreign(
    encoder: Callable[..., Any], dataset: AbstractDataset, indices: np.ndarray, seed: int
) -> dict[str, np.ndarray]:
    noise = torch.Generator().manual_seed(derive(seed, "sampled"))
    collected = _Columns(len(indices))
    first = next(encoder.parameters(), None) if isinstance(encoder, torch.nn.Module) else None
    was_training = isinstance(encoder, torch.nn.Module) and encoder.training
    if isinstance(encoder, torch.nn.Module):
        encoder.eval()
    try:
        with torch.inference_mode():
            for x in _batches(dataset, indices):
                q = _checked(encoder(x if first is None else x.to(first)), len(x))
                collected.add(mean=q.mean, variance=q.variance, sampled=q.sample(noise))
    finally:
        if was_training:
            encoder.train()  # type: ignore[attr-defined]
    return collected.arrays


def _checked(output: Any, n_rows: int) -> AbstractPosteriorDistribution:
    """(mean, log_variance) as a posterior; anything else is refused with what came instead."""
    wanted = (
        f"the encoder must return (mean, log_variance), two arrays of shape ({n_rows}, latent) for this batch"
    )
    if not isinstance(output, (tuple, list)) or len(output) != 2:
        count = f" of {len(output)}" if isinstance(output, (tuple, list)) else ""
        raise InputError(
            f"{wanted}, got a {type(output).__name__}{count}; wrap it in a function that returns the pair."
        )
    try:
        mean, log_variance = (
            torch.as_tensor(np.asarray(o) if not isinstance(o, Tensor) else o).cpu() for o in output
        )
    except (TypeError, ValueError, RuntimeError):
        kinds = " and ".join(type(o).__name__ for o in output)
        raise InputError(f"{wanted}, got {kinds}.") from None
    if mean.ndim != 2 or mean.shape != log_variance.shape or len(mean) != n_rows:
        raise InputError(f"{wanted}, got shapes {tuple(mean.shape)} and {tuple(log_variance.shape)}.")
    if not (torch.is_floating_point(mean) and torch.is_floating_point(log_variance)):
        raise InputError(f"{wanted}, of floating type, got {mean.dtype} and {log_variance.dtype}.")
    for name, array in (("mean", mean), ("log_variance", log_variance)):
        if not torch.isfinite(array).all():
            raise InputError(
                f"the encoder returned a {name} that is not finite; the model may have diverged."
            )
    if log_variance.max() > 60:
        raise InputError(
            f"the encoder's log_variance reaches {float(log_variance.max()):.3g}, a variance beyond all scale; "
            "return the logarithm of the variance, not the variance or its exponential."
        )
    return DiagonalGaussian(mean, log_variance)


class _Columns:
    """Arrays filled batch by batch."""

    def __init__(self, n_samples: int) -> None:
        self.n_samples = n_samples
        self.position = 0
        self.arrays: dict[str, np.ndarray] = {}

    def add(self, **columns: Tensor) -> None:
        rows = 0
        for name, values in columns.items():
            rows = len(values)
            if name not in self.arrays:
                self.arrays[name] = np.empty((self.n_samples, *values.shape[1:]), dtype=np.float32)
            if self.arrays[name].shape[1] != values.shape[1]:
                raise InputError(
                    f"the encoder returned {self.arrays[name].shape[1]} latents for one batch and "
                    f"{values.shape[1]} for another; the number must not change."
                )
            self.arrays[name][self.position : self.position + rows] = values.float().cpu().numpy()
        self.position += rows


def _prior_fields(model: Model) -> dict[str, Any]:
    """What passive means; a conditional prior's moments were collected sample by sample."""
    fields: dict[str, Any] = {
        "meaning_of_passive": model.prior.meaning_of_passive,
        "prior_is_factorised": model.prior.is_factorised,
    }
    if not model.blueprint.n_auxiliary:
        mean, variance = (part.detach().float().cpu().numpy() for part in model.prior.passive_shape())
        fields |= {"prior_mean": mean, "prior_variance": variance}
    return fields


def _assemble(
    dataset: AbstractDataset, indices: np.ndarray, arrays: dict[str, np.ndarray], extra: dict[str, Any]
) -> Representation:
    factors = dataset.factors(indices) if dataset.factor_names else None
    representation = Representation(
        mean=arrays["mean"],
        variance=arrays["variance"],
        sampled=arrays["sampled"],
        factors=factors,
        factor_names=tuple(dataset.factor_names),
        factor_kinds=tuple(dataset.factor_kinds),
        ids=dataset.ids(indices),
        indices=indices,
        rate=arrays.get("rate"),
        prior_mean=arrays.get("prior_mean"),
        prior_variance=arrays.get("prior_variance"),
        covariance=arrays.get("covariance"),
    )
    return dataclasses.replace(representation, **extra)


def auxiliary_of(
    model: Model, dataset: AbstractDataset, indices: Int[np.ndarray, " sample"]
) -> Float[Tensor, "sample auxiliary"] | None:
    """What encoder and prior are given beside the observations, on the model's device; mostly nothing."""
    if not model.blueprint.n_auxiliary:
        return None
    return auxiliary_values(dataset, indices).to(model.device, model.dtype)


def auxiliary_values(
    data: AbstractDataset, indices: Int[np.ndarray, " sample"]
) -> Float[Tensor, "sample factor"]:
    """The factors as floats; those of n values 0 … n − 1 are divided by n − 1, so that they lie in [0, 1].

    The published iVAE code passes raw factor values; the scale only changes the first layer's weights, and
    raw indices up to 39 beside a categorical 0–2 make it start badly conditioned.
    """
    if not data.factor_names:
        raise InputError(
            f"{data.name} has no factors or labels to condition on; pass factors= when you make it."
        )
    factors = data.factors(indices).astype(np.float32)
    sizes = np.array([max(size - 1, 1) for size in data.factor_sizes], dtype=np.float32)
    return torch.from_numpy(factors / sizes)


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
    for first in range(0, len(indices), DECODER_BATCH):
        rows = indices[first : first + DECODER_BATCH]
        x = model.place(torch.from_numpy(dataset.values(rows)))
        yield x, model.encode(x, auxiliary_of(model, dataset, rows))
