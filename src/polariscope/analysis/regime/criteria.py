"""Other rules for latents in use and their agreement, types per sample, and the degree of polarisation."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

import numpy as np
from jaxtyping import Bool, Float, Int

from polariscope.analysis.regime.latent_types import VariableType
from polariscope.analysis.regime.posterior import RelativePosterior
from polariscope.analysis.regime.regime import CriteriaTable, Mixedness, MixtureLabel, Polarisation
from polariscope.analysis.regime.rule import TypeRule
from polariscope.numerics.column_blocks import by_columns
from polariscope.numerics.intervals import mean_with_interval


@dataclasses.dataclass(frozen=True, eq=False)
class Mixture:
    """Shares of samples per latent, and the labels derived from them."""

    known: Float[np.ndarray, " latent"]
    """Share of samples with σ²/Σ† < α: the input determines the latent."""
    unknown: Float[np.ndarray, " latent"]
    """Share of samples with σ²/Σ† > 1 − α: the posterior is as wide as the prior."""
    labels: tuple[MixtureLabel, ...]


def mixture(variance: Float[np.ndarray, "sample latent"], alpha: float = TypeRule.alpha) -> Mixture:
    """Label each latent by the posterior variances of single samples, relative to the prior's variance.

    * active, passive: known, or unknown, for at least 1 − α of the samples;
    * mixed: both for at least α of them, "sometimes active, sometimes passive" (bonheme2023 Def. 6.3.1);
    * noisy: all other latents, such as one with the same intermediate variance for every sample. The primary rule
      calls it mixed although it does not switch between active and passive.

    >>> mixture(np.array([[0.01, 0.01, 0.5], [0.02, 1.0, 0.5]])).labels
    ('active', 'mixed', 'noisy')
    """
    # Shares of the samples, not moments: a mean cannot show that a latent switches.
    known, unknown = (variance < alpha).mean(axis=0), (variance > 1 - alpha).mean(axis=0)
    labels = tuple(_label(a, p, alpha) for a, p in zip(known, unknown, strict=True))
    return Mixture(known, unknown, labels)


def _label(known: float, unknown: float, alpha: float) -> MixtureLabel:
    if known >= 1 - alpha:
        return "active"
    if unknown >= 1 - alpha:
        return "passive"
    return "mixed" if min(known, unknown) >= alpha else "noisy"


SWITCHING = 0.05
"""Minimum share of known inputs, and of unknown inputs, of a switching latent."""


def mixedness(kind: VariableType, known: float, unknown: float, mean: float) -> Mixedness | None:
    """Return the kind of a mixed latent, or None if the latent is not mixed.

    The rule calls a latent mixed if it is neither active nor passive. There are three kinds:

    * switching: active for some inputs and passive for others, as mixed latents are defined (bonheme2023
      Def. 6.3.1). At least 5 % of the inputs are known, at least 5 % are unknown, and the two add up to at least half;
    * intermediate: the latent does not switch, and the input determines it only to some degree. In a linear VAE every
      mixed latent is of this kind, because its variance is the same for every input;
    * wide: the latent does not switch, and its posterior is on average wider than the prior.

    :param kind: type of the latent
    :param known: share of samples with σ²/Σ† < α
    :param unknown: share of samples with σ²/Σ† > 1 − α
    :param mean: mean of σ²/Σ†

    >>> mixedness("mixed", 0.4, 0.5, 0.55), mixedness("mixed", 0.0, 0.0, 0.5), mixedness("active", 1.0, 0.0, 0.0)
    ('switching', 'intermediate', None)
    """
    if kind != "mixed":
        return None
    if min(known, unknown) >= SWITCHING and known + unknown >= 0.5:
        return "switching"
    return "wide" if mean > 1 else "intermediate"


InUse = Bool[np.ndarray, " latent"]
Criterion = Callable[[RelativePosterior], InUse]


def _std(values: Float[np.ndarray, "sample latent"]) -> Float[np.ndarray, " latent"]:
    return values.std(axis=0)


def std_of_mean(posterior: RelativePosterior, *, threshold: float = 0.5) -> InUse:
    """std(μ) > 0.5. zietlow2022 §3.3.2, for Δ_KL."""
    return by_columns(_std, posterior.mean) > threshold


def mean_variance(posterior: RelativePosterior, *, threshold: float = 0.8) -> InUse:
    """E[σ²] < 0.8. zietlow2022 §4.3.4 calls a run with fewer such latents than factors over-pruned."""
    return posterior.variance.mean(axis=0) < threshold


def kl_tail(posterior: RelativePosterior, *, tolerance: float = 0.1) -> InUse:
    """E[μ²] > 0.1 or |E[σ] − 1| > 0.1, or a larger KL than such a latent. mushom2020 §5.3.

    The source judges "μ ≈ 0, σ ≈ 1" by eye; the tolerance is ours. The tail has no gaps: a latent that looks like the
    prior counts as in use if its KL is larger than that of a latent that does not look like the prior.
    """
    centred = by_columns(lambda mean: (mean**2).mean(axis=0), posterior.mean) <= tolerance
    std = by_columns(lambda variance: np.sqrt(variance).mean(axis=0), posterior.variance)
    wide = np.abs(std - 1) <= tolerance
    order = order_by_kl(posterior)
    # Accumulate from the smallest KL: the tail ends at the first latent that differs from the prior.
    tail = np.logical_and.accumulate((centred & wide)[order[::-1]])[::-1]
    in_use = np.empty(len(order), dtype=bool)
    in_use[order] = ~tail
    return in_use


def kl_threshold(posterior: RelativePosterior, *, threshold: float = 0.1) -> InUse:
    """KL > 0.1 nats. mathieu2019 code, which leaves the threshold to the caller; 0.1 is ours."""
    return _kl_of_position(posterior) > threshold


def kl_udr(posterior: RelativePosterior, *, threshold: float = 0.01) -> InUse:
    """KL > 0.01 nats. The code of UDR (duan2020)."""
    return _kl_of_position(posterior) > threshold


def _kl_of_position(posterior: RelativePosterior) -> Float[np.ndarray, " latent"]:
    """Return the mean KL of one value: published rules are for latents, not for channels with many positions."""
    return mean_with_interval(posterior.kl)[0] / posterior.n_positions


def std_pruning(posterior: RelativePosterior, *, threshold: float = 0.05) -> InUse:
    """std(μ) ≥ 0.05. disentanglement_lib code, pruning before the FactorVAE metric."""
    return by_columns(_std, posterior.mean) >= threshold


def active_units(posterior: RelativePosterior, *, threshold: float = 0.01) -> InUse:
    """Var(μ) > 0.01. Burda et al., Importance Weighted Autoencoders (burda2016)."""
    return by_columns(lambda mean: mean.var(axis=0), posterior.mean) > threshold


def mixture_label(posterior: RelativePosterior, *, alpha: float = TypeRule.alpha) -> InUse:
    """σ² ≤ 0.9 for more than a tenth of the samples."""
    return np.array([label != "passive" for label in mixture(posterior.variance, alpha).labels])


CRITERIA: dict[str, Criterion] = {
    "std-of-mean": std_of_mean,
    "mean-variance": mean_variance,
    "kl-tail": kl_tail,
    "kl-threshold": kl_threshold,
    "kl-udr": kl_udr,
    "std-pruning": std_pruning,
    "active-units": active_units,
    "mixture": mixture_label,
}


def compare_criteria(posterior: RelativePosterior, primary: InUse) -> CriteriaTable:
    """Apply every criterion, and compute its agreement with the primary rule and with the others."""
    in_use = np.array([primary, *(criterion(posterior) for criterion in CRITERIA.values())])
    # Entry (i, j) is the share of latents on which rules i and j agree.
    agreement = (in_use[:, None, :] == in_use[None, :, :]).mean(axis=2)
    rules = ["The primary rule: not passive. bonheme2023 §6.4.1."]
    # Tables show the first line of a criterion's docstring as its description.
    rules += [(criterion.__doc__ or "").split("\n", 1)[0] for criterion in CRITERIA.values()]
    return CriteriaTable(
        ("primary", *CRITERIA),
        tuple(rules),
        tuple(tuple(row) for row in in_use.tolist()),
        tuple(tuple(row) for row in agreement.tolist()),
    )


def order_by_kl(posterior: RelativePosterior) -> Int[np.ndarray, " latent"]:
    """Return the latents by KL, largest first: the most informative come first (mushom2020 §5.3).

    Ties, such as the infinite KLs of a deterministic encoder, are ordered by the spread of the mean, then by index.
    """
    # np.lexsort sorts by its last key first.
    return np.lexsort((-by_columns(_std, posterior.absolute_mean), -mean_with_interval(posterior.kl)[0]))


def order_by_variance(posterior: RelativePosterior) -> Int[np.ndarray, " latent"]:
    """Return the latents by E[σ²], smallest first: "non-linear principal components". zietlow2022 Eq. 4.8, §3.3.5."""
    return np.argsort(posterior.variance.mean(axis=0), kind="stable")


def polarisation(posterior: RelativePosterior) -> Polarisation:
    r"""Compute the relative error of the KL that is written for active latents alone.

    .. math:: \Delta_\mathrm{KL} = \frac{|L_\mathrm{KL} - L_{\approx\mathrm{KL}}|}{L_\mathrm{KL}}, \qquad
        L_{\approx\mathrm{KL}} = \tfrac12 \sum_{j \in V_a} \mathrm{E}\,[\mu_j^2 - \log\sigma_j^2 - 1]

    with V_a the latents of std(μ) > 0.5. The approximation omits σ² of these latents, which should be near 0, and all
    other latents, which should equal the prior. Below 0.03 the regime is called polarised. If every posterior equals
    the prior, the KL is 0 and Δ = 0. For a Gaussian prior other than N(0, 1) the moments are relative to the prior.

    Reference: zietlow2022 Eqs 3.5, 3.38.
    """
    active = std_of_mean(posterior)
    kl = float(posterior.gaussian_kl.mean(axis=0).sum())
    # 2 KL = μ² + σ² − log σ² − 1, so omitting σ² subtracts E[σ²]/2 from the latent's KL.
    # One latent at a time, because a copy of all active ones can be large.
    active_kl = [
        posterior.gaussian_kl[:, latent].mean()
        - posterior.variance[:, latent].mean() * posterior.n_positions / 2
        for latent in np.flatnonzero(active)
    ]
    approximate = float(np.sum(active_kl))
    return Polarisation(
        _relative_error(kl, approximate), kl, approximate, tuple(np.flatnonzero(active).tolist())
    )


def _relative_error(kl: float, approximate: float) -> float | None:
    if math.isinf(kl):
        return None
    return abs(kl - approximate) / kl if kl > 0 else 0.0
