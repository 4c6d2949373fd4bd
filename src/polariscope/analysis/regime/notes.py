"""Honest limits: where the assumptions behind a diagnosis do not hold, in plain sentences."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence, Set

import numpy as np
from jaxtyping import Bool, Float

from polariscope.analysis.regime.criteria import mean_variance
from polariscope.analysis.regime.posterior import RelativePosterior, kl_is_gaussian
from polariscope.analysis.regime.regime import PRUNED, TOO_FEW, UNFINISHED, Latent, name_latents
from polariscope.analysis.regime.types import CONFIDENT, is_fragile
from polariscope.analysis.representation import Representation
from polariscope.numerics.dependence import total_correlation_of

ENOUGH = 100
"""Samples from which the shape of a distribution is judged."""


EXCLUSIVE: dict[str, tuple[str, ...]] = {
    "variance is no variance": ("exponentiated", "not drawn"),
    "what to do about latents near the prior": (
        "exponentiated",
        "not begun",
        "still learning",
        "over-pruned",
    ),
    "how sure a type is": ("unsure", "fragile"),
    "what a latent that is not passive says": ("idle", "wide", "intermediate", "switching"),
    "is the total correlation right": ("fewer samples than latents", "infinite in sampled", "not gaussian"),
    "the KL": ("deterministic", "point"),
    "latents for the factors": ("too few latents", "over-pruned"),
}
"""Kinds of notes that would contradict or repeat each other about one latent: of each group the first is said.

