"""Posterior of each latent in units of its prior, and its divergence from the prior."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from polariscope.analysis.regime.latent_types import PriorKind
from polariscope.analysis.representation import Representation
from polariscope.numerics.clusters import effective_number, intraclass_correlation

BLOCK = 50_000
"""Number of samples whose divergences are computed at once."""


def gaussian_kl(
    mean: Float[np.ndarray, "sample latent"],
    variance: Float[np.ndarray, "sample latent"],
    prior_mean: Float[np.ndarray, "*_"] | float = 0.0,
    prior_variance: Float[np.ndarray, "*_"] | float = 1.0,
) -> Float[np.ndarray, "sample latent"]:
    r"""Compute the KL divergence of N(μ, σ²) from N(μ†, Σ†) in nats, for each sample and latent.

    .. math:: \mathrm{KL}_j = \tfrac12 \left( \frac{(\mu_j - \mu^\dagger_j)^2}{\Sigma^\dagger_j}
        + r_j - \log r_j - 1 \right), \qquad r_j = \sigma_j^2 / \Sigma^\dagger_j

    It is 0 if posterior and prior are equal, and infinite if σ² = 0, when the posterior is a point.

    Reference: bonheme2023 Eqs 2.18–2.19; zietlow2022 Eq. 2.6. mushom2020 Eq. 3.5 prints its negative.

    >>> gaussian_kl(np.array([[0.0, 1.0]]), np.array([[1.0, 1.0]]))
    array([[0. , 0.5]])
    """
    shape = np.broadcast_shapes(mean.shape, variance.shape)
    result = np.empty(shape)
    moments = [np.broadcast_to(each, shape) for each in (mean, variance, prior_mean, prior_variance)]
    for begin in range(0, shape[0], BLOCK):  # in blocks, because each temporary is as large as the codes
        rows = slice(begin, begin + BLOCK)
        mu, sigma2, prior_mu, prior_sigma2 = (each[rows] for each in moments)
        ratio = sigma2 / prior_sigma2
        # The logarithm of 0 is −∞ by definition here, without a warning.
        logarithm = np.log(ratio, out=np.full_like(ratio, -np.inf), where=ratio > 0)
        # Grouped so that the terms cancel exactly if posterior and prior are equal.
        divergence = (mu - prior_mu) ** 2 / prior_sigma2 + (ratio - 1) - logarithm
        result[rows] = np.maximum(divergence / 2, 0.0)  # rounding can leave −1e-17 if the two are equal
    return result


@dataclasses.dataclass(frozen=True, eq=False)
class RelativePosterior:
    r"""Posterior N(μ, σ²) of each latent relative to its prior N(μ†, Σ†), in float64.

    For the standard normal prior the relative moments are μ and σ² themselves, so published rules, which are written
    for N(0, 1), apply as printed. For another prior "σ² ≈ 1" becomes "σ² ≈ Σ†".
    """

    mean: Float[np.ndarray, "row latent"]
    """(μ − μ†) / √Σ†."""
    variance: Float[np.ndarray, "row latent"]
    """σ² / Σ†."""
    kl: Float[np.ndarray, "sample latent"]
    """KL(q(z_j|x) ‖ p(z_j)) in nats: the model's own KL if it provides one, otherwise that of the two Gaussians."""
    gaussian_kl: Float[np.ndarray, "sample latent"]
    """KL of the two Gaussians; infinite if σ² = 0."""
    absolute_mean: Float[np.ndarray, "row latent"]
    """μ."""
    absolute_variance: Float[np.ndarray, "row latent"]
    """σ²."""
    prior: PriorKind
    """"conditional" if the prior's moments differ between samples, as in an iVAE."""
    n_positions: int = 1
    """Number P of positions of each channel. If it exceeds 1, columns are channels. The rows of ``mean``, ``variance``
    and their absolute values are then all positions of the first sample, of the second …; ``kl`` and ``gaussian_kl``
    are summed over positions and have a row for each sample."""
    correlation: Float[np.ndarray, " latent"] | None = None
    """Intraclass correlation of μ over the positions of a channel; None without positions."""

    @property
    def n_samples(self) -> int:
        return len(self.mean) // self.n_positions

    @property
    def n_effective(self) -> Float[np.ndarray, " latent"]:
        """Effective number of values of each channel or latent; the number of samples without positions."""
        if self.correlation is None:
            return np.full(self.mean.shape[1], float(self.n_samples))
        return effective_number(self.n_samples, self.n_positions, self.correlation)


