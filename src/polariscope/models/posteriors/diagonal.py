"""Gaussian posterior with independent latents."""

from __future__ import annotations

import dataclasses
import math

import torch
from jaxtyping import Float
from torch import Tensor, nn

from polariscope.models.posteriors import AbstractPosterior, AbstractPosteriorDistribution, posterior


@dataclasses.dataclass(frozen=True, eq=False)
class DiagonalGaussian(AbstractPosteriorDistribution):
    """q(z|x) = N(μ(x), diag σ²(x)), stored as mean and log-variance."""

    mean: Float[Tensor, "sample latent"]
    log_variance: Float[Tensor, "sample latent"]

    @property
    def covariance(self) -> Float[Tensor, "sample latent latent"]:
        return torch.diag_embed(self.variance)

    @property
    def log_determinant(self) -> Float[Tensor, " sample"]:
        return self.log_variance.sum(1)

    def at(self, noise: Float[Tensor, "sample latent"]) -> Float[Tensor, "sample latent"]:
        return self.mean + torch.exp(0.5 * self.log_variance) * noise

    def log_density(self, z: Float[Tensor, "sample latent"]) -> Float[Tensor, "sample latent"]:
        square = (z - self.mean) ** 2 * torch.exp(-self.log_variance)
        return -0.5 * (math.log(2 * math.pi) + self.log_variance + square)

    def kl_to_normal(
        self, mean: Float[Tensor, "... latent"], log_variance: Float[Tensor, "... latent"]
    ) -> Float[Tensor, "sample latent"]:
        r"""Return the KL of each latent's Gaussian to that of the prior,

        .. math:: \tfrac12 \left( (\sigma^2 + (\mu - m)^2) / s^2 - 1 - \log(\sigma^2 / s^2) \right)

        with posterior mean μ and variance σ², prior mean m and variance s² (zietlow2022 Eq. 2.6 for m = 0,
        s = 1). It is 0 if posterior and prior are equal.
        """
        log_ratio = self.log_variance - log_variance
        square = (self.mean - mean) ** 2 * torch.exp(-log_variance)
        # expm1 keeps the digits that exp(t) - 1 loses if a passive latent equals the prior (t near 0).
        return 0.5 * (torch.expm1(log_ratio) + square - log_ratio)


class DiagonalHead(nn.Module):
    """Two affine heads without activation: mean and log-variance."""

    def __init__(self, n_features: int, n_latents: int) -> None:
        super().__init__()
        self.mean = nn.Linear(n_features, n_latents)
        self.log_variance = nn.Linear(n_features, n_latents)

    def forward(self, features: Float[Tensor, "sample feature"]) -> DiagonalGaussian:
        return DiagonalGaussian(self.mean(features), self.log_variance(features))


@posterior("diagonal")
@dataclasses.dataclass(frozen=True)
class DiagonalPosterior(AbstractPosterior):
    """Gaussian with a mean and a log-variance per latent: the default.

    Its axes are preferred directions, which break the rotational symmetry of the VAE (zietlow2022 ch. 3).
    """

    def head(self, n_features: int, n_latents: int) -> DiagonalHead:
        return DiagonalHead(n_features, n_latents)
