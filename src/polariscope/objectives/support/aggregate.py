r"""Estimators of the aggregate posterior's density from one batch.

With N training samples, :math:`q(z) = \frac1N \sum_n q(z|x_n)`. Given a batch :math:`x_1 … x_B` and a draw
:math:`z_i \sim q(z|x_i)` for each, every estimator is a weighted sum over the batch,

.. math:: \hat q(z_i) = \sum_k w_{ik}\, q(z_i|x_k), \qquad \hat q(z_{ij}) = \sum_k w_{ik}\, q(z_{ij}|x_k),

with j a latent. The joint and each marginal contain the weight once.

An unbiased :math:`\hat q` still has a biased logarithm, E log q̂ ≈ log q − Var[q̂]/(2q²). If the batch is a small part
of the data and encodings do not overlap, only the sample itself contributes. Estimators that give it the weight 1/N
then estimate the entropy as log N + E H[q(z|x)] for any data, so a penalty on q(z) acts like additional rate, and
estimates of divergences become negative (mathieu2019 App. C). Only large batches avoid this.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from polariscope.core.errors import InputError
from polariscope.models.posteriors import AbstractPosteriorDistribution
from polariscope.models.posteriors.diagonal import DiagonalGaussian
from polariscope.models.posteriors.full import FullGaussian

Estimator = Literal["weighted", "stratified", "symmetric", "batch", "exact"]
ESTIMATORS: tuple[Estimator, ...] = ("weighted", "stratified", "symmetric", "batch", "exact")


@dataclasses.dataclass(frozen=True, eq=False)
class AggregateLogDensity:
    """Estimate of log q(z) at draws z."""

    joint: Float[Tensor, " draw"]
    marginals: Float[Tensor, "draw latent"]

    @property
    def total_correlation(self) -> Float[Tensor, " draw"]:
        r"""Integrand :math:`\log q(z) - \sum_j \log q(z_j)` of TC = KL(q(z) ‖ Π_j q(z_j)) under draws of q(z)."""
        return self.joint - self.marginals.sum(1)


def aggregate_log_density(
    posterior: AbstractPosteriorDistribution,
    z: Float[Tensor, "sample latent"],
    n_data: int,
    estimator: Estimator,
) -> AggregateLogDensity:
    """Estimate log q̂(z_i) and log q̂(z_ij) at one draw per sample of a batch."""
    joint, marginals = pairwise_log_density(posterior, z)
    # Weights are added as logarithms under the sum of exponentials.
    weights = weight_matrix(estimator, len(z), n_data).log().to(z)
    return AggregateLogDensity(
        torch.logsumexp(joint + weights, dim=1),
        torch.logsumexp(marginals + weights[:, :, None], dim=1),
    )


def weight_matrix(estimator: Estimator, n_samples: int, n_data: int) -> Float[Tensor, "sample sample"]:
    r"""Return the weights :math:`w_{ik}` of sample k for the draw of sample i, in float64.

    With batch size B and N training samples:

    * ``weighted``: 1/(NB), the minibatch-weighted sampling of chen2018 Eq. 5 (bonheme2023 Eq. 4.29).
      A row sums to 1/N, so q̂ is too small by about that factor, and the weight of sample i itself is too large unless
      B = N.
    * ``stratified``: 1/N for sample i itself, (N − B + 1)/(N(B − 1)) for one other, 1/(B − 1) for the rest;
      chen2018 App. C.2. The one other is the next in the batch, whose order is random. A row sums to 1; q̂ is unbiased
      over batches, but not exact if the batch is the whole data.
    * ``symmetric``: 1/N for sample i itself, (N − 1)/(N(B − 1)) for every other; mathieu2019 Eq. 10b. A row sums to 1;
      q̂ is unbiased, and exact if B = N.
    * ``batch``: 1/B, the mixture of the batch itself. A row sums to 1; the weight of sample i itself is too large
      unless B = N.
    * ``exact``: the same weights, for a batch that is the whole training split, so the mixture is q(z).

    ``weighted``, ``batch`` and no weights at all (disentanglement_lib) differ by constants, so their gradients are the
    same. If a batch is larger than the training split, as a validation batch can be, N is set to B. A batch of one
    sample is treated like ``batch``.

    A common mistake is to fill ``weights.view(-1)[::B]``, which sets a column instead of the diagonal, so rows do not
    sum to 1.
    """
    B, N = n_samples, max(n_data, n_samples)
    if estimator == "weighted":
        return torch.full((B, B), 1 / (N * B), dtype=torch.float64)
    if estimator in ("batch", "exact") or B == 1:
        return torch.full((B, B), 1 / B, dtype=torch.float64)
    index = torch.arange(B)
    if estimator == "symmetric":
        weights = torch.full((B, B), (N - 1) / (N * (B - 1)), dtype=torch.float64)
    else:
        weights = torch.full((B, B), 1 / (B - 1), dtype=torch.float64)
        # The one other sample is the next in the batch; for the last it is the first.
        weights[index, (index + 1) % B] = (N - B + 1) / (N * (B - 1))
    weights[index, index] = 1 / N
    return weights


def pairwise_log_density(
    posterior: AbstractPosteriorDistribution, z: Float[Tensor, "draw latent"]
) -> tuple[Float[Tensor, "draw sample"], Float[Tensor, "draw sample latent"]]:
    """Return log q(z_i|x_k) and its marginals log q(z_ij|x_k) for every draw i and sample k of Gaussian posteriors."""
    # Expanding the square into matrix products would save little at these sizes and lose most digits of active latents:
    # their z² / σ² is 10⁵, and float32 has seven digits.
    difference = z[:, None] - posterior.mean
    half_log_variance = 0.5 * posterior.log_variance
    square = (difference * torch.exp(-half_log_variance)) ** 2
    marginals = -0.5 * square - (half_log_variance + 0.5 * math.log(2 * math.pi))
    if isinstance(posterior, DiagonalGaussian):
        return marginals.sum(2), marginals
    if not isinstance(posterior, FullGaussian):
        raise InputError(
            problem="estimates of q(z) require a Gaussian posterior", got=type(posterior).__name__
        )
    # With Σ = LLᵀ, ‖L⁻¹(z − μ)‖² is the squared Mahalanobis distance; each factor is solved for all draws at once.
    white = torch.linalg.solve_triangular(posterior.factor, difference.permute(1, 2, 0), upper=False)
    constant = posterior.log_determinant + z.shape[1] * math.log(2 * math.pi)
    return -0.5 * (white.square().sum(1).T + constant), marginals
