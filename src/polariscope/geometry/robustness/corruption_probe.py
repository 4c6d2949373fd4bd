"""Effect of corrupted observations on codes."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np
import torch
from jaxtyping import Float, Int

from polariscope.core.errors import InputError
from polariscope.core.records import AbstractRecord
from polariscope.core.seeds import generator
from polariscope.data.data_like import DataLike
from polariscope.data.dataset import AbstractDataset
from polariscope.geometry.decoder_function import opened
from polariscope.geometry.robustness.corruptions import Corruption, standard_corruptions
from polariscope.geometry.robustness.reconstructions import (
    ObservedCodes,
    encode_values,
    spread_ratio,
    square_error,
)
from polariscope.models.inference import choose_observations
from polariscope.models.protocol import WholeModel
from polariscope.numerics.distances import squared_distances


@dataclasses.dataclass(frozen=True, eq=False)
class Corrupted(AbstractRecord):
    """Comparison of the codes of corrupted and clean observations."""

    retained: float
    """1 − Σ‖μ' − μ‖² / Σ‖μ − μ̄‖², at most 1, without a lower bound: 1 if codes are unchanged, 0 if they are as far off
    as the mean code, −1 if they have the same spread and are unrelated, and less if they move further."""
    retained_by_latent: Float[np.ndarray, " latent"]
    """``retained`` of each latent; 0 for a latent whose clean code is constant."""
    spread: float
    """Tr Var[μ'] / Tr Var[μ]: near 0 if all corrupted observations have the same code."""
    rate: Float[np.ndarray, " latent"] | None
    """Mean KL of q(z|x') from the prior, in nats; None for a deterministic encoder."""
    shift: Float[np.ndarray, " latent"] | None
    """Mean KL(q(z|x') ‖ q(z|x)), in nats; None unless posteriors are diagonal Gaussians."""
    error: float
    """Mean squared error of the decoder at μ' relative to the clean observation, summed over its values."""
    clean_error: float
    """Mean squared error at μ."""
    recognised: float
    """Share of corrupted codes whose nearest clean code, in the clean codes' standard deviations, is their own."""
    factor_accuracy: dict[str, float]
    """Share of corrupted codes whose nearest clean code has the same value, for each discrete factor; empty without
    factors."""


def corruption_probe(
    model: WholeModel,
    data: DataLike,
    corruptions: Mapping[str, Corruption] | None = None,
    *,
    n_samples: int | None = 500,
    seed: int = 0,
) -> dict[str, Corrupted]:
    """Encode the same observations clean and corrupted, and compare the codes.

    ``corruptions`` maps names to functions of a batch and a generator; by default pixels are flipped with probability
    0.001, 0.01 and 0.05, and colours are inverted. ``retained`` near 1 means that codes are robust, and ``spread`` near
    0 that all corrupted inputs have similar codes. ``retained`` is not a share: below 0 the corrupted code is a worse
    estimate of the clean one than the mean code, and its value depends on the distance of the codes. ``recognised`` is
    a share.

    Reference: mushom2020 §5.6, Figs 5.17–5.18, judges traversals by eye; the numbers are ours.
    """
    model, data = opened(model, data)
    dataset, indices = choose_observations(model, data, n_samples, seed)
    if len(indices) < 2:
        raise InputError(problem="a corruption probe requires at least 2 observations", got=len(indices))
    x = dataset.values(indices)
    clean = encode_values(model, dataset, indices, x, seed)
    results = {}
    for name, corrupt in (standard_corruptions() if corruptions is None else corruptions).items():
        changed = np.asarray(corrupt(x, generator(seed, "corruption", name)))
        if changed.dtype == np.uint8:
            raise InputError(
                f"corruption {name!r}",
                "return values from 0 to 1, like its input",
                got="uint8",
                remedy="divide bytes by 255",
            )
        changed = changed.astype(x.dtype, copy=False)
        if changed.shape != x.shape or not np.isfinite(changed).all():
            raise InputError(
                f"corruption {name!r}", f"return finite values of shape {x.shape}", got=changed.shape
            )
        moved = encode_values(model, dataset, indices, changed, seed)
        results[name] = _compare(model, dataset, indices, x, clean, moved)
    return results


def _compare(
    model: WholeModel,
    dataset: AbstractDataset,
    indices: Int[np.ndarray, " sample"],
    x: np.ndarray,
    clean: ObservedCodes,
    moved: ObservedCodes,
) -> Corrupted:
    lost = ((moved.mean - clean.mean) ** 2).sum(axis=0)
    total = ((clean.mean - clean.mean.mean(axis=0)) ** 2).sum(axis=0)
    if total.sum() == 0:
        raise InputError(
            problem="the clean codes are constant: all latents are passive, and there is nothing to compare"
        )
    shift = None
    if model.has_density and model.is_diagonal:
        with torch.inference_mode():
            parts = [
                b.kl_to_normal(a.mean, a.log_variance)
                for a, b in zip(clean.distributions, moved.distributions, strict=True)
            ]
        shift = torch.cat(parts).double().mean(dim=0).cpu().numpy()
    nearest = _nearest(moved.mean, clean.mean)
    return Corrupted(
        retained=float(1 - lost.sum() / total.sum()),
        # A ratio of 1 gives 0 for latents whose clean code is constant.
        retained_by_latent=1 - np.divide(lost, total, out=np.ones_like(lost), where=total > 0),
        spread=spread_ratio(moved.mean, clean.mean),
        rate=moved.rate,
        shift=shift,
        error=square_error(moved.outputs, x),
        clean_error=square_error(clean.outputs, x),
        recognised=float((nearest == np.arange(len(x))).mean()),
        factor_accuracy=_factor_accuracy(dataset, indices, nearest),
    )


def _factor_accuracy(
    dataset: AbstractDataset, indices: Int[np.ndarray, " sample"], nearest: Int[np.ndarray, " sample"]
) -> dict[str, float]:
    if not dataset.factor_names:
        return {}
    factors = dataset.factors(indices)
    agree = (factors[nearest] == factors).mean(axis=0)
    described = zip(dataset.factor_names, dataset.factor_kinds, agree, strict=True)
    return {name: float(share) for name, kind, share in described if kind != "continuous"}


def _nearest(
    queries: Float[np.ndarray, "sample latent"], codes: Float[np.ndarray, "sample latent"]
) -> Int[np.ndarray, " sample"]:
    """Return the row of the nearest code, in units of each latent's standard deviation, without constant latents."""
    scale = codes.std(axis=0)
    both = np.concatenate([queries, codes])[:, scale > 0] / scale[scale > 0]
    # All rows are compared with each other; only the block of queries against codes is used.
    return squared_distances(both)[: len(queries), len(queries) :].argmin(axis=1)
