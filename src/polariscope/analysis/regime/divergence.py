"""Divergence of the posterior from the prior: how much each latent says about an input."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float


def gaussian_kl(
    mean: Float[np.ndarray, "sample latent"],
    variance: Float[np.ndarray, "sample latent"],
    prior_mean: Float[np.ndarray, "*_"] | float = 0.0,
    prior_variance: Float[np.ndarray, "*_"] | float = 1.0,
) -> Float[np.ndarray, "sample latent"]:
    r"""KL divergence in nats of N(μ, σ²) from N(μ†, Σ†), for each sample and latent.

    .. math:: \mathrm{KL}_j = \tfrac12 \left( \frac{(\mu_j - \mu^\dagger_j)^2}{\Sigma^\dagger_j}
        + r_j - \log r_j - 1 \right), \qquad r_j = \sigma_j^2 / \Sigma^\dagger_j

    0 when posterior and prior are the same; infinite where σ² = 0, a posterior that is a point.

    Reference: bonheme2023 Eqs 2.18–2.19; zietlow2022 Eq. 2.6. mushom2020 Eq. 3.5 prints its negative.

    >>> gaussian_kl(np.array([[0.0, 1.0]]), np.array([[1.0, 1.0]]))
    array([[0. , 0.5]])
    """
    ratio = variance / prior_variance
    logarithm = np.log(ratio, out=np.full_like(ratio, -np.inf), where=ratio > 0)
    divergence = (mean - prior_mean) ** 2 / prior_variance + (ratio - 1) - logarithm
    return np.maximum(divergence / 2, 0.0)  # rounding may leave −1e-17 where the two are equal