def kl_is_gaussian(posterior: RelativePosterior) -> bool:
    """Return True if the model's own KL equals that of two Gaussians; then the prior is Gaussian."""
    return np.allclose(posterior.kl.mean(axis=0), posterior.gaussian_kl.mean(axis=0), rtol=1e-3, atol=1e-3)


def relative_posterior(representation: Representation) -> RelativePosterior:
    """Return the posterior moments of a representation in units of its prior, pooled over positions of a channel."""
    flat = in_units_of_prior(
        representation.mean.astype(np.float64),
        representation.variance.astype(np.float64),
        _or(representation.prior_mean, 0.0),
        _or(representation.prior_variance, 1.0),
        None if representation.rate is None else representation.rate.astype(np.float64),
    )
    size = representation.n_positions
    if size == 1:
        return flat
    pooled: dict[str, Any] = {
        name: rows_of(getattr(flat, name), size)
        for name in ("mean", "variance", "absolute_mean", "absolute_variance")
    }
    kl = _summed(flat.gaussian_kl, size)
    return dataclasses.replace(
        flat,
        **pooled,
        kl=kl if flat.kl is flat.gaussian_kl else _summed(flat.kl, size),
        gaussian_kl=kl,
        n_positions=size,
        correlation=intraclass_correlation(representation.by_channel()),
    )


def rows_of(values: Float[np.ndarray, "sample latent"], n_positions: int) -> Float[np.ndarray, "row channel"]:
    """Return a row for each sample and position, with all positions of a sample next to each other.

    :param values: flattened codes, with the positions of a channel next to each other.
    :param n_positions: number of positions of a channel.
    """
    if n_positions == 1:
        return values
    channels = values.reshape(len(values), -1, n_positions)
    return channels.transpose(0, 2, 1).reshape(len(values) * n_positions, -1)


def _summed(
    values: Float[np.ndarray, "sample latent"], n_positions: int
) -> Float[np.ndarray, "sample channel"]:
    return values.reshape(len(values), -1, n_positions).sum(axis=2)


def pooled_rows(representation: Representation) -> Representation:
    """Return a representation with a row for each sample and position, and a column for each channel.

    Its rows are not independent, so standard errors must be computed from samples. Latents without positions are
    returned as they are. KL, decoder effect and ids, which belong to a whole sample, are left out. A prior that differs
    between positions becomes one for each row.

    :param representation: codes.
    """
    size = representation.n_positions
    if size == 1:
        return representation
    arrays: dict[str, Any] = {
        name: rows_of(getattr(representation, name), size) for name in ("mean", "variance", "sampled")
    }
    moments: dict[str, Any] = {
        name: _pooled_moment(getattr(representation, name), representation)
        for name in ("prior_mean", "prior_variance")
    }
    covariance = representation.covariance
    if covariance is not None:
        n, n_units = representation.n_samples, representation.n_units
        # Only the covariance of channels at the same position.
        blocks = np.diagonal(covariance.reshape(n, n_units, size, n_units, size), axis1=2, axis2=4)
        covariance = blocks.transpose(0, 3, 1, 2).reshape(n * size, n_units, n_units)
    factors = representation.factors
    return dataclasses.replace(
        representation,
        **arrays,
        **moments,
        covariance=covariance,
        factors=None if factors is None else np.repeat(factors, size, axis=0),
        code_shape=(),
        ids=None,
        indices=None,
        rate=None,
        effect=None,
        effect_error=None,
    )


def _pooled_moment(
    moment: Float[np.ndarray, "..."] | None, representation: Representation
) -> Float[np.ndarray, "..."] | None:
    if moment is None:
        return None
    if moment.ndim == 1:
        channels = moment.reshape(representation.n_units, representation.n_positions)
        if (channels == channels[:, :1]).all():
            return channels[:, 0].copy()
        moment = np.broadcast_to(moment, representation.mean.shape)
    return rows_of(moment, representation.n_positions)


