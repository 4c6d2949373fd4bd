"""Moments of the aggregate posterior over a batch."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from polariscope.models.posteriors import AbstractPosteriorDistribution
from polariscope.objectives import Term, Terms


def covariance(x: Float[Tensor, "sample latent"]) -> Float[Tensor, "latent latent"]:
    """Return Cov[x] = E[xxᵀ] − E[x]E[x]ᵀ over the samples, divided by their number."""
    centred = x - x.mean(0)
    return centred.T @ centred / len(x)


def aggregate_covariance(posterior: AbstractPosteriorDistribution) -> Float[Tensor, "latent latent"]:
    r"""Return the covariance of z ~ q(z), by the law of total variance.

    .. math:: \mathrm{Cov}_q[z] = \mathrm{Cov}_x[\mu(x)] + \mathbb{E}_x[\Sigma(x)]

    with Σ(x) the posterior's covariance, diag σ²(x) if latents are independent given x (bonheme2023 Eq. 4.30).
    """
    return covariance(posterior.mean) + posterior.covariance.mean(0)


def identity_gap(covariance: Float[Tensor, "latent latent"], lambda_od: float, lambda_d: float) -> Terms:
    r"""Return the squared distance of a covariance C from the identity, as two terms with separate weights.

    .. math:: \lambda_{od} \sum_{i \ne j} C_{ij}^2 + \lambda_d \sum_i (C_{ii} - 1)^2
    """
    diagonal = torch.diagonal(covariance)
    off_diagonal = covariance - torch.diag(diagonal)
    return {
        "off_diagonal": Term(off_diagonal.square().sum(), weight=lambda_od),
        "diagonal": Term((diagonal - 1).square().sum(), weight=lambda_d),
    }
