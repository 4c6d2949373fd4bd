"""The primary rule, for any prior: the type of each latent from moments over the samples."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Float, Shaped

from polariscope.analysis.regime.posterior import RelativePosterior
from polariscope.analysis.regime.variable_types import classify

ALPHA_LIMIT = 0.5  # from here on, "at most α" and "within α of 1" overlap


@dataclasses.dataclass(frozen=True, eq=False)
class Moments:
    """What the rule looks at. The last two only under a conditional prior."""

    mean: Float[np.ndarray, "*batch latent"]
    """Mean over samples of r = σ²/Σ†."""
    variance: Float[np.ndarray, "*batch latent"]
    """Population variance over samples of r."""
    displacement: Float[np.ndarray, "*batch latent"] | None = None
    """Mean over samples of (μ − μ†)²/Σ†."""
    noise: Float[np.ndarray, "*batch latent"] | None = None
    """Mean of σ² over the variance of μ; infinite for a mean that never varies."""


def moments(posterior: RelativePosterior) -> Moments:
    """Moments over the samples."""
    return _gather([(values.mean(axis=0), values.var(axis=0)) for values in _columns(posterior)])


def moments_of_resamples(
    posterior: RelativePosterior,
) -> Callable[[Float[np.ndarray, "resample sample"]], Moments]:
    """A function from weights of the samples (rows that sum to 1) to the moments over each weighting."""
    columns = _columns(posterior)
    centres = [values.mean(axis=0) for values in columns]
    # Centred first: E[x²] − E[x]² would lose the digits of a variance that is small beside the mean.
    centred = np.concatenate(
        [values - centre for values, centre in zip(columns, centres, strict=True)], axis=1
    )
    powers = np.concatenate([centred, centred**2], axis=1)

    def weighted(weights: Float[np.ndarray, "resample sample"]) -> Moments:
        shift, square = np.split(weights @ powers, 2, axis=1)
        means = np.concatenate(centres) + shift
        variances = np.maximum(square - shift**2, 0.0)
        pairs = zip(*(np.split(array, len(columns), axis=1) for array in (means, variances)), strict=True)
        return _gather(list(pairs))

    return weighted


def types_of(moments: Moments, alpha: float) -> Shaped[np.ndarray, "*batch latent"]:
    r"""Type of each latent.

    A fixed prior: :func:`polariscope.analysis.regime.variable_types.classify` on r = σ²/Σ†, which is the published rule
    when the prior is N(0, 1). A conditional prior N(μ†(u), Σ†(u)) can follow the input, so that in addition

    * passive needs mean (μ − μ†)²/Σ† < α: the posterior is where the prior is;
    * active needs mean σ² < α · Var(μ): the mean moves by far more than its noise.

    Reference: bonheme2023 §6.4.1 (fixed), §5 (conditional: the thesis gives no rule; this one is derived).
    Ours: active keeps the condition Var(r) < α under a conditional prior.
    """
    found = np.array(classify(moments.mean.ravel(), moments.variance.ravel(), alpha)).reshape(
        moments.mean.shape
    )
    if moments.displacement is not None and moments.noise is not None:
        found[(found == "passive") & ~(moments.displacement < alpha)] = "mixed"
        found[(found == "active") & ~(moments.noise < alpha)] = "mixed"
    return found


def thresholds(
    moments: Moments,
) -> tuple[Float[np.ndarray, "*batch latent"], Float[np.ndarray, "*batch latent"]]:
    """The α from which each latent is active, and that from which it is passive; from there on it stays."""
    active = np.maximum(moments.mean, moments.variance)
    passive = np.maximum(np.abs(moments.mean - 1), moments.variance)
    if moments.displacement is not None and moments.noise is not None:
        active = np.maximum(active, moments.noise)
        passive = np.maximum(passive, moments.displacement)
    return active, passive


def _columns(posterior: RelativePosterior) -> list[Float[np.ndarray, "sample latent"]]:
    """What the moments are taken of."""
    if posterior.prior != "conditional":
        return [posterior.variance]
    return [posterior.variance, posterior.mean**2, posterior.absolute_variance, posterior.absolute_mean]


def _gather(pairs: Sequence[tuple[np.ndarray, np.ndarray]]) -> Moments:
    """Moments from the mean and variance of each of :func:`_columns`."""
    ratio, *others = pairs
    if not others:
        return Moments(*ratio)
    (displacement, _), (noise, _), (_, signal) = others
    share = np.divide(noise, signal, out=np.full_like(noise, np.inf), where=signal > 0)
    return Moments(*ratio, displacement, share)
