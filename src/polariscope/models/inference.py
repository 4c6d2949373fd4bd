"""The one loop that runs a network without training it: observations through an encoder, in batches.

Everything that looks at a model uses it: representation, layers, geometry, sizing, estimator. The noise of a sample is
a function of its index and the seed (:func:`polariscope.core.seeds.normals`), so results do not depend on how
samples are put together; only rounding does.
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

from polariscope.analysis.representation import Representation
from polariscope.core.errors import InputError
from polariscope.core.seeds import derive, generator, normals
from polariscope.data.data_like import DataLike
from polariscope.data.dataset import AbstractDataset
from polariscope.models.posteriors import AbstractPosteriorDistribution, kl
from polariscope.models.protocol import AbstractModel, ModelLike

VALUES = 2**21
"""Numbers of observations that are in a network at once: half a thousand images of 64 × 64 pixels."""
SMALLEST, LARGEST = 16, 1024
"""Fewest and most observations in a batch."""

Progress = Callable[[int, int], None]
"""Told how many observations are done, and of how many."""


@dataclasses.dataclass(frozen=True, eq=False)
class EncodedBatch:
    """A batch of observations and what the encoder makes of them."""

    rows: slice
    """Which of the observations asked for these are."""
    indices: Int[np.ndarray, " sample"]
    """Their indices in the dataset."""
    x: Float[Tensor, "sample *shape"]
    auxiliary: Float[Tensor, "sample auxiliary"] | None
    posterior: AbstractPosteriorDistribution

    def draw(self, seed: int, *names: object) -> Float[Tensor, "sample latent"]:
        """One draw of each posterior, by noise of the stream ``names``."""
        mean = self.posterior.mean
        noise = normals(seed, *names, indices=self.indices, width=mean.shape[1])
        return self.posterior.at(torch.from_numpy(noise).to(device=mean.device, dtype=mean.dtype))


def batch_size(n_features: int) -> int:
    """Observations in a batch, from the size of one: bounded memory, and the same on every machine.

    >>> batch_size(64 * 64), batch_size(10), batch_size(10**6)
    (512, 1024, 16)
    """
    return max(SMALLEST, min(LARGEST, VALUES // max(1, n_features)))


def chunks(n_rows: int, size: int) -> Iterator[slice]:
    """Consecutive slices of so many rows.

    >>> list(chunks(5, 2))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    for first in range(0, n_rows, size):
        yield slice(first, min(first + size, n_rows))


@contextlib.contextmanager
def evaluating(model: ModelLike) -> Iterator[None]:
    """Inside, a module and all in it are in evaluation mode, where the rows of a batch do not depend on each other.

    Afterwards each part is in the mode it was in.
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
    """Inside, a module is in evaluation mode and no gradients are computed."""
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
    """Batches of observations through the encoder; to be read inside :func:`inference_mode`.

    :param values: (default: those of the dataset) observations that stand in for those at ``indices``.
    :param progress: told after each batch how far it is.
    """
    for rows in chunks(len(indices), batch_size(dataset.n_features)):
        yield _see(model, dataset, indices, rows, values)
        if progress is not None:
            progress(rows.stop, len(indices))


def _see(
    model: AbstractModel,
    dataset: AbstractDataset,
    indices: Int[np.ndarray, " sample"],
    rows: slice,
    values: Float[np.ndarray, "sample *shape"] | None,
) -> EncodedBatch:
    batch_indices = indices[rows]
    seen = dataset.values(batch_indices) if values is None else values[rows]
    if model.needs_counts and not dataset.is_counts:
        from polariscope.data.counts import refuse_non_counts

        refuse_non_counts(seen)
    x = model.place(torch.from_numpy(seen))
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
    """What ``compute`` gives for each batch, put together in arrays with a row for each observation.

    A batch that a device has no memory for is halved, which changes nothing but rounding.

    :param make: (default: float32 in memory) makes an array of a shape, to keep large ones elsewhere.
    :param values: as in :func:`look`, like ``progress``.
    """
    arrays: dict[str, np.ndarray] = {}

    def put(name: str, rows: slice, column: Tensor) -> None:
        shape = (len(indices), *column.shape[1:])
        if name not in arrays:
            arrays[name] = np.empty(shape, dtype=np.float32) if make is None else make(shape)
        arrays[name][rows] = column.to(torch.float32).cpu().numpy()

    waiting = list(chunks(len(indices), batch_size(dataset.n_features)))[::-1]
    with inference_mode(model):
        while waiting:
            rows = waiting.pop()
            try:
                columns = compute(_see(model, dataset, indices, rows, values))
            except torch.OutOfMemoryError:
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
    """The decoder's mean at each code, float32."""
    outputs = []
    with inference_mode(model):
        for rows in chunks(len(codes), batch_size(int(np.prod(model.shape)))):
            z = torch.from_numpy(np.ascontiguousarray(codes[rows])).to(model.device, model.dtype)
            outputs.append(model.decode(z).mean.float().cpu().numpy())
    return np.concatenate(outputs)


