"""Honest limits: where the assumptions behind a diagnosis do not hold, in plain sentences."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from jaxtyping import Bool, Float

from polariscope.analysis.regime.criteria import mean_variance
from polariscope.analysis.regime.posterior import RelativePosterior, kl_is_gaussian
from polariscope.analysis.regime.regime import Latent, name_latents
from polariscope.analysis.regime.types import ALPHA_LIMIT, CONFIDENT
from polariscope.analysis.representation import Representation
from polariscope.numerics.dependence import total_correlation_of

ENOUGH = 100
"""Samples from which the shape of a distribution is judged."""


def notes(
    representation: Representation,
    posterior: RelativePosterior,
    latents: Sequence[Latent],
    covariances: Mapping[str, Float[np.ndarray, "latent latent"]],
    alpha: float,
) -> list[str]:
    """What a reader of this diagnosis should know; empty when everything holds."""
    return [
        *_about_input(representation, posterior, alpha),
        *_about_samples(representation),
        *_about_types(posterior, latents, alpha),
        *_about_dependence(representation, latents, covariances, alpha),
        *_about_prior(posterior),
        *_about_pruning(representation, posterior),
    ]


def _about_input(representation: Representation, posterior: RelativePosterior, alpha: float) -> Iterable[str]:
    ratio = posterior.variance
    if posterior.prior == "standard" and ratio.min() >= 1 and (ratio.mean(axis=0) > 1 + alpha).any():
        yield (
            "No posterior variance is below the prior's, which hardly happens; variance may have been "
            "exponentiated twice, which swaps active with passive."
        )
    wrong = _not_drawn_from(representation)
    if wrong.any():
        yield (
            f"sampled does not look like draws from N(mean, variance): (z − μ)²/σ² does not average 1 in "
            f"{_named(wrong)}; check that variance is σ², neither its logarithm nor its root."
        )
    point = (representation.variance == 0).any(axis=0)
    if point.any():
        yield f"A posterior variance of 0 makes the KL infinite in {_named(point)}."


def _about_samples(representation: Representation) -> Iterable[str]:
    n, k = representation.n_samples, representation.n_latents
    if n <= k:
        yield (
            f"{n} samples of {k} latents are always linearly dependent: the total correlation is infinite "
            "for that reason alone; encode more samples."
        )
    elif n < 10 * k:
        yield (
            f"{n} samples are few for {k} latents (10 per latent are a minimum): total "
            "correlation, mutual information and effective rank are biased; encode more."
        )


def _about_types(posterior: RelativePosterior, latents: Sequence[Latent], alpha: float) -> Iterable[str]:
    for latent in latents:
        low, high = latent.alpha_range
        if latent.confidence < CONFIDENT:
            shares = ", ".join(f"{name} {share:.0%}" for name, share in latent.shares.items() if share)
            yield f"The type of latent {latent.index} is unsure: in the bootstrap it is {shares}."
        elif low > 0.8 * alpha or high < min(1.2 * alpha, ALPHA_LIMIT):
            edge = low if latent.type != "mixed" else high
            yield f"The type of latent {latent.index} depends on α: it changes at α = {edge:.3f}."
    intermediate = [latent.index for latent in latents if _is_intermediate(latent, alpha)]
    if intermediate:
        named = name_latents(intermediate)
        has, it, does = ("has", "it", "it does") if len(intermediate) == 1 else ("have", "them", "they do")
        yield (
            f"{named[0].upper()}{named[1:]} {has} intermediate variance for every input. The rule calls {it} mixed, "
            f"but {does} not switch between active and passive."
        )
    # Whatever the prior, a posterior that is the same for every input says nothing; the rule does not look at means.
    still = posterior.absolute_mean.var(axis=0) < 0.01 * posterior.absolute_variance.mean(axis=0)
    idle = [latent.index for latent in latents if latent.type != "passive" and still[latent.index]]
    if idle:
        yield (
            f"Not passive by its variance, yet with a mean that hardly moves: {name_latents(idle)}. Its posterior is "
            "nearly the same for every input, so it says nothing about it, whatever its KL."
        )
    # The published rule looks at variances only, so a posterior beside the prior can pass for it.
    displaced = (posterior.mean**2).mean(axis=0) >= alpha
    moved = [latent.index for latent in latents if latent.type == "passive" and displaced[latent.index]]
    if moved:
        yield (
            f"Passive by variance, but with a mean away from the prior's (mean (μ − μ†)²/Σ† ≥ {alpha:g}): "
            f"{name_latents(moved)}."
        )


def _about_dependence(
    representation: Representation,
    latents: Sequence[Latent],
    covariances: Mapping[str, Float[np.ndarray, "latent latent"]],
    alpha: float,
) -> Iterable[str]:
    for name, matrix in covariances.items():
        constant = np.diag(matrix) == 0
        if constant.any():
            yield (
                f"Constant in the {name} representation: {_named(constant)}. Independent of everything: "
                "correlation 0, nothing added to the total correlation."
            )
        if representation.n_samples > representation.n_latents and np.isinf(total_correlation_of(matrix)):
            yield (
                f"In the {name} representation a latent is a linear function of others: the total "
                "correlation is infinite."
            )
    mixed = [
        latent.index for latent in latents if latent.type == "mixed" and not _is_intermediate(latent, alpha)
    ]
    if mixed:
        yield (
            "Gaussian total correlation sees linear dependence only, and mixed latents are not Gaussian: "
            f"{name_latents(mixed)}."
        )
    shaped = _far_from_gaussian(representation.sampled.astype(np.float64))
    if shaped.any():
        yield (
            "Skewness or excess kurtosis beyond 1 in the sampled representation: the Gaussian total "
            f"correlation is an approximation for {_named(shaped)}."
        )


def _about_prior(posterior: RelativePosterior) -> Iterable[str]:
    if posterior.prior == "conditional":
        yield (
            "The prior depends on the sample: it can follow the posterior of a latent that the decoder uses, "
            "so a small KL does not make a latent passive; check the decoder's sensitivity to it."
        )
    if not kl_is_gaussian(posterior):
        yield (
            "The KLs are the model's own; types, Δ_KL and the criteria on moments compare the posterior with "
            "the Gaussian that a passive latent has under this prior."
        )


def _about_pruning(representation: Representation, posterior: RelativePosterior) -> Iterable[str]:
    if representation.factors is None:
        return
    factors = np.asarray(representation.factors)
    n_factors = int((factors != factors[:1]).any(axis=0).sum())
    n_in_use = int(mean_variance(posterior).sum())
    if n_in_use < n_factors:
        yield (
            f"Over-pruned: {n_in_use} latents with a mean posterior variance below 0.8 of the prior's, for "
            f"{n_factors} varying factor{'s' if n_factors > 1 else ''} (zietlow2022 §4.3.4 discards such runs)."
        )


def _is_intermediate(latent: Latent, alpha: float) -> bool:
    """The same posterior variance everywhere, neither the prior's nor near 0."""
    steady = latent.variance_of_ratio < alpha and latent.mixture == "noisy"
    return steady and alpha < latent.mean_of_ratio < 1 - alpha


