"""Dependence between columns: covariance, correlation, total correlation and effective rank."""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Float

from polariscope.numerics.information import entropy


def covariance(x: Float[np.ndarray, "sample latent"]) -> Float[np.ndarray, "latent latent"]:
    """Return the sample covariance, divided by n − 1, in float64.

    A latent whose range is within the rounding error of its type counts as constant: its row and column are exactly 0.
    """
    constant = np.ptp(x, axis=0) <= 4 * np.finfo(x.dtype).eps * np.abs(x).max(axis=0)
    # The copy is changed in place, because codes can be large.
    centred = x.astype(np.float64)
    centred -= centred.mean(axis=0)
    centred[:, constant] = 0
    return centred.T @ centred / (len(x) - 1)


def noise_free_covariance(
    mean: Float[np.ndarray, "sample latent"],
    variance: Float[np.ndarray, "sample latent"],
    posterior_covariance: Float[np.ndarray, "sample latent latent"] | None = None,
) -> Float[np.ndarray, "latent latent"]:
    r"""Return the covariance of the sampled representation without the noise of one draw.

    By the law of total covariance, with independent noise in each latent,

    .. math:: \mathrm{Cov}[z] = \mathrm{Cov}[\mu] + \mathrm{diag}\, \mathrm{E}[\sigma^2]

    and with E[Σ] as the second term if a ``posterior_covariance`` Σ is passed.
    """
    if posterior_covariance is not None:
        return covariance(mean) + posterior_covariance.mean(axis=0, dtype=np.float64)
    return covariance(mean) + np.diag(variance.mean(axis=0, dtype=np.float64))


def ranked(x: Float[np.ndarray, "sample latent"]) -> Float[np.ndarray, "sample latent"]:
    """Return the rank of each value in its column, from 1; equal values share their mean rank.

    >>> ranked(np.array([[0.1], [7.0], [0.1]])).ravel()
    array([1.5, 3. , 1.5])
    """
    from scipy.stats import rankdata

    return rankdata(x, axis=0) if x.size else x


def standardised(x: Float[np.ndarray, "sample latent"]) -> Float[np.ndarray, "sample latent"]:
    """Standardise columns to mean 0 and variance 1; each column must vary.

    >>> standardised(np.array([[1.0], [5.0], [1.0], [5.0]])).ravel()
    array([-1.,  1., -1.,  1.])
    """
    return (x - x.mean(axis=0)) / x.std(axis=0)


def correlation(covariance: Float[np.ndarray, "latent latent"]) -> Float[np.ndarray, "latent latent"]:
    """Return the correlation matrix of a covariance; a constant latent has correlation 0 with every other.

    >>> correlation(np.array([[4.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 0.0]]))
    array([[1. , 0.5, 0. ],
           [0.5, 1. , 0. ],
           [0. , 0. , 1. ]])
    """
    scale = np.sqrt(np.diag(covariance))
    # A constant latent has covariance 0 with all others, so any scale but 0 gives correlation 0.
    scale = np.where(scale > 0, scale, 1.0)
    correlations = np.clip(covariance / np.outer(scale, scale), -1.0, 1.0)
    np.fill_diagonal(correlations, 1.0)
    return correlations


def total_correlation(x: Float[np.ndarray, "sample latent"]) -> float:
    r"""Compute the total correlation in nats of a Gaussian with the covariance C of these samples.

    .. math:: \mathrm{TC} = \tfrac12 \Bigl( \sum_j \log C_{jj} - \log\det C \Bigr) = -\tfrac12 \log\det R

    with R the correlation matrix. It is 0 if no two latents are correlated, −½ log(1 − ρ²) for a pair with correlation
    ρ, and infinite if a latent is a linear function of the others, which is always so for n samples of more than n − 1
    latents. It does not depend on the scale of a latent, so a passive mean of tiny variance counts as much as an active
    one, and it does not change if independent latents are added. A constant latent adds 0.

    It measures linear dependence only, and equals the total correlation only if the latents are jointly Gaussian, which
    mixed latents are not.

    Reference: bonheme2023 Eq. 6.3, Thm 6.4.1.

    >>> x = np.array([[1.0, 1.0], [-1.0, 1.0], [1.0, -1.0], [-1.0, -1.0]])
    >>> total_correlation(x), total_correlation(x @ np.array([[1.0, 1.0], [0.0, 0.0]]))
    (0.0, inf)
    """
    return total_correlation_of(covariance(x))


def total_correlation_of(covariance: Float[np.ndarray, "latent latent"]) -> float:
    """Return the total correlation of a Gaussian with this covariance (:func:`total_correlation`); 0 without latents.

    >>> total_correlation_of(np.zeros((0, 0)))
    0.0
    """
    if not len(covariance):
        return 0.0
    eigenvalues = np.linalg.eigvalsh(correlation(covariance))
    # Rounding makes a zero eigenvalue tiny; its logarithm would add an arbitrary number around 17 nats.
    if eigenvalues[0] <= 64 * np.finfo(np.float64).eps * len(eigenvalues):
        return math.inf
    return max(0.0, -0.5 * float(np.log(eigenvalues).sum()))


def effective_rank(covariance: Float[np.ndarray, "latent latent"]) -> float:
    r"""Compute the exponential of the entropy of the normalised singular values of a covariance matrix.

    .. math:: \exp \Bigl( -\sum_k p_k \log p_k \Bigr), \qquad p_k = s_k / \sum_l s_l

    It is n if all directions vary equally, 1 if only one varies, and 0 if none varies. A polarised model has about
    n − (number of passive latents) for the mean representation and n for the sampled one.

    Reference: Roy and Vetterli, The Effective Rank (roy2007); on the covariance as in the code of bonheme2023.

    >>> round(effective_rank(np.diag([2.0, 2.0, 0.0])), 12)
    2.0
    """
    singular = np.linalg.svd(covariance, compute_uv=False)
    return float(np.exp(entropy(singular))) if singular.any() else 0.0
