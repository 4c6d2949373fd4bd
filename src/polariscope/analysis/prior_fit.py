"""Fit of the aggregate posterior to its prior, and overlap of encodings."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

import numpy as np
from jaxtyping import Float

from polariscope.analysis.representation import Representation
from polariscope.core.errors import InputError
from polariscope.core.records import AbstractStoredRecord
from polariscope.core.seeds import generator
from polariscope.numerics.mixtures import log_gaussian_mixture
from polariscope.numerics.overlap import mean_overlap

Discrepancy = Callable[[Float[np.ndarray, "first latent"], Float[np.ndarray, "second latent"]], float]
"""Distance between the distributions of two samples."""


@dataclasses.dataclass(frozen=True)
class PriorFit(AbstractStoredRecord, remedy="compare it with the prior again"):
    """Comparison of the aggregate posterior with the prior, in nats; undefined values are None, see ``notes``."""

    divergence: float | None
    """KL(p(z) ‖ q(z)), which is large if q(z) does not cover the prior and 0 if they are the same."""
    error: float | None
    """Standard error of the divergence, from the spread over draws."""
    discrepancy: float | None
    """Distance between draws of q(z) and of the prior, by the measure passed."""
    overlap: float | None
    """Bhattacharyya coefficient averaged over pairs of encodings: 0 if none overlap, 1 if all are the same."""
    n_samples: int
    """Number of encodings in the mixture q(z)."""
    n_draws: int
    """Number of draws of the prior."""
    notes: tuple[str, ...] = ()


def prior_fit(
    representation: Representation,
    draws: Float[np.ndarray, "draw latent"] | None,
    log_density: Float[np.ndarray, " draw"] | None,
    *,
    discrepancy: Discrepancy | None = None,
    n_points: int | None = 2000,
    n_compared: int = 1000,
    seed: int = 0,
) -> PriorFit:
    r"""Compare the aggregate posterior of a representation with draws of its prior.

    .. math:: \mathrm{KL}(p(z) \,\|\, q(z)) = \mathbb{E}_{z \sim p} [\log p(z) - \log q(z)], \qquad
        q(z) = \frac1N \sum_k q(z|x_k)

    with q(z) summed exactly over N encodings; only the average over draws is Monte Carlo. This KL is large if the prior
    has mass where there are no encodings. :func:`polariscope.decompose` computes the reverse, KL(q(z) ‖ p(z)), which is
    large if there are encodings where the prior has no mass. The overlap is
    :func:`polariscope.numerics.overlap.mean_overlap` of the encodings.

    A posterior that is a point has no density, so only the discrepancy is computed. A conditional prior is not a single
    prior, so only the overlap is computed.

    Reference: mathieu2019 §4 and §6.2, overlap and fit to the prior; the coefficient is our measure of overlap.

    :param representation: result of :func:`polariscope.encode`.
    :param draws: draws z ~ p(z); None for a conditional prior.
    :param log_density: log p(z) at each draw.
    :param discrepancy: (default None: not computed) distance between draws of q(z) and draws of the prior.
    :param n_points: (default 2,000) number of encodings to use; None for all.
    :param n_compared: (default 1,000) number of draws of each distribution for the discrepancy.
    :param seed: (default 0) seed of the selection of encodings.

    >>> codes = np.zeros((5, 1))
    >>> rep = Representation(mean=codes, variance=codes + 1, sampled=codes)
    >>> z = np.linspace(-2, 2, 9)[:, None]
    >>> fit = prior_fit(rep, z, -0.5 * (np.log(2 * np.pi) + z[:, 0] ** 2))
    >>> abs(fit.divergence) < 1e-12, fit.overlap
    (True, 1.0)
    """
    for name, number in (("n_points", n_points), ("n_compared", n_compared)):
        if number is not None and number < 2:
            raise InputError(name, "be at least 2", got=number)
    if representation.n_samples < 2:
        raise InputError(problem="overlap requires at least 2 encodings", got=1, remedy="encode more")
    if (draws is None) != (log_density is None):
        raise InputError("draws and log_density", "be passed together")
    # In random order, so the first n_compared rows below are a random subset too.
    order = generator(seed, "prior-fit").permutation(representation.n_samples)[:n_points]
    mean, variance, sampled = (
        np.asarray(part, dtype=np.float64)[order]
        for part in (representation.mean, representation.variance, representation.sampled)
    )
    covariance = (
        None if representation.covariance is None else representation.covariance[order].astype(np.float64)
    )
    notes = []
    is_point = variance.min() <= 0
    if is_point:
        notes.append("The posterior is a point for some inputs, so q(z) has no density and no overlap.")
    if draws is None:
        notes.append("The prior depends on the sample, so there is no single p(z) to compare q(z) with.")
    divergence = error = None
    if draws is not None and log_density is not None and not is_point:
        divergence, error = _divergence(draws, log_density, mean, variance, covariance)
    compared = None
    if draws is not None and discrepancy is not None:
        compared = discrepancy(sampled[:n_compared], draws[:n_compared])
    return PriorFit(
        divergence=divergence,
        error=error,
        discrepancy=compared,
        overlap=None if is_point else mean_overlap(mean, variance, covariance),
        n_samples=len(mean),
        n_draws=0 if draws is None else len(draws),
        notes=tuple(notes),
    )


def _divergence(
    draws: Float[np.ndarray, "draw latent"],
    log_density: Float[np.ndarray, " draw"],
    mean: Float[np.ndarray, "sample latent"],
    variance: Float[np.ndarray, "sample latent"],
    covariance: Float[np.ndarray, "sample latent latent"] | None,
) -> tuple[float, float]:
    """Return KL(p ‖ q) and its standard error."""
    if len(draws) < 2:
        raise InputError("draws", "be at least 2 for a standard error", got=len(draws))
    factor = None if covariance is None else np.linalg.cholesky(covariance)
    gaps = log_density - log_gaussian_mixture(draws, mean, variance, factor)
    return float(gaps.mean()), float(gaps.std(ddof=1)) / math.sqrt(len(gaps))