def draw_prior(
    model: AbstractModel, n_draws: int, seed: int
) -> tuple[Float[np.ndarray, "draw latent"], Float[np.ndarray, " draw"]] | None:
    """Draws of the prior and log p(z) at each, float64; None for a prior that depends on the sample.

    :param model: whose prior it is; it stays as it is.
    :param n_draws: how many.
    :param seed: seed of the draws.
    """
    if model.n_auxiliary:
        return None
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
) -> Representation:
    """Mean, variance and one draw of the posterior of each of these observations.

    :param model: a model; :func:`polariscope.wrap` makes one of any function or module.
    :param seed: seed of the draws.
    :param watch: (default None) shown every batch as it passes, to look at more than the posterior; a batch for
        which there was no memory is shown again in halves.
    """
    check_shape(model, dataset)

    def compute(seen: EncodedBatch) -> dict[str, Tensor]:
        q, prior, z = seen.posterior, model.prior.given(seen.auxiliary), seen.draw(seed, "sampled")
        columns = {"mean": q.mean, "variance": q.variance, "sampled": z}
        if model.has_density:
            columns["rate"] = kl(q, prior, z)
        if not model.is_diagonal:
            columns["covariance"] = q.covariance
        normal = prior.normal()
        if seen.auxiliary is not None and normal is not None:
            columns |= {"prior_mean": normal[0], "prior_variance": torch.exp(normal[1])}
        if watch is not None:
            watch(seen)
        return columns

    arrays = collect(model, dataset, indices, compute, progress=progress)
    fields = {**_prior_fields(model), "notes": tuple(getattr(model, "notes", ()))}
    return _assemble(dataset, indices, arrays, fields)


def check_shape(model: AbstractModel, dataset: AbstractDataset) -> None:
    """Refuse data of another shape than the model takes."""
    if model.shape and tuple(dataset.shape) != model.shape:
        raise InputError(
            problem=f"the model was trained on observations of shape {model.shape}",
            got=f"data of shape {tuple(dataset.shape)}",
            remedy="use the data it was trained on",
        )


def _prior_fields(model: AbstractModel) -> dict[str, Any]:
    """What passive means; a conditional prior's moments were collected sample by sample."""
    fields: dict[str, Any] = {
        "meaning_of_passive": model.prior.meaning_of_passive,
        "prior_is_factorised": model.prior.is_factorised,
        "variance_is_exact": model.knows_its_variance,
    }
    if not model.n_auxiliary:
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
    """What encoder and prior are given beside the observations, on the model's device; mostly nothing."""
    if not model.n_auxiliary:
        return None
    return auxiliary_values(dataset, indices).to(model.device, model.dtype)


def auxiliary_values(
    data: AbstractDataset, indices: Int[np.ndarray, " sample"]
) -> Float[Tensor, "sample factor"]:
    """The factors as floats; those of n values 0 … n − 1 are divided by n − 1, so they lie in [0, 1].

    The published iVAE code passes raw factor values; the scale only changes the first layer's weights, and
    raw indices up to 39 beside a categorical 0–2 make it start badly conditioned.
    """
    if not data.factor_names:
        raise InputError(
            problem=f"{data.name} has no factors or labels to condition on",
            remedy="give it factors when you make it",
        )
    factors = data.factors(indices).astype(np.float32)
    sizes = np.array([max(size - 1, 1) for size in data.factor_sizes], dtype=np.float32)
    return torch.from_numpy(factors / sizes)


def choose_observations(
    model: ModelLike, data: DataLike, n_samples: int | None, seed: int
) -> tuple[AbstractDataset, Int[np.ndarray, " sample"]]:
    """The dataset (or array as one) and ``n_samples`` of its indices, drawn without replacement; None: all."""
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
    """An array as data are: images of bytes divided by 255, those of floats in [0, 1] or refused."""
    from polariscope.data.own.arrays import from_arrays

    shape = model.shape
    as_in_model = len(shape) == 3 and tuple(getattr(array, "shape", ()))[1:] == shape
    return from_arrays(array, layout="channels-first" if as_in_model else None)
