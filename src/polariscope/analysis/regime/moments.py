"""Moments of the posterior and the prior of each latent, above all for conditional priors."""

from __future__ import annotations

import dataclasses

import numpy as np

from polariscope.analysis.regime.posterior import relative_posterior
from polariscope.analysis.representation import Representation


@dataclasses.dataclass(frozen=True)
class LatentMoments:
    """Moments of one latent over the observations, with posterior N(μ, Σ) and prior N(μ†, Σ†); means by default."""

    kl: float
    """KL of the posterior from the prior, in nats."""
    mean_square: float
    """E[μ²]."""
    largest_mean: float
    """Largest |μ|."""
    variance: float
    """E[Σ]."""
    prior_mean: float
    """E[μ†]."""
    std_of_prior_mean: float
    """Standard deviation of μ† over the observations; 0 if all have the same prior."""
    prior_variance: float
    """E[Σ†]."""
    largest_prior_variance: float
    """Largest Σ†."""
    ratio: float
    """E[Σ/Σ†]: 1 if the posterior is as wide as the prior, near 0 if it is much narrower."""
    displacement: float
    """E[(μ − μ†)²/Σ†]: 0 if the posterior is always centred on the prior."""
    match: float
    """E[Σ†] / E[Σ + (μ − μ†)²]: 1 if the prior has the width that minimises the rate; infinite if the posteriors are
    points at its mean."""


def latent_moments(representation: Representation) -> tuple[LatentMoments, ...]:
    r"""Compute moments of the posterior and the prior of each latent, over the observations.

    With the same Σ† for all observations, the rate
    :math:`\mathrm{E}\,\mathrm{KL}(N(\mu, \Sigma) \,\|\, N(\mu^\dagger, \Sigma^\dagger))` is smallest at
    :math:`\Sigma^\dagger = \mathrm{E}[\Sigma + (\mu - \mu^\dagger)^2]`, where ``match`` is 1. For an active latent with
    μ† = 0 and Σ ≈ 0 this is Σ† ≈ μ².

    Reference: bonheme2023 §5.3, Figs 5.1–5.4, as numbers.

    :param representation: result of :func:`polariscope.encode`; without moments of a prior, those of N(0, 1) are
        used.

    >>> rep = Representation(np.array([[2.0], [-2.0]]), np.full((2, 1), 0.5), np.zeros((2, 1)))
    >>> (result,) = latent_moments(rep)
    >>> result.mean_square, result.ratio, round(result.match, 3)
    (4.0, 0.5, 0.222)
    """
    relative = relative_posterior(representation)
    mean, variance = relative.absolute_mean, relative.absolute_variance
    prior_mean, prior_variance = (
        # A prior shared by all samples has no sample axis.
        np.broadcast_to(np.float64(default) if moment is None else moment.astype(np.float64), mean.shape)
        for moment, default in ((representation.prior_mean, 0.0), (representation.prior_variance, 1.0))
    )
    needed = (variance + (mean - prior_mean) ** 2).mean(axis=0)
    columns = {
        "kl": relative.kl.mean(axis=0),
        "mean_square": (mean**2).mean(axis=0),
        "largest_mean": np.abs(mean).max(axis=0),
        "variance": variance.mean(axis=0),
        "prior_mean": prior_mean.mean(axis=0),
        "std_of_prior_mean": prior_mean.std(axis=0),
        "prior_variance": prior_variance.mean(axis=0),
        "largest_prior_variance": prior_variance.max(axis=0),
        "ratio": relative.variance.mean(axis=0),
        "displacement": (relative.mean**2).mean(axis=0),
        "match": np.divide(
            prior_variance.mean(axis=0), needed, out=np.full_like(needed, np.inf), where=needed > 0
        ),
    }
    return tuple(
        LatentMoments(**{name: float(column[j]) for name, column in columns.items()})
        for j in range(mean.shape[1])
    )