def _not_drawn_from(representation: Representation) -> Bool[np.ndarray, " latent"]:
    """Latents whose (z − μ)²/σ² averages away from 1 by more than 6 standard errors."""
    mean, variance, sampled = (
        getattr(representation, name).astype(np.float64) for name in ("mean", "variance", "sampled")
    )
    # Where σ drowns in the rounding of μ, z − μ is rounding too.
    eps = max(np.finfo(representation.mean.dtype).eps, np.finfo(representation.sampled.dtype).eps)
    seen = variance > (100 * eps * np.abs(mean)) ** 2
    ratio = np.divide((sampled - mean) ** 2, variance, out=np.ones_like(mean), where=seen)
    count = np.maximum(seen.sum(axis=0), 1)
    average = 1 + ((ratio - 1) * seen).sum(axis=0) / count
    spread = np.sqrt((((ratio - average) * seen) ** 2).sum(axis=0) / count)
    # √2 is the standard deviation for a Gaussian; a broken ratio may have less by accident.
    error = np.maximum(spread, np.sqrt(2)) / np.sqrt(count)
    return (count >= ENOUGH) & (np.abs(average - 1) > 6 * error)


def _far_from_gaussian(x: Float[np.ndarray, "sample latent"]) -> Bool[np.ndarray, " latent"]:
    n = len(x)
    if n < ENOUGH:
        return np.zeros(x.shape[1], dtype=bool)
    centred = x - x.mean(axis=0)
    scale = centred.std(axis=0)
    standard = centred / np.where(scale > 0, scale, 1.0)
    square = standard * standard
    skewness = np.abs((square * standard).mean(axis=0))
    kurtosis = np.abs((square * square).mean(axis=0) - 3)
    # Three standard errors of a Gaussian's skewness and kurtosis on top, √(6/n) and √(24/n).
    beyond = (skewness > 1 + 3 * np.sqrt(6 / n)) | (kurtosis > 1 + 3 * np.sqrt(24 / n))
    return beyond & (scale > 0)


def _named(which: Bool[np.ndarray, " latent"]) -> str:
    return name_latents(np.flatnonzero(which).tolist())
