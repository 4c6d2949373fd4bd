"""Covariance and correlation of latents, with latents that never vary given a stated value."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float


def covariance(x: Float[np.ndarray, "sample latent"]) -> Float[np.ndarray, "latent latent"]:
    """Sample covariance, divided by n − 1, in float64.

    A latent that varies by no more than the rounding of its type is constant: its row and column are
    exactly 0.
    """
    constant = np.ptp(x, axis=0) <= 4 * np.finfo(x.dtype).eps * np.abs(x).max(axis=0)
    centred = x.astype(np.float64)
    centred -= centred.mean(axis=0)
    centred[:, constant] = 0
    return centred.T @ centred / (len(x) - 1)


def noise_free_covariance(
    mean: Float[np.ndarray, "sample latent"],
    variance: Float[np.ndarray, "sample latent"],
    posterior_covariance: Float[np.ndarray, "sample latent latent"] | None = None,
) -> Float[np.ndarray, "latent latent"]:
    r"""Covariance of the sampled representation without the noise of one draw.

    By the law of total covariance, with independent noise in each latent,

    .. math:: \mathrm{Cov}[z] = \mathrm{Cov}[\mu] + \mathrm{diag}\, \mathrm{E}[\sigma^2]

    and with E[Σ] as the second term where a ``posterior_covariance`` Σ is given.
    """
    if posterior_covariance is not None:
        return covariance(mean) + posterior_covariance.mean(axis=0, dtype=np.float64)
    return covariance(mean) + np.diag(variance.mean(axis=0, dtype=np.float64))


def correlation(covariance: Float[np.ndarray, "latent latent"]) -> Float[np.ndarray, "latent latent"]:
    """Correlation matrix of a covariance; a constant latent has correlation 0 with every other.

    >>> correlation(np.array([[4.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 0.0]]))
    array([[1. , 0.5, 0. ],
           [0.5, 1. , 0. ],
           [0. , 0. , 1. ]])
    """
    scale = np.sqrt(np.diag(covariance))
    scale = np.where(scale > 0, scale, 1.0)
    found = np.clip(covariance / np.outer(scale, scale), -1.0, 1.0)
    np.fill_diagonal(found, 1.0)
    return found
