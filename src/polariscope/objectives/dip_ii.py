"""DIP-VAE II: uncorrelated latents of unit variance."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Annotated

from annotated_types import Ge

from polariscope.core.option_values import Advice
from polariscope.models.model import Blueprint
from polariscope.objectives import AbstractObjective, Step, Terms, objective, run_forward
from polariscope.objectives.support.aggregate_moments import aggregate_covariance, identity_gap
from polariscope.objectives.support.refusals import refuse_single_samples

if TYPE_CHECKING:
    from polariscope.data.dataset import AbstractDataset


@objective("dip-ii")
@dataclasses.dataclass(frozen=True)
class DipIIObjective(AbstractObjective):
    r"""VAE with a penalty on the distance between the covariance of q(z) and the identity.

    .. math:: -\mathbb{E}_{q(z|x)} \log p(x|z) + \mathrm{KL}(q(z|x) \,\|\, p(z))
              + \lambda_{od} \sum_{i \ne j} C_{ij}^2 + \lambda_d \sum_i (C_{ii} - 1)^2,
              \qquad C = \mathrm{Cov}_q[z] = \mathrm{Cov}_x[\mu(x)] + \mathbb{E}_x[\Sigma(x)]

    with Σ(x) the posterior's covariance, diag σ²(x) unless it is full. Moments are computed over the batch and divided
    by its size. If both λ are 0, it is the VAE. It regularises the sampled representation only; means can remain
    correlated (bonheme2023 §6.2.1).

    Reference: Kumar et al., Variational Inference of Disentangled Latent Concepts from Unlabeled Observations
    (kumar2018); bonheme2023 Eq. 4.30. By default λ_d = λ_od, as in bonheme2023 Tab. C.2 and
    mushom2020 §5.4; 10 lies within both sweeps (1 … 20 and 1 … 30).
    """

    lambda_od: Annotated[float, Ge(0), Advice("0 removes the penalty")] = 10.0
    """Weight of the squared covariances between latents; with 0 latents can correlate."""
    lambda_d: Annotated[float, Ge(0), Advice("0 removes the penalty")] | None = None
    """Weight of the squared distance of each variance from 1 (none: lambda_od); with 0 latents can have any
    variance."""

    def __post_init__(self) -> None:
        if self.lambda_d is None:
            # The dataclass is frozen, so the default cannot be assigned.
            object.__setattr__(self, "lambda_d", self.lambda_od)

    def check(self, data: AbstractDataset, blueprint: Blueprint, batch_size: int) -> None:
        refuse_single_samples(batch_size, "the covariance is computed over the batch")

    def terms(self, step: Step) -> Terms:
        forward = run_forward(step)
        aggregate = aggregate_covariance(forward.posterior)
        assert self.lambda_d is not None
        return {**forward.terms(), **identity_gap(aggregate, self.lambda_od, self.lambda_d)}
