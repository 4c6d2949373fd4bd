"""Posteriors q(z|x): sample, log-density, and KL to the prior per latent."""

from __future__ import annotations

import abc

import torch
from jaxtyping import Float
from torch import Tensor, nn

from polariscope.core.registry import open_family
from polariscope.models.priors import AbstractPriorDistribution


class AbstractPosteriorDistribution(abc.ABC):
    """q(z|x) for a batch of samples."""

    mean: Float[Tensor, "sample latent"]
    log_variance: Float[Tensor, "sample latent"]
    """Logarithm of the marginal variance of each latent."""

    @property
    def variance(self) -> Float[Tensor, "sample latent"]:
        return torch.exp(self.log_variance)

    @property
    @abc.abstractmethod
    def covariance(self) -> Float[Tensor, "sample latent latent"]:
        """Covariance matrix Σ of q(z|x), with the marginal variances on its diagonal."""

    @property
    def factor(self) -> Float[Tensor, "sample latent latent"]:
        """L with Σ = LLᵀ, which maps noise to draws: z = μ + Lε."""
        return torch.diag_embed(torch.exp(0.5 * self.log_variance))

    @property
    @abc.abstractmethod
    def log_determinant(self) -> Float[Tensor, " sample"]:
        """log det Σ, twice the entropy of a Gaussian up to n(1 + log 2π); undefined for a point mass."""

    @abc.abstractmethod
    def at(self, noise: Float[Tensor, "sample latent"]) -> Float[Tensor, "sample latent"]:
        """Return the draw from standard normal ``noise``, differentiable in the parameters."""

    def sample(self, generator: torch.Generator) -> Float[Tensor, "sample latent"]:
        """Draw once per sample, differentiable in the parameters."""
        noise = torch.randn(
            self.mean.shape, generator=generator, dtype=self.mean.dtype, device=self.mean.device
        )
        return self.at(noise)

    @abc.abstractmethod
    def log_density(self, z: Float[Tensor, "sample latent"]) -> Float[Tensor, "sample latent"]:
        """Return log q(z_j | …, x), one column per latent; a row sums to log q(z|x)."""

    @abc.abstractmethod
    def kl_to_normal(
        self, mean: Float[Tensor, "... latent"], log_variance: Float[Tensor, "... latent"]
    ) -> Float[Tensor, "sample latent"]:
        """Return KL(q ‖ N(mean, diag exp log_variance)) in nats, split over latents, in closed form."""


def kl(
    posterior: AbstractPosteriorDistribution,
    prior: AbstractPriorDistribution,
    z: Float[Tensor, "sample latent"],
) -> Float[Tensor, "sample latent"]:
    """Return KL(q(z|x) ‖ p(z)) in nats, per sample and latent.

    It is exact if the prior is a Gaussian with independent latents. Otherwise it is the single-sample estimate
    log q(z|x) − log p(z) at the draw ``z`` ~ q(z|x), which is unbiased and can be negative.
    """
    normal = prior.normal()
    if normal is not None:
        return posterior.kl_to_normal(*normal)
    return posterior.log_density(z) - prior.log_density(z)


class AbstractPosterior(abc.ABC):
    """A recipe for the head that maps the encoder's features to q(z|x)."""

    has_density: bool = True
    """If True, q(z|x) has a density, and therefore a KL to the prior; a point mass has none."""
    is_diagonal: bool = True
    """If True, latents are independent given x, so the marginal variances determine the covariance."""

    @abc.abstractmethod
    def head(self, n_features: int, n_latents: int) -> nn.Module:
        """Build a module from features ``(sample, n_features)`` to an :class:`AbstractPosteriorDistribution`.

        :param n_features: width of the encoder's output.
        :param n_latents: number of latent variables.
        """


posterior = family = open_family(__name__, "posterior")
