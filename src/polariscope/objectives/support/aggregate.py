r"""Estimators of the aggregate posterior's density from one batch.

With N training samples, :math:`q(z) = \frac1N \sum_n q(z|x_n)`. Given a batch :math:`x_1 … x_B` and a draw
:math:`z_i \sim q(z|x_i)` for each, every estimator is a weighted sum over the batch,

.. math:: \hat q(z_i) = \sum_k w_{ik}\, q(z_i|x_k), \qquad \hat q(z_{ij}) = \sum_k w_{ik}\, q(z_{ij}|x_k),

with j a latent: the weight enters once in the joint and once in each marginal.

An unbiased :math:`\hat q` still gives a biased logarithm, E log q̂ ≈ log q − Var[q̂]/(2q²). Where the batch is a
small part of the data and encodings do not overlap, only the own sample counts, so estimators with own weight
1/N say entropy = log N + E H[q(z|x)] whatever the data: what is meant as a penalty on q(z) is then one more rate,
and estimates of divergences turn negative (mathieu2019 App. C). Only large batches cure it.
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
    """log q(z), estimated at draws z."""

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
    """log q̂(z_i) and log q̂(z_ij) at one draw per sample of a batch."""
    joint, marginals = pairwise_log_density(posterior, z)
    weights = weight_matrix(estimator, len(z), n_data).log().to(z)
    return AggregateLogDensity(
        torch.logsumexp(joint + weights, dim=1),
        torch.logsumexp(marginals + weights[:, :, None], dim=1),
    )


def weight_matrix(estimator: Estimator, n_samples: int, n_data: int) -> Float[Tensor, "sample sample"]:
    r"""Weights :math:`w_{ik}` of the sample k for the draw of the sample i, in float64.

    With batch size B and N training samples:

    * ``weighted``: 1/(NB), the minibatch-weighted sampling of chen2018 Eq. 5 (bonheme2023 Eq. 4.29).
      A row sums to 1/N: q̂ is too small by about that factor, and overrates the own sample unless B = N.
    * ``stratified``: 1/N for the own sample, (N − B + 1)/(N(B − 1)) for one other, 1/(B − 1) for the rest;
      chen2018 App. C.2. The one other is the next in the batch, whose order is random. A row
      sums to 1; q̂ is unbiased over batches, but not exact when the batch is the whole data.
    * ``symmetric``: 1/N for the own sample, (N − 1)/(N(B − 1)) for every other; mathieu2019 Eq. 10b. A row sums to
      1; unbiased, and exact when B = N.
    * ``batch``: 1/B, the mixture of the batch itself. A row sums to 1; overrates the own sample unless B = N.
    * ``exact``: the same; the name promises that the batch is the whole training split, so it is q(z).

    ``weighted``, ``batch`` and no weights at all (disentanglement_lib) differ by constants: the same gradient. A
    batch larger than the training split, as a validation batch may be, stands for itself: N is at least B. A
    batch of one stands for the data as well, since it has no others to weigh.

    Folklore: filling ``weights.view(-1)[::B]`` sets a column, not the diagonal, and a row then no longer sums to 1.
    """
    B, N = n_samples, max(n_data, n_samples)
    if estimator == "weighted":
        return torch.full((B, B), 1 / (N * B), dtype=torch.float64)
    if estimator in ("batch", "exact") or B == 1:
        return torch.full((B, B), 1 / B, dtype=torch.float64)
    own = torch.arange(B)
    if estimator == "symmetric":
        weights = torch.full((B, B), (N - 1) / (N * (B - 1)), dtype=torch.float64)
    else:
        weights = torch.full((B, B), 1 / (B - 1), dtype=torch.float64)
        weights[own, (own + 1) % B] = (N - B + 1) / (N * (B - 1))
    weights[own, own] = 1 / N
    return weights


def pairwise_log_density(
    posterior: AbstractPosteriorDistribution, z: Float[Tensor, "draw latent"]
) -> tuple[Float[Tensor, "draw sample"], Float[Tensor, "draw sample latent"]]:
    """log q(z_i|x_k) and its marginals log q(z_ij|x_k) for every draw i and sample k, for Gaussian posteriors."""
    # Expanding the square into matrix products would save little at these sizes and lose every digit where a
    # latent is known well: z² / σ² is 10⁵ for an active one, and float32 has seven digits.
    difference = z[:, None] - posterior.mean
    half_log_variance = 0.5 * posterior.log_variance
    square = (difference * torch.exp(-half_log_variance)) ** 2
    marginals = -0.5 * square - (half_log_variance + 0.5 * math.log(2 * math.pi))
    if isinstance(posterior, DiagonalGaussian):
        return marginals.sum(2), marginals
    if not isinstance(posterior, FullGaussian):
        raise InputError(problem="q(z) is estimated for Gaussian posteriors", got=type(posterior).__name__)
    white = torch.linalg.solve_triangular(posterior.factor, difference.permute(1, 2, 0), upper=False)
    constant = posterior.log_determinant + z.shape[1] * math.log(2 * math.pi)
    return -0.5 * (white.square().sum(1).T + constant), marginals
