"""Residuals of observations under the likelihood of a model."""

from __future__ import annotations

import dataclasses

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from polariscope.analysis.likelihood_fit import (
    MAX_OBSERVATIONS,
    LikelihoodFit,
    Rival,
    RivalReason,
    Source,
    dispersion_of,
    distance_from_uniform,
    reliability_gap,
)
from polariscope.core.seeds import generator
from polariscope.data.dataset import AbstractDataset
from polariscope.models.inference import encode_batches, inference_mode
from polariscope.models.likelihoods import AbstractLikelihoodDistribution, Residuals, family
from polariscope.models.model import Model
from polariscope.models.protocol import AbstractModel

MAX_VALUES = 2**19
"""Maximum number of values that are checked; a random subset of columns is used for wide observations."""
MIN_SHARE = 0.1
"""Minimum mean of a count relative to the mean of its column, if a density predicted the mean."""
SMALLEST_PROBABILITY = 1e-12
"""Probability of an integer under a density below which rounding dominates."""
MIN_OBSERVATIONS = 20
"""Minimum number of observations for a result."""


def likelihood_fit(
    model: AbstractModel,
    dataset: AbstractDataset,
    indices: Int[np.ndarray, " sample"],
    seed: int = 0,
    source: Source = "given",
    suitable: str = "",
) -> LikelihoodFit:
    """Return dispersion and calibration of observations under p(x|z), with z drawn from the posterior.

    If the model and its posterior were exact, x would be a draw from p(x|z) for such a z. At the posterior mean, which
    was inferred from x, residuals would be too small. Counts are mapped to F(x − 1) + u (F(x) − F(x − 1)) with a
    uniform u.

    :param model: a model; models of other libraries, and models without a decoder, are not checked.
    :param dataset: the data.
    :param indices: observations, preferably held-out; if there are more than 1,000, a random 1,000 are used.
    :param seed: (default 0) seed of the selection and of the draws.
    :param source: (default "given") source of the observations.
    :param suitable: (default "") the likelihood that suits the values, if they are counts or all 0 and 1.
    """
    n = min(len(indices), MAX_OBSERVATIONS)
    if not isinstance(model, Model) or not model.has_decoder or n < MIN_OBSERVATIONS:
        return LikelihoodFit()
    rng = generator(seed, "likelihood fit")
    sample = rng.permutation(indices)[:n]
    n_columns = min(dataset.n_features, max(1, MAX_VALUES // n))
    columns = torch.from_numpy(np.sort(rng.permutation(dataset.n_features)[:n_columns]))
    unit = _units(dataset)[columns.numpy()]
    parts: list[_Part] = []
    with inference_mode(model):
        for batch in encode_batches(model, dataset, sample):
            z = batch.draw(seed, "likelihood fit").to(model.dtype)
            whole = model.decode(z).like(batch.x)
            p = whole.at(columns.to(model.device))
            if p is None:
                return LikelihoodFit()
            x = batch.x.double().cpu().numpy()
            mean = whole.mean.double().cpu().numpy()
            originals = (dataset.inverse(each).reshape(len(x), -1)[:, columns.numpy()] for each in (x, mean))
            parts.append(
                _Part(p, batch.x.flatten(1)[:, columns.to(model.device)], *map(torch.from_numpy, originals))
            )
        return _fit(model, parts, unit, rng, source, suitable)


@dataclasses.dataclass(frozen=True, eq=False)
class _Part:
    """A batch: its likelihood, its values, and values and means in the original units of the data."""

    p: AbstractLikelihoodDistribution
    x: Float[Tensor, "sample value"]
    original_x: Float[Tensor, "sample value"]
    original_mean: Float[Tensor, "sample value"]


def _units(dataset: AbstractDataset) -> Float[np.ndarray, " value"]:
    """Return the original unit of each value, in the units of the model."""
    zero, one = (np.full((1, *dataset.shape), number, dtype=np.float64) for number in (0.0, 1.0))
    # Units are affine, so the difference of two images shows the factor alone.
    return 1 / (dataset.inverse(one) - dataset.inverse(zero)).reshape(-1)


def _fit(
    model: Model,
    parts: list[_Part],
    unit: Float[np.ndarray, " value"],
    rng: np.random.Generator,
    source: Source,
    suitable: str,
) -> LikelihoodFit:
    x, mean, variance = (
        torch.cat(each).double().cpu().numpy()
        for each in (
            [part.x for part in parts],
            [part.p.mean for part in parts],
            [part.p.variance.expand_as(part.x) for part in parts],
        )
    )
    dispersion, error = dispersion_of((x - mean) ** 2, variance)
    transformed = [
        part.p.transform(part.x, torch.from_numpy(rng.random(tuple(part.x.shape))).to(part.x))
        for part in parts
    ]
    # Likelihoods of probabilities have no transform, so the list can be empty.
    uniform = torch.cat([each for each in transformed if each is not None] or [torch.zeros(0)])
    if len(uniform):
        values = uniform.double().cpu().numpy()
        distance, coverage = distance_from_uniform(values), float(((values > 0.05) & (values < 0.95)).mean())
    else:
        distance, coverage = reliability_gap(x, mean), None
    name = family.name_of(model.blueprint.likelihood)
    is_density = bool(len(uniform)) and not model.needs_counts
    rival = (
        _by_values(suitable, parts, torch.from_numpy(unit))
        if suitable not in ("", name) and is_density
        else _by_dispersion(model.blueprint.likelihood.rival, parts, Residuals.of(x, mean))
    )
    return LikelihoodFit(name, len(x), source, dispersion, error, distance, coverage, rival)


def _by_values(name: str, parts: list[_Part], unit: Float[Tensor, " value"]) -> Rival | None:
    """Compare a density with a likelihood of integers, by the density's probability of x − ½ to x + ½.

    A density can have negative means. Means are clipped at a tenth of their column's mean, which a model of counts
    could predict.
    """
    x, mean = (
        torch.cat(each)
        for each in zip(*((part.original_x, part.original_mean) for part in parts), strict=True)
    )
    min_mean = MIN_SHARE * x.mean(0)
    residuals, gains, parameter = Residuals.of(x.numpy(), torch.maximum(mean, min_mean).numpy()), [], 0.0
    for part in parts:
        fitted = family[name].fitted_to(torch.maximum(part.original_mean, min_mean), residuals)
        if fitted is None:
            return None
        parameter, rival = fitted
        # Without noise the transform is F itself.
        half, noise = (unit / 2).to(part.x), torch.zeros_like(part.x)
        above, below = (part.p.transform(part.x + side * half, noise) for side in (1, -1))
        assert above is not None
        assert below is not None
        log_probability = torch.log((above - below).double().clamp(min=SMALLEST_PROBABILITY)).sum(1)
        gains.append((rival.log_density(part.original_x.round()) - log_probability.cpu()).numpy())
    reason: RivalReason = "counts" if family[name].needs_counts else "binary"
    return _rival(name, reason, parameter, gains)


def _by_dispersion(name: str, parts: list[_Part], residuals: Residuals) -> Rival | None:
    """Compare a likelihood with its rival for residuals of another size."""
    gains, parameter = [], 0.0
    for part in parts:
        fitted = family[name].fitted_to(part.p.mean, residuals) if name else None
        if fitted is None:
            return None
        parameter, rival = fitted
        gains.append((rival.log_density(part.x) - part.p.log_density(part.x)).double().cpu().numpy())
    return _rival(name, "dispersion", parameter, gains)


def _rival(
    name: str,
    reason: RivalReason,
    parameter: float,
    gains: list[Float[np.ndarray, " _"]],
) -> Rival:
    gain = np.concatenate(gains)
    return Rival(name, reason, parameter, float(gain.mean()), float(gain.std() / np.sqrt(len(gain))))
