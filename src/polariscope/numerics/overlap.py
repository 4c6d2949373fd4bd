"""Overlap of Gaussians."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from polariscope.core.errors import InputError


def mean_overlap(
    mean: Float[np.ndarray, "sample latent"],
    variance: Float[np.ndarray, "sample latent"],
    covariance: Float[np.ndarray, "sample latent latent"] | None = None,
) -> float:
    r"""Compute the Bhattacharyya coefficient of two Gaussians, averaged over all pairs i ≠ j.

    .. math:: \int \sqrt{q_i q_j} = \frac{|\Sigma_i|^{1/4} |\Sigma_j|^{1/4}}{|M|^{1/2}}
        \exp\Bigl( -\tfrac18 (\mu_i - \mu_j)^\top M^{-1} (\mu_i - \mu_j) \Bigr), \qquad
        M = \tfrac12 (\Sigma_i + \Sigma_j)

    for Gaussians N(μ, Σ). It is 0 if no two of them overlap, and 1 if all are the same.

    Reference: bhattacharyya1943.

    :param mean: μ of each Gaussian
    :param variance: variances of each Gaussian, above 0
    :param covariance: (default None: Σ is diagonal) Σ of each Gaussian; then ``variance`` is not used

    >>> mean_overlap(np.zeros((3, 2)), np.ones((3, 2)))
    1.0
    """
    n = len(mean)
    if n < 2:
        raise InputError(problem="overlap requires at least 2 Gaussians", got=n)
    spread = np.log(variance).sum(axis=1) if covariance is None else np.linalg.slogdet(covariance)[1]
    total = 0.0
    # One Gaussian with all later ones, so memory grows with n and not with n².
    for i in range(n - 1):
        others = slice(i + 1, n)
        difference = mean[i] - mean[others]
        if covariance is None:
            middle = 0.5 * (variance[i] + variance[others])
            width = np.log(middle).sum(axis=1)
            distance = (difference**2 / middle).sum(axis=1)
        else:
            matrices = 0.5 * (covariance[i] + covariance[others])
            width = np.linalg.slogdet(matrices)[1]
            distance = (difference * np.linalg.solve(matrices, difference[:, :, None])[:, :, 0]).sum(axis=1)
        total += float(np.exp(0.25 * (spread[i] + spread[others]) - 0.5 * width - 0.125 * distance).sum())
    return total / (0.5 * n * (n - 1))
