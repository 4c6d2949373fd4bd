"""DIP-VAE I: uncorrelated means of unit variance."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Annotated

from annotated_types import Ge

from polariscope.core.option_values import Advice
from polariscope.models.model import Blueprint
from polariscope.objectives import AbstractObjective, Step, Terms, objective, run_forward
from polariscope.objectives.support.aggregate_moments import covariance, identity_gap
from polariscope.objectives.support.refusals import refuse_single_samples

if TYPE_CHECKING:
    from polariscope.data.dataset import AbstractDataset


@objective("dip-i")
@dataclasses.dataclass(frozen=True)
class DipIObjective(AbstractObjective):
    r"""VAE with a penalty on the distance between the covariance of the means and the identity.

    .. math:: -\mathbb{E}_{q(z|x)} \log p(x|z) + \mathrm{KL}(q(z|x) \,\|\, p(z))
              + \lambda_{od} \sum_{i \ne j} C_{ij}^2 + \lambda_d \sum_i (C_{ii} - 1)^2,
              \qquad C = \mathrm{Cov}_x[\mu(x)]

    C is computed over the batch and divided by its size. If both λ are 0, it is the VAE. It decorrelates the mean
    representation, whereas :mod:`dip-ii <polariscope.objectives.dip_ii>` decorrelates the sampled one. It also acts
    against passive latents, whose means are constant, because it penalises means without unit variance.

    Reference: Kumar et al., Variational Inference of Disentangled Latent Concepts from Unlabeled Observations
    (kumar2018); bonheme2023 §4.3.3. By default λ_d = 10 λ_od, as in disentanglement_lib. λ_od = 10 is the value that
    bonheme2023 and mushom2020 share for DIP-VAE II, because neither trains DIP-VAE I.
    """

    lambda_od: Annotated[float, Ge(0), Advice("0 removes the penalty")] = 10.0
    """Weight of the squared covariances between latents; with 0 means can correlate."""
    lambda_d: Annotated[float, Ge(0), Advice("0 removes the penalty")] | None = None
    """Weight of the squared distance of each variance from 1 (none: 10 · lambda_od); with 0 means can have any
    variance."""

    def __post_init__(self) -> None:
        if self.lambda_d is None:
            # The dataclass is frozen, so the default cannot be assigned.
            object.__setattr__(self, "lambda_d", 10 * self.lambda_od)

    def check(self, data: AbstractDataset, blueprint: Blueprint, batch_size: int) -> None:
        refuse_single_samples(batch_size, "the covariance is computed over the batch")

    def terms(self, step: Step) -> Terms:
        forward = run_forward(step)
        means = covariance(forward.posterior.mean)
        assert self.lambda_d is not None
        return {**forward.terms(), **identity_gap(means, self.lambda_od, self.lambda_d)}
