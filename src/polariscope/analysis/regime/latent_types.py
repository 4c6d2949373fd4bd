"""Types of latents: the rule, its confidence and its dependence on α."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np
from jaxtyping import Float, Shaped

from polariscope.analysis.regime.rule import ALPHA_LIMIT, TypeRule
from polariscope.core.errors import unknown
from polariscope.core.figure_style import GREY, ORANGE, TEAL
from polariscope.core.records import AbstractRecord

if TYPE_CHECKING:
    import pandas

    from polariscope.analysis.regime.posterior import RelativePosterior

PriorKind = Literal["standard", "fixed", "conditional"]
VariableType = Literal["active", "mixed", "passive"]
TYPES: tuple[VariableType, ...] = ("active", "mixed", "passive")
COLOURS: dict[VariableType, str] = {"active": TEAL, "mixed": ORANGE, "passive": GREY}
"""Colour of each type of latent; readers with colour-vision deficiencies can distinguish them."""


def classify(
    mean_variance: Float[np.ndarray, " latent"],
    variance_variance: Float[np.ndarray, " latent"],
    alpha: float = TypeRule.alpha,
) -> list[VariableType]:
    r"""Return the type of each latent from the mean and variance, over the samples, of its posterior variance σ².

    * passive: mean in [1 − α, 1 + α] and variance < α. The posterior equals the prior for every input;
    * active: mean ≤ α and variance < α. Every input determines the latent almost exactly;
    * mixed: all other latents.

    The posterior variance is relative to the prior's if that is not 1. Reference: bonheme2023 §6.4.1, α = 0.1,
    population variance; ``<`` and ``≤`` as in the authors' code.

    >>> classify(np.array([0.01, 0.5, 1.02]), np.array([0.0, 0.2, 0.0]))
    ['active', 'mixed', 'passive']
    """
    steady = variance_variance < alpha
    active = steady & (mean_variance <= alpha)
    passive = steady & (1 - alpha <= mean_variance) & (mean_variance <= 1 + alpha)
    return ["active" if a else "passive" if p else "mixed" for a, p in zip(active, passive, strict=True)]


SELECTIONS: tuple[str, ...] = (
    "full",
    "active",
    "mixed",
    "passive",
    "active+mixed",
    "active+passive",
    "mixed+passive",
)


def check_selections(selections: Sequence[str]) -> None:
    """Check that each name is one of :data:`SELECTIONS`.

    :param selections: names of selections of latents.
    """
    for name in selections:
        if name not in SELECTIONS:
            raise unknown("selection of latents", name, SELECTIONS)


def select(types: Sequence[VariableType], selection: str) -> list[int]:
    """Return the indices of the latents whose type is in ``selection``: "full", or types joined by "+", in any order.

    >>> select(["active", "passive", "mixed"], "mixed+active")
    [0, 2]
    """
    tokens = selection.replace(" ", "").split("+")
    if tokens == ["full"]:
        tokens = list(TYPES)
    for word in tokens:
        if word not in TYPES:
            choices = (*TYPES, "full") if len(tokens) == 1 else TYPES
            raise unknown("variable type", word, choices, "Join several with '+'.")
    return [index for index, name in enumerate(types) if name in tokens]


NEARBY = 0.2
"""Relative change of α that should leave a type unchanged."""


@dataclasses.dataclass(frozen=True, eq=False)
class Moments:
    """Moments to which the rule applies. The last two are computed only for a conditional prior."""

    mean: Float[np.ndarray, "*batch latent"]
    """Mean over samples of r = σ²/Σ†."""
    variance: Float[np.ndarray, "*batch latent"]
    """Population variance over samples of r."""
    displacement: Float[np.ndarray, "*batch latent"] | None = None
    """Mean over samples of (μ − μ†)²/Σ†."""
    noise: Float[np.ndarray, "*batch latent"] | None = None
    """Mean of σ² divided by the variance of μ; infinite if μ is constant."""


def moments(posterior: RelativePosterior) -> Moments:
    """Return the moments over the samples: those of the resample that contains each sample once."""
    # The same function as for resamples, so a variance that equals α gets one type and not two by rounding.
    n_samples = posterior.n_samples
    once = moments_of_resamples(posterior)(np.full((1, n_samples), 1 / n_samples))
    displacement, noise = (None if value is None else value[0] for value in (once.displacement, once.noise))
    return Moments(once.mean[0], once.variance[0], displacement, noise)


def moments_of_resamples(
    posterior: RelativePosterior,
) -> Callable[[Float[np.ndarray, "resample sample"]], Moments]:
    """Return a function that maps weights of the samples (rows that sum to 1) to the moments under each weighting.

    All positions of a channel have the weight of their sample, so resamples draw samples, never positions.
    """
    columns, size = _columns(posterior), posterior.n_positions
    centres = [values.mean(axis=0) for values in columns]

    def powers(rows: slice) -> Float[np.ndarray, "row power"]:
        # Centre first: E[x²] − E[x]² would lose the digits of a variance that is small compared with the mean.
        values_of = slice(rows.start * size, rows.stop * size)
        parts = [values[values_of] - centre for values, centre in zip(columns, centres, strict=True)]
        centred = np.concatenate(parts, axis=1)
        both = np.concatenate([centred, centred**2], axis=1)
        return both if size == 1 else both.reshape(-1, size, both.shape[1]).mean(axis=1)

    def weighted(weights: Float[np.ndarray, "resample sample"]) -> Moments:
        # In blocks of samples, because the powers of all of them would be twice as large as the codes.
        n_rows = max(1, ROWS // size)
        blocks = (slice(begin, begin + n_rows) for begin in range(0, weights.shape[1], n_rows))
        shift, square = np.split(sum(weights[:, rows] @ powers(rows) for rows in blocks), 2, axis=1)
        means = np.concatenate(centres) + shift
        # Rounding can make the variance of a constant slightly negative.
        variances = np.maximum(square - shift**2, 0.0)
        pairs = zip(*(np.split(array, len(columns), axis=1) for array in (means, variances)), strict=True)
        return _gather(list(pairs))

    return weighted


def types_of(moments: Moments, alpha: float) -> Shaped[np.ndarray, "*batch latent"]:
    r"""Return the type of each latent.

    For a fixed prior, :func:`classify` is applied to r = σ²/Σ†; this is the published
    rule if the prior is N(0, 1). A conditional prior N(μ†(u), Σ†(u)) can follow the input, so in addition

    * passive requires mean (μ − μ†)²/Σ† < α: the posterior is centred on the prior;
    * active requires mean σ² < α · Var(μ): the mean varies much more than its noise.

    Reference: bonheme2023 §6.4.1 (fixed), §5 (conditional: it gives no rule; this one is derived).
    Ours: under a conditional prior, active also requires Var(r) < α.
    """
    # classify takes one axis; resamples have two.
    types = np.array(classify(moments.mean.ravel(), moments.variance.ravel(), alpha)).reshape(
        moments.mean.shape
    )
    if moments.displacement is not None:
        types[(types == "passive") & ~(moments.displacement < alpha)] = "mixed"
    if moments.noise is not None:
        types[(types == "active") & ~(moments.noise < alpha)] = "mixed"
    return types


def thresholds(
    moments: Moments,
) -> tuple[Float[np.ndarray, "*batch latent"], Float[np.ndarray, "*batch latent"]]:
    """Return the smallest α at which each latent is active and the smallest at which it is passive, up to 0.5."""
    # Both conditions of a type must hold, so the larger of the two limits decides.
    active = np.maximum(moments.mean, moments.variance)
    passive = np.maximum(np.abs(moments.mean - 1), moments.variance)
    if moments.noise is not None:
        active = np.maximum(active, moments.noise)
    if moments.displacement is not None:
        passive = np.maximum(passive, moments.displacement)
    return active, passive


def _columns(posterior: RelativePosterior) -> list[Float[np.ndarray, "sample latent"]]:
    """Return the arrays whose moments are needed."""
    if posterior.prior != "conditional":
        return [posterior.variance]
    return [posterior.variance, posterior.mean**2, posterior.absolute_variance, posterior.absolute_mean]


def _gather(pairs: Sequence[tuple[np.ndarray, np.ndarray]]) -> Moments:
    """Assemble the moments from the mean and variance of each array of :func:`_columns`."""
    ratio, *others = pairs
    if not others:
        return Moments(*ratio)
    (displacement, _), (noise, _), (_, signal) = others
    # A constant mean has no signal, so its latent is never active.
    share = np.divide(noise, signal, out=np.full_like(noise, np.inf), where=signal > 0)
    return Moments(*ratio, displacement, share)


ALPHAS = (0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4)


@dataclasses.dataclass(frozen=True)
class Sensitivity(AbstractRecord):
    """Types of the latents at several values of α."""

    alphas: tuple[float, ...]
    types: tuple[tuple[VariableType, ...], ...]
    """For each α, the type of each latent."""

    def to_frame(self) -> pandas.DataFrame:
        """Return a table with a row for each α and a column for each latent: the type of the latent."""
        import pandas

        return pandas.DataFrame(list(self.types), index=pandas.Index(self.alphas, name="alpha")).rename_axis(
            columns="latent"
        )


def sensitivity(moments: Moments, alpha: float) -> Sensitivity:
    """Return the types at each α of a fixed grid and at ``alpha``."""
    alphas = tuple(sorted({*ALPHAS, alpha}))
    return Sensitivity(alphas, tuple(tuple(types_of(moments, at).tolist()) for at in alphas))


def alpha_ranges(moments: Moments, alpha: float) -> list[tuple[float, float]]:
    """Return, for each latent, the interval around ``alpha`` in which its type is the same; exact, not from a grid.

    A latent is mixed up to some α and active, or passive, from there to 0.5, the upper limit of the rule.

    >>> alpha_ranges(Moments(np.array([0.04]), np.array([0.01])), alpha=0.1)
    [(0.04, 0.5)]
    """
    # At most one of the two lies below 0.5, since m ≤ α and m ≥ 1 − α exclude each other there.
    first = np.minimum(np.minimum(*thresholds(moments)), ALPHA_LIMIT)
    mixed = types_of(moments, alpha) == "mixed"
    # On the bound itself |m − 1| can round to the other side of α.
    return [
        (0.0, float(max(start, alpha))) if is_mixed else (float(min(start, alpha)), ALPHA_LIMIT)
        for start, is_mixed in zip(first, mixed, strict=True)
    ]


def is_fragile(alpha_range: tuple[float, float], alpha: float) -> bool:
    """Return True if the type changes when α changes by at most a fifth.

    :param alpha_range: interval around α in which the type is the same
    :param alpha: tolerance of the rule
    """
    return alpha_range[0] > (1 - NEARBY) * alpha or alpha_range[1] < min((1 + NEARBY) * alpha, ALPHA_LIMIT)


CONFIDENT = 0.9  # minimum share of resamples with the same type for that type to count as sure
BLOCK = 4_000_000  # weights held in memory at once
ROWS = 50_000  # samples whose powers are held in memory at once


def type_shares(
    posterior: RelativePosterior, *, alpha: float, n_bootstrap: int, generator: np.random.Generator
) -> Float[np.ndarray, "latent 3"]:
    """Return the shares of bootstrap resamples in which each latent is active, mixed and passive, in this order.

    Each resample draws n of the n samples with replacement, each with all its positions, and applies the primary rule
    again. If the type on all
    samples has a share of 1, it does not depend on the samples drawn. A share of about a half means that the latent is
    on the boundary of the rule. The shares do not account for other seeds or longer training.

    Reference: Efron, Bootstrap Methods: Another Look at the Jackknife (efron1979).
    """
    counts = np.zeros((posterior.mean.shape[1], len(TYPES)))
    weighted = moments_of_resamples(posterior)
    for weights in _resamples(posterior.n_samples, n_bootstrap, generator):
        types = types_of(weighted(weights), alpha)
        counts += np.stack([(types == name).sum(axis=0) for name in TYPES], axis=1)
    return counts / n_bootstrap


def _resamples(
    n_samples: int, n_bootstrap: int, generator: np.random.Generator
) -> Iterator[Float[np.ndarray, "resample sample"]]:
    """Yield, for each resample, the count of each sample divided by n, so a mean is one matrix product."""
    block = max(1, BLOCK // n_samples)
    for start in range(0, n_bootstrap, block):
        rows = min(block, n_bootstrap - start)
        drawn = generator.integers(n_samples, size=(rows, n_samples))
        # Offset each resample, so one bincount counts all of them.
        drawn += n_samples * np.arange(rows)[:, None]
        yield np.bincount(drawn.ravel(), minlength=rows * n_samples).reshape(rows, n_samples) / n_samples
