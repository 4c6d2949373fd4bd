"""Gaussian total correlation: how far a set of latents is from independent, as far as covariance can tell."""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Float

from polariscope.numerics.covariance import correlation, covariance


def total_correlation(x: Float[np.ndarray, "sample latent"]) -> float:
    r"""Total correlation in nats of a Gaussian with the covariance C of these samples.

    .. math:: \mathrm{TC} = \tfrac12 \Bigl( \sum_j \log C_{jj} - \log\det C \Bigr) = -\tfrac12 \log\det R

    with R the correlation matrix. 0 when no two latents are correlated; −½ log(1 − ρ²) for a pair with
    correlation ρ; infinite when a latent is a linear function of the others, which n samples of more than
    n − 1 latents always are. It does not depend on the scale of a latent, so that a passive mean of tiny
    variance counts as fully as an active one, and it does not change when independent latents are added.
    A constant latent is independent of everything: it adds 0.

    It sees linear dependence only, and is the total correlation itself only when the latents are jointly
    Gaussian; mixed latents are not.

    Reference: bonheme2023 Eq. 6.3, Thm 6.4.1.

    >>> x = np.array([[1.0, 1.0], [-1.0, 1.0], [1.0, -1.0], [-1.0, -1.0]])
    >>> total_correlation(x), total_correlation(x @ np.array([[1.0, 1.0], [0.0, 0.0]]))
    (0.0, inf)
    """
    return total_correlation_of(covariance(x))


def total_correlation_of(covariance: Float[np.ndarray, "latent latent"]) -> float:
    """Total correlation of a Gaussian with this covariance; see :func:`total_correlation`."""
    varies = np.diag(covariance) > 0
    if varies.sum() < 2:
        return 0.0
    eigenvalues = np.linalg.eigvalsh(correlation(covariance[np.ix_(varies, varies)]))
    # What rounding leaves of a zero eigenvalue; its logarithm would be an arbitrary number around 17 nats.
    if eigenvalues[0] <= 64 * np.finfo(np.float64).eps * len(eigenvalues):
        return math.inf
    return max(0.0, -0.5 * float(np.log(eigenvalues).sum()))
