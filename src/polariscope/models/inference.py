"""The loop that runs a network without training it: observations through an encoder, in batches.

Every analysis of a model uses it: representation, layers, geometry, sizing, estimator. The noise of a sample is a
function of its index and the seed (:func:`polariscope.core.seeds.normals`), so results do not depend on the batches,
except for rounding.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from polariscope.analysis.code_view import CodeView, Per
from polariscope.analysis.representation import Representation
from polariscope.core.errors import InputError
from polariscope.core.seeds import derive, generator, normals
from polariscope.data.data_like import DataLike
from polariscope.data.dataset import AbstractDataset
from polariscope.models.posteriors import AbstractPosteriorDistribution, kl
from polariscope.models.protocol import AbstractModel, ModelLike

VALUES = 2**21
"""Number of values that are in a network at once: about 500 images of 64 × 64 pixels."""
MIN_BATCH, MAX_BATCH = 16, 1024
"""Minimum and maximum number of observations in a batch."""

Progress = Callable[[int, int], None]
"""Function that is called with the number of observations done and their total number."""


@dataclasses.dataclass(frozen=True, eq=False)
class EncodedBatch:
    """A batch of observations and their posteriors."""

    rows: slice
    """Rows of the batch among the requested observations."""
    indices: Int[np.ndarray, " sample"]
    """Their indices in the dataset."""
    x: Float[Tensor, "sample *shape"]
    auxiliary: Float[Tensor, "sample auxiliary"] | None
    posterior: AbstractPosteriorDistribution

    def draw(self, seed: int, *names: object) -> Float[Tensor, "sample latent"]:
        """Draw once from each posterior, with noise of the stream ``names``."""
        mean = self.posterior.mean
        noise = normals(seed, *names, indices=self.indices, width=mean.shape[1])
        return self.posterior.at(torch.from_numpy(noise).to(device=mean.device, dtype=mean.dtype))


def batch_size(n_features: int) -> int:
    """Return the number of observations in a batch of bounded memory, which is the same on every machine.

    >>> batch_size(64 * 64), batch_size(10), batch_size(10**6)
    (512, 1024, 16)
    """
    return max(MIN_BATCH, min(MAX_BATCH, VALUES // max(1, n_features)))


def chunks(n_rows: int, size: int) -> Iterator[slice]:
    """Yield consecutive slices of ``size`` rows.

    >>> list(chunks(5, 2))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    for first in range(0, n_rows, size):
        yield slice(first, min(first + size, n_rows))


@contextlib.contextmanager
def evaluating(model: ModelLike) -> Iterator[None]:
    """Set a module and all its parts to evaluation mode, in which the rows of a batch do not depend on each other.

    Afterwards each part returns to its previous mode.
    """
    modes = [(part, part.training) for part in model.modules()] if isinstance(model, nn.Module) else []
    for part, _ in modes:
        part.training = False
    try:
        yield
    finally:
        for part, mode in modes:
            part.training = mode


@contextlib.contextmanager
def inference_mode(model: ModelLike) -> Iterator[None]:
    """Set a module to evaluation mode and compute no gradients."""
    with torch.inference_mode(), evaluating(model):
        yield


def encode_batches(
    model: AbstractModel,
    dataset: AbstractDataset,
    indices: Int[np.ndarray, " sample"],
    *,
    values: Float[np.ndarray, "sample *shape"] | None = None,
    progress: Progress | None = None,
) -> Iterator[EncodedBatch]:
    """Encode observations in batches; iterate inside :func:`inference_mode`.

    :param values: (default: those of the dataset) observations that replace those at ``indices``.
    :param progress: function that is called after each batch.
    """
    for rows in chunks(len(indices), batch_size(dataset.n_features)):
        # The caller uses the batch before progress is reported.
        yield _encode(model, dataset, indices, rows, values)
        if progress is not None:
            progress(rows.stop, len(indices))


def _encode(
    model: AbstractModel,
    dataset: AbstractDataset,
    indices: Int[np.ndarray, " sample"],
    rows: slice,
    values: Float[np.ndarray, "sample *shape"] | None,
) -> EncodedBatch:
    batch_indices = indices[rows]
    observations = dataset.values(batch_indices) if values is None else values[rows]
    if model.needs_counts and not dataset.is_counts:
        from polariscope.data.counts import refuse_non_counts

        refuse_non_counts(observations)
    x = model.place(torch.from_numpy(observations))
    auxiliary = auxiliary_of(model, dataset, batch_indices)
    return EncodedBatch(rows, batch_indices, x, auxiliary, model.encode(x, auxiliary))


