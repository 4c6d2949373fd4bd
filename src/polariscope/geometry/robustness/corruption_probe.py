"""What becomes of the codes when observations are corrupted."""

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
    """Codes of corrupted observations against those of the same observations, clean."""

    retained: float
    """1 − Σ‖μ' − μ‖² / Σ‖μ − μ̄‖², at most 1, without a lower bound: 1 when codes stay, 0 when they are as far off as
    the mean code, −1 when they are as widely spread as before and unrelated, and less when they are thrown further."""
    retained_by_latent: Float[np.ndarray, " latent"]
    """The same for each latent; 0, whatever the corruption does, for one whose clean code never varies."""
    spread: float
    """Tr Var[μ'] / Tr Var[μ]: near 0 when all corrupted observations get one code."""
    rate: Float[np.ndarray, " latent"] | None
    """Mean KL of q(z|x') from the prior, nats; None for a deterministic encoder."""
    shift: Float[np.ndarray, " latent"] | None
    """Mean KL(q(z|x') ‖ q(z|x)), nats; None unless posteriors are diagonal Gaussians."""
    error: float
    """Mean square error of the decoder at μ' against the clean observation, summed over its values."""
    clean_error: float
    """The same at μ."""
    recognised: float
    """Share of corrupted codes whose nearest clean code, in the clean codes' standard deviations, is their own."""
    factor_accuracy: dict[str, float]
    """Share whose nearest clean code has the same value of a discrete factor; empty without factors."""


def corruption_probe(
    model: WholeModel,
    data: DataLike,
    corruptions: Mapping[str, Corruption] | None = None,
    *,
    n_samples: int | None = 500,
    seed: int = 0,
) -> dict[str, Corrupted]:
    """Encode the same observations clean and corrupted, and see what of the codes is left.

    ``corruptions`` are functions of a batch and a generator, by name; by default pixels flipped with probability
    0.001, 0.01 and 0.05 and inverted colours. ``retained`` near 1 says that a code survives, ``spread`` near 0
    that corrupted inputs all collapse to one region. ``retained`` is no share: below 0 the corrupted code says less
    of the clean one than their mean does, and how far below depends on how far codes are thrown; ``recognised`` is
    a share.

    Reference: mushom2020 §5.6, Figs 5.17–5.18, judges traversals by eye; the numbers are ours.
    """
    dataset, indices = choose_observations(model, data, n_samples, seed)
    if len(indices) < 2:
        raise InputError(problem="at least two observations are needed", got=len(indices))
    x = dataset.values(indices)
    clean = encode_values(model, dataset, indices, x, seed)
    results = {}
    for name, corrupt in (standard_corruptions() if corruptions is None else corruptions).items():
        changed = np.asarray(corrupt(x, generator(seed, "corruption", name)))
        if changed.dtype == np.uint8:
            raise InputError(
                f"corruption {name!r}",
                "return values like those it is given, from 0 to 1",
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
            problem="the clean codes never vary: all latents are passive, and nothing can be lost"
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
    """Row of the nearest code, each latent in units of its standard deviation; latents that never vary are left out."""
    scale = codes.std(axis=0)
    both = np.concatenate([queries, codes])[:, scale > 0] / scale[scale > 0]
    return squared_distances(both)[: len(queries), len(queries) :].argmin(axis=1)