def in_units_of_prior(
    mean: Float[np.ndarray, "sample latent"],
    variance: Float[np.ndarray, "sample latent"],
    prior_mean: Float[np.ndarray, "*_"],
    prior_variance: Float[np.ndarray, "*_"],
    rate: Float[np.ndarray, "sample latent"] | None = None,
) -> RelativePosterior:
    """Return posterior moments in units of the prior's, from arrays in float64.

    :param mean: posterior mean μ
    :param variance: posterior variance σ²
    :param prior_mean: μ†, of each latent or of each sample and latent
    :param prior_variance: Σ†, likewise
    :param rate: (default None) the model's own KL; None: that of the two Gaussians
    """
    kl = gaussian_kl(mean, variance, prior_mean, prior_variance)
    # Under the prior N(0, 1) the moments are their own units, and copies of them would take much memory.
    prior = prior_kind(prior_mean, prior_variance)
    is_standard = prior == "standard"
    return RelativePosterior(
        mean=mean if is_standard else (mean - prior_mean) / np.sqrt(prior_variance),
        variance=variance if is_standard else variance / prior_variance,
        kl=kl if rate is None else rate,
        gaussian_kl=kl,
        absolute_mean=mean,
        absolute_variance=variance,
        prior=prior,
    )


def _or(array: Float[np.ndarray, "*_"] | None, default: float) -> Float[np.ndarray, "*_"]:
    return np.array(default) if array is None else array.astype(np.float64)


def prior_kind(prior_mean: Float[np.ndarray, "*_"], prior_variance: Float[np.ndarray, "*_"]) -> PriorKind:
    """Return "standard" for N(0, 1), "fixed" for another prior shared by all samples, and "conditional" otherwise."""
    # A (sample, latent) array whose rows are all the same is a fixed prior, however it is stored.
    if any(moment.ndim == 2 and np.ptp(moment, axis=0).any() for moment in (prior_mean, prior_variance)):
        return "conditional"
    return "standard" if (prior_mean == 0).all() and (prior_variance == 1).all() else "fixed"


MIN_DRAWS = 100
"""Minimum number of samples for a decision."""
MAX_DRAW_ERRORS = 6
"""Number of standard errors beyond which the spread of draws is not that of the posterior."""


def not_drawn(representation: Representation) -> Bool[np.ndarray, " latent"]:
    r"""Return a mask of the latents whose sampled codes are not draws from N(mean, variance).

    For draws, :math:`(z - \mu)^2 / \sigma^2` has mean 1 and standard deviation √2. A latent is marked if its average
    over n samples differs from 1 by more than 6 standard errors. The standard error is the larger of √(2/n) and that of
    the observed values, since a wrong ratio can have a smaller spread by accident. A normal variable exceeds 6 standard
    errors with probability 2·10⁻⁹; the sum of 100 squares is skewed and exceeds √(2/n) six times with probability
    5·10⁻⁷. Samples that Polariscope drew itself are not checked, and neither are fewer than 100 samples.

    :param representation: the codes.
    """
    if representation.sampled_was_drawn:
        return np.zeros(representation.n_latents, dtype=bool)
    # Integers are rounded like the floats to which they are converted.
    kinds = [np.result_type(array, np.float32) for array in (representation.mean, representation.sampled)]
    eps = max(np.finfo(kind).eps for kind in kinds)
    arrays = (representation.mean, representation.variance, representation.sampled)
    wrong = np.zeros(representation.n_latents, dtype=bool)
    for latent in range(representation.n_latents):  # one at a time, because of the temporaries in float64
        mean, variance, sampled = (array[:, latent].astype(np.float64) for array in arrays)
        # If σ is below the rounding error of μ, z − μ consists of rounding errors.
        reliable = variance > (100 * eps * np.abs(mean)) ** 2
        if (count := reliable.sum()) < MIN_DRAWS:
            continue
        ratio = (sampled - mean)[reliable] ** 2 / variance[reliable]
        error = max(ratio.std(), np.sqrt(2)) / np.sqrt(count)
        wrong[latent] = np.abs(ratio.mean() - 1) > MAX_DRAW_ERRORS * error
    return wrong
