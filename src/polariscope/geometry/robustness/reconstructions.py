"""Codes and outputs of observations, for probes that compare two sets of observations."""

from __future__ import annotations

import dataclasses

import numpy as np
from jaxtyping import Float, Int

from polariscope.core.errors import InputError
from polariscope.data.dataset import AbstractDataset
from polariscope.geometry.decoder_function import decoder_function
from polariscope.models.inference import encode_batches, inference_mode
from polariscope.models.posteriors import AbstractPosteriorDistribution, kl
from polariscope.models.protocol import AbstractModel


@dataclasses.dataclass(frozen=True, eq=False)
class ObservedCodes:
    """Codes and outputs of a model for observations."""

    mean: Float[np.ndarray, "sample latent"]
    rate: Float[np.ndarray, " latent"] | None
    outputs: Float[np.ndarray, "sample *shape"]
    distributions: list[AbstractPosteriorDistribution]


def encode_values(
    model: AbstractModel,
    dataset: AbstractDataset,
    indices: Int[np.ndarray, " sample"],
    x: np.ndarray,
    seed: int,
) -> ObservedCodes:
    """Return the codes and outputs of ``x``, which replaces the observations at ``indices``."""
    decoder = decoder_function(model)
    means, rates, outputs, distributions = [], [], [], []
    with inference_mode(model):
        for encoded in encode_batches(model, dataset, indices, values=x):
            q = encoded.posterior
            means.append(q.mean.double().cpu().numpy())
            if model.has_density:
                z = encoded.draw(seed, "geometry", "robustness")
                rates.append(kl(q, model.prior.given(encoded.auxiliary), z).double().cpu().numpy())
            outputs.append(decoder(q.mean).float().cpu().numpy())
            distributions.append(q)
    mean = np.concatenate(means)
    if not np.isfinite(mean).all():
        raise InputError(
            problem="the encoder returned codes that are not finite", remedy="the model might have diverged"
        )
    rate = np.concatenate(rates).mean(axis=0) if rates else None
    return ObservedCodes(mean, rate, np.concatenate(outputs), distributions)


def spread_ratio(
    codes: Float[np.ndarray, "sample latent"], known: Float[np.ndarray, "known latent"]
) -> float:
    """Return Tr Var of codes divided by that of the known ones."""
    spread = float(known.var(axis=0).sum())
    if spread == 0:
        raise InputError(
            problem="the known codes are constant: all latents are passive, and there is no spread to compare"
        )
    return float(codes.var(axis=0).sum()) / spread


def square_error(outputs: Float[np.ndarray, "sample *shape"], x: Float[np.ndarray, "sample *shape"]) -> float:
    """Return the squared error, summed over values and averaged over observations."""
    return float(((outputs - x) ** 2).sum(dtype=np.float64) / len(x))
