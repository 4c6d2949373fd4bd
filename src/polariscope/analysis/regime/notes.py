"""Limits of a diagnosis: notes about assumptions that do not hold."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from jaxtyping import Bool, Float

from polariscope.analysis.regime.criteria import mean_variance
from polariscope.analysis.regime.latent_types import CONFIDENT, is_fragile
from polariscope.analysis.regime.note import Note
from polariscope.analysis.regime.posterior import RelativePosterior, kl_is_gaussian, not_drawn
from polariscope.analysis.regime.regime import Latent
from polariscope.analysis.representation import Representation
from polariscope.numerics.column_blocks import by_columns
from polariscope.numerics.dependence import total_correlation_of

ENOUGH = 100
"""Minimum number of samples for judging the shape of a distribution."""


EXCLUSIVE: dict[str, tuple[str, ...]] = {
    "variance is not a variance": ("exponentiated", "not-drawn"),
    "advice about latents near the prior": ("exponentiated", "not-begun", "still-learning", "over-pruned"),
    "confidence of a type": ("unsure", "fragile"),
    "information of a latent that is not passive": ("idle", "wide", "intermediate", "switching"),
    "validity of the total correlation": (
        "fewer-samples-than-latents",
        "infinite-in-sampled",
        "not-gaussian",
    ),
    "infinite KL": ("deterministic", "point"),
    "latents for the factors": ("too-few-latents", "over-pruned"),
}
"""Codes of notes that would contradict or repeat each other about one latent; the first of each group is shown.

