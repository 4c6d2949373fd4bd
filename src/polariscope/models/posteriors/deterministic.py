"""A deterministic encoder: a point mass as posterior."""

from __future__ import annotations

import dataclasses

import torch
from jaxtyping import Float
from torch import Tensor, nn

from polariscope.core.errors import Argument, InputError
from polariscope.models.posteriors import AbstractPosterior, AbstractPosteriorDistribution, posterior


@dataclasses.dataclass(frozen=True, eq=False)
class PointMass(AbstractPosteriorDistribution):
    """q(z|x) = δ(z − μ(x)): variance 0, no density, no KL to the prior."""

    mean: Float[Tensor, "sample latent"]

    @property
    def log_variance(self) -> Float[Tensor, "sample latent"]:  # type: ignore[override]
        return torch.full_like(self.mean, -torch.inf)

    @property
    def variance(self) -> Float[Tensor, "sample latent"]:
        return torch.zeros_like(self.mean)

    @property
    def covariance(self) -> Float[Tensor, "sample latent latent"]:
        return torch.diag_embed(self.variance)

    @property
    def log_determinant(self) -> Float[Tensor, " sample"]:
        raise InputError(
            problem="a deterministic encoder has no entropy: the determinant of its covariance is 0",
            remedy=("use ", Argument("posterior", "diagonal")),
        )

    def at(self, noise: Float[Tensor, "sample latent"]) -> Float[Tensor, "sample latent"]:
        return self.mean

    def sample(self, generator: torch.Generator) -> Float[Tensor, "sample latent"]:
        return self.mean  # does not advance the generator, since no noise is needed

    def log_density(self, z: Float[Tensor, "sample latent"]) -> Float[Tensor, "sample latent"]:
        raise InputError(
            problem="a deterministic encoder has no density",
            remedy=("use ", Argument("posterior", "diagonal")),
        )

    def kl_to_normal(
        self,
        mean: Float[Tensor, "... latent"],
        log_variance: Float[Tensor, "... latent"],
    ) -> Float[Tensor, "sample latent"]:
        raise InputError(
            problem="a deterministic encoder has no KL to the prior",
            remedy=("use ", Argument("posterior", "diagonal")),
        )


class PointHead(nn.Module):
    """One affine head without activation."""

    def __init__(self, n_features: int, n_latents: int) -> None:
        super().__init__()
        self.mean = nn.Linear(n_features, n_latents)

    def forward(self, features: Float[Tensor, "sample feature"]) -> PointMass:
        return PointMass(self.mean(features))


@posterior("deterministic")
@dataclasses.dataclass(frozen=True)
class DeterministicPosterior(AbstractPosterior):
    r"""A point mass instead of a distribution, z = μ(x), as in a plain autoencoder.

    Mean and sampled representation are equal and every posterior variance is 0. The polarised regime is therefore not
    informative: every latent counts as active. Reference: zietlow2022 §2.2.
    """

    has_density = False

    def head(self, n_features: int, n_latents: int) -> PointHead:
        return PointHead(n_features, n_latents)