def collect(
    model: AbstractModel,
    dataset: AbstractDataset,
    indices: Int[np.ndarray, " sample"],
    compute: Callable[[EncodedBatch], dict[str, Tensor]],
    *,
    make: Callable[[tuple[int, ...]], np.ndarray] | None = None,
    values: Float[np.ndarray, "sample *shape"] | None = None,
    progress: Progress | None = None,
) -> dict[str, np.ndarray]:
    """Apply ``compute`` to each batch and join the results in arrays with a row for each observation.

    If a batch exceeds the memory of the device, it is halved, which changes only rounding.

    :param make: (default: float32 in memory) function that creates an array of a shape, for example on disk.
    :param values: as in :func:`encode_batches`, like ``progress``.
    """
    arrays: dict[str, np.ndarray] = {}

    def put(name: str, rows: slice, column: Tensor) -> None:
        shape = (len(indices), *column.shape[1:])
        if name not in arrays:
            arrays[name] = np.empty(shape, dtype=np.float32) if make is None else make(shape)
        arrays[name][rows] = column.to(torch.float32).cpu().numpy()

    # In reverse order, because pop takes the last one.
    waiting = list(chunks(len(indices), batch_size(dataset.n_features)))[::-1]
    with inference_mode(model):
        while waiting:
            rows = waiting.pop()
            try:
                columns = compute(_encode(model, dataset, indices, rows, values))
            except torch.OutOfMemoryError:
                # A single observation cannot be halved.
                if rows.stop - rows.start == 1:
                    raise
                middle = (rows.start + rows.stop) // 2
                waiting += [slice(middle, rows.stop), slice(rows.start, middle)]
                continue
            for name, column in columns.items():
                put(name, rows, column)
            if progress is not None:
                progress(rows.stop, len(indices))
    return arrays


def decode_codes(
    model: AbstractModel, codes: Float[np.ndarray, "sample latent"]
) -> Float[np.ndarray, "sample *shape"]:
    """Return the decoder's mean at each code, float32."""
    outputs = []
    with inference_mode(model):
        for rows in chunks(len(codes), batch_size(int(np.prod(model.shape)))):
            # PyTorch does not accept arrays with negative strides.
            z = torch.from_numpy(np.ascontiguousarray(codes[rows])).to(model.device, model.dtype)
            outputs.append(model.decode(z).mean.float().cpu().numpy())
    return np.concatenate(outputs)


def draw_prior(
    model: AbstractModel, n_draws: int, seed: int
) -> tuple[Float[np.ndarray, "draw latent"], Float[np.ndarray, " draw"]] | None:
    """Draw from the prior and return the draws and log p(z), float64; None if the prior depends on the sample.

    :param model: model with the prior, which is not changed.
    :param n_draws: number of draws.
    :param seed: seed of the draws.
    """
    if model.has_conditional_prior:
        return None
    # A copy in float64 on the CPU, so draws do not depend on the device of the model.
    prior = copy.deepcopy(model.prior).to(device="cpu", dtype=torch.float64)
    noise = torch.Generator().manual_seed(derive(seed, "prior"))
    with torch.inference_mode():
        z = prior.sample(n_draws, noise)
        return z.numpy(), prior.log_density(z).sum(1).numpy()


def represent(
    model: AbstractModel,
    dataset: AbstractDataset,
    indices: Int[np.ndarray, " sample"],
    seed: int,
    progress: Progress | None = None,
    watch: Callable[[EncodedBatch], None] | None = None,
    per: Per = CodeView.per,
) -> Representation:
    """Return mean, variance and one draw of the posterior of each observation.

    :param model: a model; :func:`polariscope.wrap` creates one from any function or module.
    :param seed: seed of the draws.
    :param watch: (default None) function that is called with every batch, for results besides the posterior. A batch
        that exceeded the memory is passed again in halves.
    :param per: (default "channel") unit of codes with several axes: "channel" or "value".
    """
    check_shape(model, dataset)

    def compute(batch: EncodedBatch) -> dict[str, Tensor]:
        q, prior, z = batch.posterior, model.prior.given(batch.auxiliary), batch.draw(seed, "sampled")
        columns = {"mean": q.mean, "variance": q.variance, "sampled": z}
        if model.has_density:
            columns["rate"] = kl(q, prior, z)
        if not model.is_diagonal:
            columns["covariance"] = q.covariance
        normal = prior.normal()
        # A conditional prior has other moments for every sample; others are added once, below.
        if model.has_conditional_prior and normal is not None:
            columns |= {"prior_mean": normal[0], "prior_variance": torch.exp(normal[1])}
        if watch is not None:
            watch(batch)
        return columns

    arrays = collect(model, dataset, indices, compute, progress=progress)
    fields = {
        **_prior_fields(model),
        "notes": tuple(getattr(model, "notes", ())),
        "code_shape": model.code_shape,
        "per": per,
    }
    return _assemble(dataset, indices, arrays, fields)