A note about the whole diagnosis suppresses the later ones of its group. A note about some latents removes these latents
from the later ones.
"""


@dataclasses.dataclass(frozen=True)
class Draft:
    """A note that applies, before exclusive notes are removed."""

    code: str
    latents: frozenset[int] | None = None
    """Latents that the note is about; None for the whole diagnosis."""
    facts: Mapping[str, object] = dataclasses.field(default_factory=dict)


def choose(drafts: Sequence[Draft]) -> list[Note]:
    """Select the notes to show: one of each group in ``EXCLUSIVE`` for every latent.

    :param drafts: all notes that apply, in the order in which they are shown.
    """
    selected = []
    for draft in drafts:
        latents = draft.latents
        for group in EXCLUSIVE.values():
            if draft.code not in group:
                continue
            earlier = group[: group.index(draft.code)]
            for other in drafts:
                if other.code in earlier:
                    # A note about the whole diagnosis excludes later ones, and is excluded by any earlier one.
                    if latents is None or other.latents is None:
                        latents = frozenset()
                    else:
                        latents -= other.latents
        if latents is None or latents:
            selected.append(Note(draft.code, None if latents is None else sorted(latents), **draft.facts))
    return selected


def notes(
    representation: Representation,
    posterior: RelativePosterior,
    latents: Sequence[Latent],
    covariances: Mapping[str, Float[np.ndarray, "latent latent"]],
    alpha: float,
) -> list[Note]:
    """Return the notes of a diagnosis; empty if every assumption holds.

    :param representation: codes; for channels, with a row for each sample and position
        (:func:`~polariscope.analysis.regime.posterior.pooled_rows`).
    """
    return choose(possible(representation, posterior, latents, covariances, alpha))


def possible(
    representation: Representation,
    posterior: RelativePosterior,
    latents: Sequence[Latent],
    covariances: Mapping[str, Float[np.ndarray, "latent latent"]],
    alpha: float,
) -> list[Draft]:
    """Return every note that applies, including those that exclude each other."""
    return [
        *_about_input(representation, posterior, alpha),
        *_about_samples(posterior),
        *_about_types(posterior, latents, alpha),
        *_about_dependence(representation, posterior, latents, covariances),
        *_about_prior(posterior),
        *_about_likelihood(representation),
        *_about_pruning(representation, posterior, latents),
    ]


def _about_input(
    representation: Representation, posterior: RelativePosterior, alpha: float
) -> Iterable[Draft]:
    ratio = posterior.variance
    wrong = not_drawn(representation)
    # The exponential of a variance is at least 1, so variances that were exponentiated twice are never below
    # 1.
    if posterior.prior == "standard" and ratio.min() >= 1 and (ratio.mean(axis=0) > 1 + alpha).any():
        if representation.variance_is_exact:
            yield Draft("not-begun")
        else:
            yield Draft("exponentiated", facts={"misfits": np.flatnonzero(wrong).tolist()})
    if wrong.any():
        yield Draft("not-drawn", _set(wrong))
    if not representation.variance.any():
        yield Draft("deterministic")
    point = (representation.variance == 0).any(axis=0)
    if point.any():
        yield Draft("point", _set(point), {"own": bool(np.isfinite(posterior.kl).all())})


def _about_samples(posterior: RelativePosterior) -> Iterable[Draft]:
    n_latents = posterior.mean.shape[1]
    counts: dict[str, object] = {"n_samples": posterior.n_samples, "n_latents": n_latents}
    n_effective = int(posterior.n_effective.min())
    if posterior.correlation is not None:
        counts["n_effective"] = n_effective
    if len(posterior.mean) <= n_latents:
        yield Draft("fewer-samples-than-latents", facts=counts)
    elif n_effective < 10 * n_latents:
        yield Draft("few-samples", facts=counts)


def _about_types(posterior: RelativePosterior, latents: Sequence[Latent], alpha: float) -> Iterable[Draft]:
    for latent in latents:
        if latent.confidence < CONFIDENT:
            yield Draft("unsure", frozenset({latent.index}), {"shares": dict(latent.shares)})
    fragile = [latent for latent in latents if is_fragile(latent.alpha_range, alpha)]
    if fragile:
        # A mixed latent changes its type above α, the others below it.
        edges = {latent.index: latent.alpha_range[1 if latent.type == "mixed" else 0] for latent in fragile}
        facts = {"edges": {str(index): edge for index, edge in edges.items()}}  # JSON has text as keys
        yield Draft("fragile", frozenset(edges), facts)
    # A posterior that is the same for every input carries no information under any prior, and the rule ignores means.
    kinds = {
        "idle": [latent.index for latent in latents if latent.is_idle],
        **{
            kind: [latent.index for latent in latents if latent.mixedness == kind]
            for kind in ("wide", "intermediate")
        },
    }
    for kind, indices in kinds.items():
        if indices:
            yield Draft(kind, frozenset(indices))
    # The published rule uses variances only, so a posterior with another mean than the prior can count as passive.
    displaced = by_columns(lambda mean: (mean**2).mean(axis=0), posterior.mean) >= alpha
    moved = [latent.index for latent in latents if latent.type == "passive" and displaced[latent.index]]
    if moved:
        yield Draft("displaced", frozenset(moved), {"alpha": alpha})


def _about_dependence(
    representation: Representation,
    posterior: RelativePosterior,
    latents: Sequence[Latent],
    covariances: Mapping[str, Float[np.ndarray, "latent latent"]],
) -> Iterable[Draft]:
    for name, matrix in covariances.items():
        constant = np.diag(matrix) == 0
        if constant.any():
            yield Draft(f"constant-in-{name}", _set(constant))
        # With fewer samples the total correlation is always infinite, which has its own note.
        if representation.n_samples > representation.n_latents and np.isinf(total_correlation_of(matrix)):
            yield Draft(f"infinite-in-{name}")
    mixed = {latent.index for latent in latents if latent.mixedness == "switching"}
    # One latent at a time, because several temporaries are twice as large as their codes.
    columns = (column[:, None].astype(np.float64) for column in representation.sampled.T)
    sizes = posterior.n_effective
    shaped = _set(
        np.concatenate([_far_from_gaussian(column, n) for column, n in zip(columns, sizes, strict=True)])
    )
    if mixed | shaped:
        yield Draft(
            "not-gaussian", frozenset(mixed | shaped), {"mixed": sorted(mixed), "shaped": sorted(shaped)}
        )


def _about_prior(posterior: RelativePosterior) -> Iterable[Draft]:
    if posterior.prior == "conditional":
        yield Draft("conditional")
    if not kl_is_gaussian(posterior):
        yield Draft("own-kl")


def _about_likelihood(representation: Representation) -> Iterable[Draft]:
    if representation.fit.misfit:
        yield Draft(f"likelihood-{representation.fit.misfit}", facts=representation.fit.as_facts())


def _about_pruning(
    representation: Representation, posterior: RelativePosterior, latents: Sequence[Latent]
) -> Iterable[Draft]:
    n_factors = varying_factors(representation)
    n_in_use = int(mean_variance(posterior).sum())
    counts = {"n_in_use": n_in_use, "n_factors": n_factors}
    if len(latents) < n_factors:
        yield Draft("too-few-latents", facts={"n_latents": len(latents), "n_factors": n_factors})
    if n_in_use < n_factors and representation.training.code == "still-learning":
        yield Draft("still-learning", facts=counts)
    if n_in_use < n_factors and representation.training.allows_advice:
        n_not_passive = sum(latent.type != "passive" for latent in latents)
        yield Draft("over-pruned", facts={**counts, "n_not_passive": n_not_passive})


def varying_factors(representation: Representation) -> int:
    """Return the number of factors that vary in these samples; 0 without factors.

    :param representation: codes, with or without factors.
    """
    if representation.factors is None:
        return 0
    factors = np.asarray(representation.factors)
    # A factor varies if any sample differs from the first.
    return int((factors != factors[:1]).any(axis=0).sum())


def _far_from_gaussian(x: Float[np.ndarray, "sample latent"], n: float) -> Bool[np.ndarray, " latent"]:
    """Return a mask of the columns whose shape is not that of a Gaussian, judged with n independent values."""
    if n < ENOUGH:
        return np.zeros(x.shape[1], dtype=bool)
    centred = x - x.mean(axis=0)
    scale = centred.std(axis=0)
    standard = centred / np.where(scale > 0, scale, 1.0)
    square = standard * standard
    skewness = np.abs((square * standard).mean(axis=0))
    kurtosis = np.abs((square * square).mean(axis=0) - 3)
    # Allow for three standard errors of a Gaussian's skewness and kurtosis, √(6/n) and √(24/n).
    beyond = (skewness > 1 + 3 * np.sqrt(6 / n)) | (kurtosis > 1 + 3 * np.sqrt(24 / n))
    return beyond & (scale > 0)


def _set(which: Bool[np.ndarray, " latent"]) -> frozenset[int]:
    return frozenset(np.flatnonzero(which).tolist())
