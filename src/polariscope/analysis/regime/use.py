"""Latents in use, judged by the decoder's loss or by the information in the means."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from jaxtyping import Float

from polariscope.core.records import AbstractRecord, AbstractStoredRecord

if TYPE_CHECKING:
    from polariscope.analysis.representation import Representation


Evidence = Literal["decoder", "information"]
EFFECT = 0.1
"""Decoder effect in nats above which a latent is in use."""
INFORMATION = 0.1
"""Information ½ log(1 + Var μ / E σ²) in nats above which a latent is in use, without a decoder."""
CONFIDENCE = 0.95
"""Confidence level of the one-sided limits of the use of one latent."""
LIMIT = NormalDist().inv_cdf(CONFIDENCE)
"""Number of standard errors between an estimate and its one-sided limit."""


MAX_OBSERVATIONS = 1000
"""Maximum number of observations for the decoder effect; its standard error is then a thirtieth of its spread."""


@dataclasses.dataclass(frozen=True)
class Effect(AbstractStoredRecord, remedy="measure it again"):
    """Decoder effect of each latent, in nats, and its standard errors; both are empty without a decoder."""

    value: tuple[float, ...] = ()
    error: tuple[float, ...] = ()

    def as_fields(self) -> dict[str, Any]:
        """Return the effect as fields of a representation; empty without a decoder."""
        if not self.value:
            return {}
        return {"effect": np.array(self.value), "effect_error": np.array(self.error)}


@dataclasses.dataclass(frozen=True)
class Use(AbstractRecord):
    """Use of one latent in nats, with one-sided 95 % limits."""

    value: float
    """Decoder effect, or information ½ log(1 + Var μ / E σ²); infinite for a posterior without variance."""
    lower: float
    upper: float
    evidence: Evidence

    @property
    def threshold(self) -> float:
        """Value in nats above which a latent is in use."""
        return EFFECT if self.evidence == "decoder" else INFORMATION

    @property
    def in_use(self) -> bool:
        """If True, the latent is in use: its lower limit exceeds the threshold."""
        return self.lower > self.threshold

    @property
    def can_be_in_use(self) -> bool:
        """If True, the upper limit exceeds the threshold."""
        return self.upper > self.threshold


def count_limits(uses: Sequence[Use]) -> tuple[int, int]:
    """Return the smallest and the largest number of latents in use that are consistent with the evidence.

    The limits hold with 95 % confidence for all n latents jointly (Bonferroni correction). The count itself lies
    between them.

    :param uses: use of each latent.

    >>> count_limits([Use(3.0, 2.9, 3.1, "decoder"), Use(0.3, 0.12, 0.48, "decoder"), Use(0.0, -0.1, 0.1, "decoder")])
    (1, 3)
    """
    # The stored limits are for one latent; their margins are widened so that all hold jointly.
    wider = NormalDist().inv_cdf(1 - (1 - CONFIDENCE) / len(uses)) / LIMIT
    low = high = 0
    for use in uses:
        # Both limits have the same margin. An infinite value has none.
        margin = wider * (use.upper - use.value) if math.isfinite(use.value) else 0.0
        low += use.value - margin > use.threshold
        high += use.value + margin > use.threshold
    return low, high


def uses(representation: Representation) -> tuple[Use, ...]:
    r"""Return the use of each latent: the decoder effect if it was measured, otherwise the information in the means.

    The information of latent j is :math:`\tfrac12 \log(1 + \mathrm{Var}\,\mu_j / \mathrm{E}\,\sigma_j^2)`, the capacity
    of a Gaussian channel with signal μ and noise σ. It does not depend on the prior. Its standard error is computed to
    first order from that of the ratio of the two moments.

    For a channel with positions, it is the information at one position, from moments averaged over the positions: Var μ
    is the variance over samples at the same position, since a mean that differs between positions, but not between
    samples, carries no information. Its standard error is computed from averages over the positions of each sample. A
    channel that carries information at few of many positions can therefore count as not in use; the map of its KL shows
    them. The decoder effect is that of the whole channel.

    :param representation: codes.
    """
    if representation.effect is not None and representation.effect_error is not None:
        values, errors = representation.effect.astype(float), representation.effect_error.astype(float)
        return _uses(values, errors, "decoder")
    return uses_of_codes(representation.mean, representation.variance, representation.n_positions)


def uses_of_codes(
    mean: Float[np.ndarray, "sample latent"],
    variance: Float[np.ndarray, "sample latent"],
    n_positions: int = 1,
) -> tuple[Use, ...]:
    """Return the use of each latent from the information in its means.

    :param mean: posterior means.
    :param variance: posterior variances.
    :param n_positions: (default 1) number of consecutive columns that are the positions of one channel.
    """
    return _uses(*information(mean, variance, n_positions), "information")


def latents_in_use(representation: Representation) -> tuple[int, ...]:
    """Return the columns of the latents in use, in order; all columns of each channel in use.

    :param representation: codes.
    """
    units = [index for index, use in enumerate(uses(representation)) if use.in_use]
    return tuple(representation.columns_of(units))


def information(
    mean: Float[np.ndarray, "sample latent"],
    variance: Float[np.ndarray, "sample latent"],
    n_positions: int = 1,
) -> tuple[Float[np.ndarray, " unit"], Float[np.ndarray, " unit"]]:
    """Return ½ log(1 + Var μ / E σ²) of each latent, in nats, and its standard error; of each channel, per position.

    :param mean: posterior means.
    :param variance: posterior variances.
    :param n_positions: (default 1) number of consecutive columns that are the positions of one channel.
    """
    # One at a time, because several temporaries are twice as large as their codes.
    columns = [slice(begin, begin + n_positions) for begin in range(0, mean.shape[1], n_positions)]
    values = [_information(mean[:, which], variance[:, which]) for which in columns]
    return np.concatenate([value for value, _ in values]), np.concatenate([error for _, error in values])


def _information(
    mean: Float[np.ndarray, "sample position"], variance: Float[np.ndarray, "sample position"]
) -> tuple[Float[np.ndarray, " 1"], Float[np.ndarray, " 1"]]:
    """Return the information at one position of a channel, and its standard error."""
    # A posterior without variance has infinite information, which is not an error.
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        square = (mean.astype(np.float64) - mean.mean(axis=0, dtype=np.float64)) ** 2
        noise = variance.astype(np.float64)
        # Samples are independent and positions are not, so each sample contributes one value.
        square, noise = square.mean(axis=1, keepdims=True), noise.mean(axis=1, keepdims=True)
        signal, level, n = square.mean(axis=0), noise.mean(axis=0), len(mean)
        ratio = np.where(signal > 0, signal / level, 0.0)
        relative = (square / signal - noise / level).std(axis=0) / np.sqrt(n)
        # Delta method: the derivative of ½ log(1 + r) is ½ / (1 + r).
        error = np.where(np.isfinite(ratio) & (ratio > 0), 0.5 * ratio / (1 + ratio) * relative, 0.0)
        return 0.5 * np.log1p(ratio), error


def use_of_moments(std_of_mean: float, mean_of_variance: float) -> Use:
    """Return the information of a latent from two moments, without limits.

    :param std_of_mean: standard deviation of the posterior means.
    :param mean_of_variance: mean posterior variance.
    """
    signal = std_of_mean**2
    value = (
        0.5 * math.log1p(signal / mean_of_variance) if mean_of_variance > 0 else math.inf if signal else 0.0
    )
    return Use(value, value, value, "information")


def _uses(
    values: Float[np.ndarray, " latent"], errors: Float[np.ndarray, " latent"], evidence: Evidence
) -> tuple[Use, ...]:
    return tuple(
        Use(value, value - LIMIT * error, value + LIMIT * error, evidence)
        if math.isfinite(value)
        else Use(value, value, value, evidence)
        for value, error in zip(values.tolist(), errors.tolist(), strict=True)
    )
