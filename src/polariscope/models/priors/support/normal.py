"""A centred normal prior with independent latents: what the isotropic and the anisotropic ones share."""

from __future__ import annotations

import math

import torch
from jaxtyping import Float
from torch import Tensor

from polariscope.models.priors import AbstractPriorModule


class AbstractNormalPriorModule(AbstractPriorModule):
    """p(z) = N(0, diag exp log_variance); a member says what the log-variances are."""

    log_variance: Float[Tensor, " latent"]

    def log_density(self, z: Float[Tensor, "sample latent"]) -> Float[Tensor, "sample latent"]:
        log_variance = self.log_variance
        return -0.5 * (math.log(2 * math.pi) + log_variance + z**2 * torch.exp(-log_variance))

    def sample(self, n_samples: int, generator: torch.Generator) -> Float[Tensor, "sample latent"]:
        log_variance = self.log_variance
        noise = torch.randn(
            (n_samples, self.n_latents),
            generator=generator,
            dtype=log_variance.dtype,
            device=log_variance.device,
        )
        return noise * torch.exp(0.5 * log_variance)

    def normal(self) -> tuple[Float[Tensor, " latent"], Float[Tensor, " latent"]]:
        log_variance = self.log_variance
        return torch.zeros_like(log_variance), log_variance

    def passive_shape(self) -> tuple[Float[Tensor, " latent"], Float[Tensor, " latent"]]:
        mean, log_variance = self.normal()
        return mean, torch.exp(log_variance)
