"""Fit of a likelihood to held-out observations: dispersion, calibration, and comparison with another likelihood."""

from __future__ import annotations

import dataclasses
from typing import Literal

import numpy as np
from jaxtyping import Float

from polariscope.core.records import AbstractRecord, AbstractStoredRecord

MAX_OBSERVATIONS = 1000
"""Maximum number of observations on which the fit is measured."""
DISPERSION = (1 / 1.5, 1.5)
"""Range of the dispersion in which a fixed variance is accepted."""
OVERDISPERSION = 1.2
"""Maximum dispersion of counts that are accepted as Poisson."""
LIMIT = 1.6449
"""Number of standard errors between an estimate and its one-sided 95 % limit."""
N_BINS = 10
"""Number of groups of values with similar predictions, for the calibration of probabilities."""

Misfit = Literal["", "other-values", "overdispersed", "other-variance"]
RivalReason = Literal["counts", "binary", "dispersion"]
Source = Literal["held-out", "training", "given"]
SOURCES: dict[Source, str] = {
    "held-out": "held-out observations",
    "training": "training observations, because none are held out",
    "given": "the observations passed",
}


@dataclasses.dataclass(frozen=True)
class Rival(AbstractRecord):
    """Another likelihood with the same means, with one parameter fitted to the residuals."""

    likelihood: str
    """Name of the likelihood."""
    reason: RivalReason
    """Reason for the comparison: the values are counts, or all are 0 or 1 ("binary"), or residuals can have another
    size."""
    parameter: float
    """Dispersion θ or variance; 0 if there is none."""
    gain: float
    """Increase of the log-density in nats per observation."""
    error: float
    """Standard error of the gain."""


@dataclasses.dataclass(frozen=True)
class LikelihoodFit(AbstractStoredRecord, remedy="measure it again"):
    """Fit of a model's likelihood to the residuals of observations, with z drawn from the posterior.

    It is empty, with ``n_samples`` 0, for a model without a decoder or with a likelihood that defines no check.
    """

    likelihood: str = ""
    """Name of the likelihood."""
    n_samples: int = 0
    """Number of observations used."""
    source: Source = "given"
    """Origin of the observations: held out from the training, used in it, or passed by the caller."""
    dispersion: float = 1.0
    """Mean squared residual divided by the variance of the likelihood; 1 if the likelihood fits."""
    error: float = 0.0
    """Standard error of the dispersion."""
    distance: float = 0.0
    """Distance from calibration, 0 to 1. For densities and counts it is the largest difference between the distribution
    of F(x) and the uniform one (Kolmogorov–Smirnov). For probabilities it is the mean difference between them and the
    frequencies in ten groups."""
    coverage: float | None = None
    """Share of the values in the central 90 % interval; None for probabilities."""
    rival: Rival | None = None
    """Likelihood with which this one was compared, if any."""

    @property
    def misfit(self) -> Misfit:
        """Code of a clear misfit for which there is an alternative; empty if there is none."""
        if self.rival is None or self.rival.gain - LIMIT * self.rival.error <= 0:
            return ""
        if self.rival.reason != "dispersion":
            return "other-values"
        lower, upper = self.dispersion - LIMIT * self.error, self.dispersion + LIMIT * self.error
        if self.rival.likelihood != self.likelihood:
            return "overdispersed" if lower > OVERDISPERSION else ""
        return "other-variance" if lower > DISPERSION[1] or upper < DISPERSION[0] else ""

    @property
    def in_words(self) -> str:
        """Results as a sentence without a full stop; empty if nothing was measured."""
        if not self.n_samples:
            return ""
        covered = "" if self.coverage is None else f", {self.coverage:.0%} of the values in 90 % intervals"
        return (
            f"{self.likelihood}: dispersion {self.dispersion:.2f} ± {self.error:.2f} (1 if it fits), distance from "
            f"calibration {self.distance:.2f} (0 if it fits){covered}; {self.n_samples:,} {SOURCES[self.source]}"
        )

    def as_facts(self) -> dict[str, object]:
        """Return the values in the note about a misfit, as JSON values."""
        facts: dict[str, object] = {"likelihood": self.likelihood, "source": self.source}
        assert self.rival is not None
        facts |= {"rival": self.rival.likelihood, "gain": self.rival.gain}
        if self.misfit == "other-values":
            return {**facts, "values": self.rival.reason}
        return {**facts, "dispersion": self.dispersion, "parameter": self.rival.parameter}


def dispersion_of(
    square: Float[np.ndarray, "sample feature"], variance: Float[np.ndarray, "sample feature"]
) -> tuple[float, float]:
    r"""Return the dispersion and its standard error.

    .. math:: \hat\phi = \frac1n \sum_i \frac1p \sum_j \frac{(x_{ij} - \mu_{ij})^2}{\frac1n \sum_k V_{kj}}

    Each column has the same weight and is divided by its mean variance, because the variances of single counts can be
    near 0.

    :param square: squared residuals.
    :param variance: variances of the likelihood.
    """
    mean_variance = variance.mean(axis=0)
    # A column without variance has no defined dispersion.
    usable = mean_variance > 0
    if not usable.any():
        return 1.0, 0.0
    ratios = (square[:, usable] / mean_variance[usable]).mean(axis=1)
    return float(ratios.mean()), float(ratios.std() / np.sqrt(len(ratios)))


def distance_from_uniform(values: Float[np.ndarray, "..."]) -> float:
    """Return the largest difference between the distribution of values and the uniform one on [0, 1].

    :param values: values of the probability integral transform.

    >>> round(distance_from_uniform(np.array([0.1, 0.3, 0.5, 0.7, 0.9])), 3)
    0.1
    """
    ordered = np.sort(values, axis=None)
    steps = np.arange(len(ordered) + 1) / len(ordered)
    # The empirical distribution jumps at each value, so both sides of the step are compared.
    return float(max(np.abs(ordered - steps[:-1]).max(), np.abs(ordered - steps[1:]).max()))


def reliability_gap(x: Float[np.ndarray, "..."], probability: Float[np.ndarray, "..."]) -> float:
    """Return the mean difference between probabilities and frequencies, in ten groups of similar probabilities.

    :param x: values in [0, 1].
    :param probability: predicted means of these values.
    """
    order = np.argsort(probability, axis=None, kind="stable")
    parts = zip(
        np.array_split(x.reshape(-1)[order], N_BINS),
        np.array_split(probability.reshape(-1)[order], N_BINS),
        strict=True,
    )
    return float(sum(abs(float((one - other).sum())) for one, other in parts) / x.size)
