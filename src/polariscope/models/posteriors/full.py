"""Gaussian posterior with a full covariance matrix."""

from __future__ import annotations

import dataclasses
import math

import torch
from jaxtyping import Float
from torch import Tensor, nn

from polariscope.models.posteriors import AbstractPosterior, AbstractPosteriorDistribution, posterior


@dataclasses.dataclass(frozen=True, eq=False)
class FullGaussian(AbstractPosteriorDistribution):
    r"""q(z|x) = N(μ(x), Σ(x)) with Σ = LLᵀ, L lower triangular with a positive diagonal.

    A row of L describes how a latent depends on those before it: z_j given z_1 … z_{j−1} is normal with variance L_jj².
    """

    mean: Float[Tensor, "sample latent"]
    log_conditional_variance: Float[Tensor, "sample latent"]
    """log L_jj², the log-variance of each latent given those before it."""
    below: Float[Tensor, "sample latent latent"]
    """L below its diagonal; 0 on and above it."""

    @property
    def factor(self) -> Float[Tensor, "sample latent latent"]:
        """L, the Cholesky factor of the covariance."""
        return self.below + torch.diag_embed(torch.exp(0.5 * self.log_conditional_variance))

    @property
    def covariance(self) -> Float[Tensor, "sample latent latent"]:
        factor = self.factor
        return factor @ factor.mT

    @property
    def log_determinant(self) -> Float[Tensor, " sample"]:
        return self.log_conditional_variance.sum(1)

    @property
    def variance(self) -> Float[Tensor, "sample latent"]:
        return torch.exp(self.log_conditional_variance) + self._explained

    @property
    def log_variance(self) -> Float[Tensor, "sample latent"]:  # type: ignore[override]
        return torch.log(self.variance)

    @property
    def _explained(self) -> Float[Tensor, "sample latent"]:
        """Variance of each latent explained by those before it, Σ_jj − L_jj²."""
        return (self.below**2).sum(2)

    def at(self, noise: Float[Tensor, "sample latent"]) -> Float[Tensor, "sample latent"]:
        shared = (self.below @ noise[:, :, None])[:, :, 0]
        return self.mean + torch.exp(0.5 * self.log_conditional_variance) * noise + shared

    def log_density(self, z: Float[Tensor, "sample latent"]) -> Float[Tensor, "sample latent"]:
        r"""Return log q(z_j | z_1 … z_{j−1}, x) in nats; a row sums to log q(z|x).

        .. math:: -\tfrac12 \left( \log 2\pi + \log L_{jj}^2 + \varepsilon_j^2 \right), \quad L \varepsilon = z - \mu
        """
        deviation = (z - self.mean)[:, :, None]
        # L is triangular, so no inverse is needed.
        noise = torch.linalg.solve_triangular(self.factor, deviation, upper=False)[:, :, 0]
        return -0.5 * (math.log(2 * math.pi) + self.log_conditional_variance + noise**2)

    def kl_to_normal(
        self, mean: Float[Tensor, "... latent"], log_variance: Float[Tensor, "... latent"]
    ) -> Float[Tensor, "sample latent"]:
        r"""Return the KL to a prior with independent latents, split by the chain rule.

        .. math:: \mathrm{E}_{q(z_{<j}|x)} \mathrm{KL}(q(z_j | z_{<j}, x) \,\|\, p(z_j))
            = \tfrac12 \left( (\Sigma_{jj} + (\mu_j - m_j)^2) / s_j^2 - 1 - \log(L_{jj}^2 / s_j^2) \right)

        with prior mean m and variance s². A row sums to ½(‖μ‖² + tr Σ − log det Σ − n) for the standard normal
        (zietlow2022 §3.2.7; bonheme2023 Eq. 2.18). Each column is at least the KL of the latent's marginal, since it
        includes the information that the latent shares, given x, with those before it. Only the sum is independent
        of the order of the latents.
        """
        log_ratio = self.log_conditional_variance - log_variance
        square = (self._explained + (self.mean - mean) ** 2) * torch.exp(-log_variance)
        # As for the diagonal posterior, expm1 keeps the digits near the prior.
        return 0.5 * (torch.expm1(log_ratio) + square - log_ratio)


class AffineFromZero(nn.Module):
    """An affine map whose weights are initially 0, independent of the initialisation of the others."""

    def __init__(self, n_in: int, n_out: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(n_out, n_in))
        self.bias = nn.Parameter(torch.zeros(n_out))

    def forward(self, x: Float[Tensor, "sample n_in"]) -> Float[Tensor, "sample n_out"]:
        return nn.functional.linear(x, self.weight, self.bias)


class FullHead(nn.Module):
    """Affine heads without activation: mean, log L_jj², and L below its diagonal, which is initially 0."""

    rows: Tensor
    columns: Tensor

    def __init__(self, n_features: int, n_latents: int) -> None:
        super().__init__()
        self.mean = nn.Linear(n_features, n_latents)
        self.log_conditional_variance = nn.Linear(n_features, n_latents)
        self.below = AffineFromZero(n_features, n_latents * (n_latents - 1) // 2)
        rows, columns = torch.tril_indices(n_latents, n_latents, offset=-1)
        self.register_buffer("rows", rows, persistent=False)
        self.register_buffer("columns", columns, persistent=False)

    def forward(self, features: Float[Tensor, "sample feature"]) -> FullGaussian:
        mean = self.mean(features)
        # The encoder returns only the entries below the diagonal.
        below = mean.new_zeros(*mean.shape, mean.shape[1])
        below[:, self.rows, self.columns] = self.below(features)
        return FullGaussian(mean, self.log_conditional_variance(features), below)


@posterior("full")
@dataclasses.dataclass(frozen=True)
class FullPosterior(AbstractPosterior):
    r"""Gaussian whose latents can be correlated given x: no direction of latent space is preferred.

    .. math:: q(z|x) = \mathcal{N}(\mu(x), L(x) L(x)^\top), \qquad z = \mu + L \varepsilon

    The encoder returns the n means and the n(n+1)/2 entries of the lower triangular L. With an isotropic prior the
    loss is invariant to rotations of the latents (mathieu2019 Thm 2), and the alignment with the directions of the data
    that the diagonal posterior causes is lost: zietlow2022 §3.2.7, Tab. 3.3.

    zietlow2022 only names the Cholesky factor. Here entries below the diagonal are unconstrained, and those on it are
    exp(ℓ_j/2). The former are initially 0, so training starts from the diagonal posterior with the same weights.
    """

    is_diagonal = False

    def head(self, n_features: int, n_latents: int) -> FullHead:
        return FullHead(n_features, n_latents)