A note about the whole diagnosis silences the later ones of its group; one about some latents takes these out of them.
"""


@dataclasses.dataclass(frozen=True)
class Note:
    """What could be said, before the choice."""

    kind: str
    latents: frozenset[int] | None
    """Those it is about; None for the whole diagnosis."""
    words: Callable[[list[int]], str]
    """The note about these latents, in the order of their numbers."""


def choose(notes: Sequence[Note]) -> list[tuple[str, frozenset[int] | None, str]]:
    """Kind, latents and words of the notes that are said: of each group in ``EXCLUSIVE`` one for every latent.

    :param notes: all that apply, in the order in which they are said
    """
    chosen = []
    for note in notes:
        latents = note.latents
        for group in EXCLUSIVE.values():
            if note.kind not in group:
                continue
            for other in notes:
                if other.kind in group[: group.index(note.kind)] and latents is not None:
                    latents = frozenset() if other.latents is None else latents - other.latents
                elif other.kind in group[: group.index(note.kind)]:
                    latents = frozenset()
        if latents is None or latents:
            chosen.append((note.kind, latents, note.words(sorted(latents or ()))))
    return chosen


def notes(
    representation: Representation,
    posterior: RelativePosterior,
    latents: Sequence[Latent],
    covariances: Mapping[str, Float[np.ndarray, "latent latent"]],
    alpha: float,
) -> list[str]:
    """What a reader of this diagnosis should know; empty when everything holds."""
    found = possible(representation, posterior, latents, covariances, alpha)
    return [words for _, _, words in choose(found)]


def possible(
    representation: Representation,
    posterior: RelativePosterior,
    latents: Sequence[Latent],
    covariances: Mapping[str, Float[np.ndarray, "latent latent"]],
    alpha: float,
) -> list[Note]:
    """Every note that applies, those that exclude each other included."""
    return [
        *_about_input(representation, posterior, alpha),
        *_about_samples(representation),
        *_about_types(posterior, latents, alpha),
        *_about_dependence(representation, latents, covariances),
        *_about_prior(posterior),
        *_about_pruning(representation, posterior, latents),
    ]


def _whole(kind: str, words: str, latents: frozenset[int] | None = None) -> Note:
    """A note with the same words for whichever of its latents."""
    return Note(kind, latents, lambda _: words)


def _about_input(
    representation: Representation, posterior: RelativePosterior, alpha: float
) -> Iterable[Note]:
    ratio = posterior.variance
    wrong = _not_drawn_from(representation) & (not representation.sampled_was_drawn)
    misfit = "sampled does not look like draws from N(mean, variance): (z − μ)²/σ² does not average 1 in "
    if posterior.prior == "standard" and ratio.min() >= 1 and (ratio.mean(axis=0) > 1 + alpha).any():
        also = f" Also, {misfit}{_named(wrong)}." if wrong.any() else ""
        if representation.variance_is_exact:
            yield _whole(
                "not begun",
                "No posterior variance is below the prior's: the model has not begun to encode its inputs. Train it "
                "longer; if that changes nothing, lower the weight of the rate.",
            )
        else:
            yield _whole(
                "exponentiated",
                "No posterior variance is below the prior's, which hardly happens; variance may have been "
                f"exponentiated twice, which swaps active with passive.{also}",
            )
    if wrong.any():
        yield Note(
            "not drawn",
            _set(wrong),
            lambda which: (
                f"{misfit}{name_latents(which)}; check that variance is σ², neither its logarithm nor its root."
            ),
        )
    if not representation.variance.any():
        yield _whole(
            "deterministic",
            "Every posterior variance is 0: the encoder is deterministic and has no finite KL to the prior. Every "
            "latent counts as active, whatever it says.",
        )
    point = (representation.variance == 0).any(axis=0)
    if point.any():
        own = np.isfinite(posterior.kl).all()
        yield Note(
            "point",
            _set(point),
            lambda which: (
                f"A posterior variance of 0 makes the {'Gaussian ' if own else ''}KL infinite in "
                f"{name_latents(which)}{'; the KLs shown are of the model itself' if own else ''}."
            ),
        )


def _about_samples(representation: Representation) -> Iterable[Note]:
    n, k = representation.n_samples, representation.n_latents
    if n <= k:
        yield _whole(
            "fewer samples than latents",
            f"{n} samples of {k} latents are always linearly dependent: the total correlation is infinite "
            "for that reason alone; encode more samples.",
        )
    elif n < 10 * k:
        yield _whole(
            "few samples",
            f"{n} samples are few for {k} latents (10 per latent are a minimum): total "
            "correlation, mutual information and effective rank are biased; encode more.",
        )


def _about_types(posterior: RelativePosterior, latents: Sequence[Latent], alpha: float) -> Iterable[Note]:
    for latent in latents:
        if latent.confidence < CONFIDENT:
            shares = ", ".join(f"{name} {share:.0%}" for name, share in latent.shares.items() if share)
            words = f"The type of latent {latent.index} is unsure: in the bootstrap it is {shares}."
            yield _whole("unsure", words, frozenset({latent.index}))
    fragile = [latent for latent in latents if is_fragile(latent.alpha_range, alpha)]
    if fragile:
        edges = {latent.index: latent.alpha_range[1 if latent.type == "mixed" else 0] for latent in fragile}
        yield Note("fragile", frozenset(edges), lambda which: _on_alpha(which, edges))
    yield from _about_mixed(latents)
    # The published rule looks at variances only, so a posterior beside the prior can pass for it.
    displaced = (posterior.mean**2).mean(axis=0) >= alpha
    moved = [latent.index for latent in latents if latent.type == "passive" and displaced[latent.index]]
    if moved:
        yield Note(
            "displaced",
            frozenset(moved),
            lambda which: (
                f"Passive by variance, but with a mean away from the prior's (mean (μ − μ†)²/Σ† ≥ {alpha:g}): "
                f"{name_latents(which)}."
            ),
        )


def _on_alpha(which: list[int], edges: Mapping[int, float]) -> str:
    places = ", ".join(f"{edges[index]:.3f}" for index in which)
    if len(which) == 1:
        return f"The type of latent {which[0]} depends on α: it changes at α = {places}."
    return f"The types of {name_latents(which)} depend on α: they change at α = {places}, in this order."


def _about_mixed(latents: Sequence[Latent]) -> Iterable[Note]:
    """What the latents that are not passive say, where the type alone would mislead."""
    # Whatever the prior, a posterior that is the same for every input says nothing; the rule does not look at means.
    kinds = {
        "idle": [latent.index for latent in latents if latent.is_idle],
        **{
            kind: [latent.index for latent in latents if latent.mixedness == kind]
            for kind in ("wide", "intermediate")
        },
    }
    words: dict[str, Callable[[list[int]], str]] = {
        "idle": lambda which: (
            f"Not passive by {_its(which)} variance, yet with a mean that hardly moves: {name_latents(which)}. "
            f"{_capital(_its(which))} posterior is nearly the same for every input: "
            f"{'it says' if len(which) == 1 else 'they say'} nothing about the input, whatever the KL."
        ),
        "wide": lambda which: (
            f"Wider than the prior: {name_latents(which)}. The rule calls this mixed, but no input is known."
        ),
        "intermediate": lambda which: (
            f"Intermediate variance: {name_latents(which)}. The rule calls "
            f"{'it' if len(which) == 1 else 'them'} mixed, but "
            f"{'it does' if len(which) == 1 else 'they do'} not switch between active and passive: most inputs are "
            "known to some degree."
        ),
    }
    for kind, indices in kinds.items():
        if indices:
            yield Note(kind, frozenset(indices), words[kind])


def _about_dependence(
    representation: Representation,
    latents: Sequence[Latent],
    covariances: Mapping[str, Float[np.ndarray, "latent latent"]],
) -> Iterable[Note]:
    for name, matrix in covariances.items():
        constant = np.diag(matrix) == 0
        if constant.any():
            yield _whole(
                f"constant in {name}",
                f"Constant in the {name} representation: {_named(constant)}. Independent of everything: "
                "correlation 0, nothing added to the total correlation.",
            )
        if representation.n_samples > representation.n_latents and np.isinf(total_correlation_of(matrix)):
            yield _whole(
                f"infinite in {name}",
                f"In the {name} representation a latent is a linear function of others: the total "
                "correlation is infinite.",
            )
    mixed = {latent.index for latent in latents if latent.mixedness == "switching"}
    shaped = _set(_far_from_gaussian(representation.sampled.astype(np.float64)))
    if mixed | shaped:
        yield Note("not gaussian", frozenset(mixed | shaped), lambda which: _on_shape(which, mixed, shaped))


def _on_shape(which: list[int], mixed: Set[int], shaped: Set[int]) -> str:
    """Latents that switch, and those of another shape, joined."""
    reasons = []
    if switching := [index for index in which if index in mixed]:
        reasons.append(f"mixed latents that switch are not Gaussian: {name_latents(switching)}")
    if others := [index for index in which if index in shaped]:
        reasons.append(
            f"skewness or excess kurtosis is beyond 1 in the sampled representation: {name_latents(others)}"
        )
    return f"The Gaussian total correlation is an approximation. {_capital('; '.join(reasons))}."


def _its(which: Sequence[int]) -> str:
    return "its" if len(which) == 1 else "their"


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]


def _about_prior(posterior: RelativePosterior) -> Iterable[Note]:
    if posterior.prior == "conditional":
        yield _whole(
            "conditional",
            "The prior depends on the sample: it can follow the posterior of a latent that the decoder uses, "
            "so a small KL does not make a latent passive; check the decoder's sensitivity to it.",
        )
    if not kl_is_gaussian(posterior):
        yield _whole(
            "own KL",
            "The KLs are the model's own; types, Δ_KL and the criteria on moments compare the posterior with "
            "the Gaussian that a passive latent has under this prior.",
        )


def _about_pruning(
    representation: Representation, posterior: RelativePosterior, latents: Sequence[Latent]
) -> Iterable[Note]:
    if representation.factors is None:
        return
    factors = np.asarray(representation.factors)
    n_factors = int((factors != factors[:1]).any(axis=0).sum())
    varying = f"{n_factors} varying factor{'s' if n_factors > 1 else ''}"
    n_in_use = int(mean_variance(posterior).sum())
    if len(latents) < n_factors:
        yield _whole(
            "too few latents",
            f"{TOO_FEW}: {len(latents)} for {varying}. Not every factor can have a latent of its own.",
        )
    if n_in_use < n_factors and representation.is_still_learning:
        yield _whole(
            "still learning",
            f"{UNFINISHED}: {n_in_use} latent{'s' if n_in_use != 1 else ''} with a mean posterior variance below 0.8 "
            f"of the prior's, for {varying}, but the loss was still falling when training ended. Train longer before "
            "you change anything else.",
        )
    if n_in_use < n_factors:
        others = sum(latent.type != "passive" for latent in latents)
        counted = "" if others == n_in_use else f" ({others} {'is' if others == 1 else 'are'} not passive)"
        yield _whole(
            "over-pruned",
            f"{PRUNED}: {n_in_use} latent{'s' if n_in_use != 1 else ''} with a mean posterior variance below 0.8 of "
            f"the prior's{counted}, for {varying} (zietlow2022 §4.3.4 discards such runs). A lower weight of the rate "
            "keeps more of them; more latents do not.",
        )


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


def _set(which: Bool[np.ndarray, " latent"]) -> frozenset[int]:
    return frozenset(np.flatnonzero(which).tolist())


def _named(which: Bool[np.ndarray, " latent"]) -> str:
    return name_latents(np.flatnonzero(which).tolist())
