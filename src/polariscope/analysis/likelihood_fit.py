"""How well a likelihood fits what its model was not trained on: dispersion, calibration, and a rival."""

from __future__ import annotations

import dataclasses
from typing import Literal

import numpy as np
from jaxtyping import Float

from polariscope.core.records import AbstractRecord, AbstractStoredRecord

MAX_OBSERVATIONS = 1000
"""Observations on which the fit is measured."""
DISPERSION = (1 / 1.5, 1.5)
"""Dispersion within which a fixed variance is as good as another one."""
OVERDISPERSION = 1.2
"""Dispersion up to which counts are Poisson."""
LIMIT = 1.6449
"""Standard errors between an estimate and its one-sided 95 % limit."""
N_BINS = 10
"""Groups of values with similar predictions, for the calibration of probabilities."""

Misfit = Literal["", "other-values", "overdispersed", "other-variance"]
RivalReason = Literal["counts", "binary", "dispersion"]
Source = Literal["held-out", "training", "given"]
SOURCES: dict[Source, str] = {
    "held-out": "held-out observations",
    "training": "training observations, since none are held out",
    "given": "the observations given",
}


@dataclasses.dataclass(frozen=True)
class Rival(AbstractRecord):
    """Another likelihood with the same means, whose one parameter is fitted to the residuals."""

    likelihood: str
    """Its name."""
    reason: RivalReason
    """Why it is compared: the values are counts, or all 0 and 1 ("binary"); or residuals can have another size."""
    parameter: float
    """Its dispersion θ, or its variance; 0 if it has none."""
    gain: float
    """Rise of the log-density by it, nats per observation, in the values that were looked at."""
    error: float
    """Standard error of the gain."""


@dataclasses.dataclass(frozen=True)
class LikelihoodFit(AbstractStoredRecord, remedy="measure it again"):
    """Residuals of observations against the likelihood of their model, with z drawn from the posterior.

    Empty, with ``n_samples`` 0, for a model without a decoder or with a likelihood that does not say how it is checked.
    """

    likelihood: str = ""
    """Name of the likelihood."""
    n_samples: int = 0
    """Observations that were looked at."""
    source: Source = "given"
    """Where they come from: held out from the training, used in it, or given by the user."""
    dispersion: float = 1.0
    """Mean squared residual over the variance of the likelihood; 1 if the likelihood fits."""
    error: float = 0.0
    """Standard error of the dispersion."""
    distance: float = 0.0
    """Distance from calibration, 0 to 1. Of a density, or of counts: the largest difference between the distribution of
    F(x) and the uniform one (Kolmogorov and Smirnov). Of probabilities: the mean difference between them and the
    frequencies in ten groups."""
    coverage: float | None = None
    """Share of the values in the central 90 % interval; None for probabilities."""
    rival: Rival | None = None
    """The likelihood that was compared, if there is one."""

    @property
    def misfit(self) -> Misfit:
        """The code of a clear misfit to which there is an alternative; empty if there is none."""
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
        """The numbers in a sentence without a full stop; empty if nothing was measured."""
        if not self.n_samples:
            return ""
        covered = "" if self.coverage is None else f", {self.coverage:.0%} of the values in 90 % intervals"
        return (
            f"{self.likelihood}: dispersion {self.dispersion:.2f} ± {self.error:.2f} (1 if it fits), distance from "
            f"calibration {self.distance:.2f} (0 if it fits){covered}; {self.n_samples:,} {SOURCES[self.source]}"
        )

    def as_facts(self) -> dict[str, object]:
        """Return the numbers behind the note of a misfit, as JSON values."""
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

    Each column counts alike, and is divided by its mean variance: the variances of single counts can be near 0.

    :param square: squared residuals.
    :param variance: variances of the likelihood.
    """
    usual = variance.mean(axis=0)
    usable = usual > 0
    if not usable.any():
        return 1.0, 0.0
    ratios = (square[:, usable] / usual[usable]).mean(axis=1)
    return float(ratios.mean()), float(ratios.std() / np.sqrt(len(ratios)))


def distance_from_uniform(values: Float[np.ndarray, "..."]) -> float:
    """Return the largest difference between the distribution of values and the uniform one on [0, 1].

    :param values: values of the probability integral transform.

    >>> round(distance_from_uniform(np.array([0.1, 0.3, 0.5, 0.7, 0.9])), 3)
    0.1
    """
    ordered = np.sort(values, axis=None)
    steps = np.arange(len(ordered) + 1) / len(ordered)
    return float(max(np.abs(ordered - steps[:-1]).max(), np.abs(ordered - steps[1:]).max()))


def reliability_gap(x: Float[np.ndarray, "..."], probability: Float[np.ndarray, "..."]) -> float:
    """Return the mean difference between probabilities and frequencies, in ten groups of similar probabilities.

    :param x: values in [0, 1].
    :param probability: their predicted means.
    """
    order = np.argsort(probability, axis=None, kind="stable")
    parts = zip(
        np.array_split(x.reshape(-1)[order], N_BINS),
        np.array_split(probability.reshape(-1)[order], N_BINS),
        strict=True,
    )
    return float(sum(abs(float((one - other).sum())) for one, other in parts) / x.size)