def check_shape(model: AbstractModel, dataset: AbstractDataset) -> None:
    """Raise an error if data do not have the shape that the model was trained on."""
    if model.shape and tuple(dataset.shape) != model.shape:
        raise InputError(
            problem=f"the model was trained on observations of shape {model.shape}",
            got=f"data of shape {tuple(dataset.shape)}",
            remedy="use the data it was trained on",
        )


def _prior_fields(model: AbstractModel) -> dict[str, Any]:
    """Return the fields about the prior; the moments of a conditional prior are collected for each sample instead."""
    fields: dict[str, Any] = {
        "meaning_of_passive": model.prior.meaning_of_passive,
        "prior_is_factorised": model.prior.is_factorised,
        "variance_is_exact": model.has_exact_variance,
    }
    if not model.has_conditional_prior:
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
    model: AbstractModel, dataset: AbstractDataset, indices: Int[np.ndarray, " sample"]
) -> Float[Tensor, "sample auxiliary"] | None:
    """Return the auxiliary input of encoder and prior on the model's device; None for most models."""
    if not model.n_auxiliary:
        return None
    if model.covariates is not None:
        if len(dataset) != len(model.covariates):
            raise InputError(
                "data",
                f"be those that the model was opened with, {len(model.covariates)} observations with covariates",
                got=f"{len(dataset)} observations",
            )
        return torch.from_numpy(model.covariates[indices]).to(model.device, model.dtype)
    return auxiliary_values(dataset, indices).to(model.device, model.dtype)


def auxiliary_values(
    data: AbstractDataset, indices: Int[np.ndarray, " sample"]
) -> Float[Tensor, "sample factor"]:
    """Return the factors as floats; factors with values 0 … n − 1 are divided by n − 1, so they lie in [0, 1].

    The published iVAE code passes raw factor values. The scale only changes the weights of the first layer, but raw
    indices up to 39 next to a categorical factor 0–2 make the initial problem badly conditioned.
    """
    if not data.factor_names:
        raise InputError(
            problem=f"{data.name} has no factors or labels to condition on",
            remedy="pass factors when you create it",
        )
    factors = data.factors(indices).astype(np.float32)
    sizes = np.array([max(size - 1, 1) for size in data.factor_sizes], dtype=np.float32)
    return torch.from_numpy(factors / sizes)


def choose_observations(
    model: ModelLike, data: DataLike, n_samples: int | None, seed: int
) -> tuple[AbstractDataset, Int[np.ndarray, " sample"]]:
    """Return data as a dataset and ``n_samples`` of its indices, drawn without replacement; None for all."""
    if not isinstance(model, AbstractModel):
        raise InputError(
            "model",
            "have an encoder and a decoder",
            got=type(model).__name__,
            remedy="wrap yours with polariscope.wrap",
        )
    dataset = data if isinstance(data, AbstractDataset) else _as_dataset(model, data)
    if model.units:
        from polariscope.data.chain import in_units

        dataset = in_units(dataset, model.units)
    if model.shape and tuple(dataset.shape) != model.shape:
        raise InputError(
            problem=f"the model was trained on observations of shape {model.shape}",
            got=f"data of shape {tuple(dataset.shape)}",
            remedy="use data like those it was trained on",
        )
    if n_samples is not None and n_samples < 1:
        raise InputError("n_samples", "be at least 1, or None for all of the data", got=n_samples)
    if n_samples is None or n_samples >= len(dataset):
        return dataset, np.arange(len(dataset))
    return dataset, generator(seed, "geometry", "observations").choice(
        len(dataset), size=n_samples, replace=False
    )


def _as_dataset(model: AbstractModel, array: Any) -> AbstractDataset:
    """Convert an array to a dataset: bytes of images are divided by 255; floats must lie in [0, 1]."""
    from polariscope.data.own.arrays import from_arrays

    shape = model.shape
    # An array with the shape of the model's observations is not ambiguous.
    as_in_model = len(shape) == 3 and tuple(getattr(array, "shape", ()))[1:] == shape
    return from_arrays(array, layout="channels-first" if as_in_model else None)
