"""Separate weights for the rate and for the divergence of q(z) from the prior."""

from __future__ import annotations

import dataclasses
import math
from typing import Annotated, Literal

import torch
from annotated_types import Ge
from jaxtyping import Float
from torch import Tensor

from polariscope.core.errors import Argument, InputError
from polariscope.core.option_values import Advice
from polariscope.data.dataset import AbstractDataset
from polariscope.models.model import Blueprint
from polariscope.models.posteriors import AbstractPosteriorDistribution
from polariscope.models.priors import AbstractPriorDistribution
from polariscope.objectives import Step, Term, Terms, objective, run_forward
from polariscope.objectives.support.aggregate import pairwise_log_density
from polariscope.objectives.support.mmd import AbstractMmdObjective

Divergence = Literal["inclusive-kl", "mmd"]


@objective("decomposition")
@dataclasses.dataclass(frozen=True)
class DecompositionObjective(AbstractMmdObjective):
    r"""VAE with two weights: β for the overlap of encodings, α for the fit of q(z) to the prior.

    .. math:: -\mathbb{E}_{q(z|x)} \log p(x|z) + \beta\, \mathrm{KL}(q(z|x) \,\|\, p(z)) + \alpha\, D(q(z), p(z))

    with q(z) the posterior averaged over the data. α = 0 is the β-VAE with any prior. The objective is intended for
    priors with structure: clusters (``mixture``) or sparsity (``sparse``). A larger β makes encodings overlap more and,
    for a prior with several modes, moves q(z) away from it. A larger α moves q(z) towards the prior without pulling all
    encodings into one mode. The divergence is one of

    * ``inclusive-kl``: KL(p(z) ‖ q(z)), from as many draws z_j ~ p(z) as the batch has samples x_i,

      .. math:: \frac1B \sum_j \Big[ \log p(z_j) - \log \frac1B \sum_i q(z_j | x_i) \Big]

      It is unbiased if the batch is the whole training split, as for the 400 points it was published for. A smaller
      batch uses its own mixture as q(z). By Jensen's inequality the mean over batches is then an upper bound, which is
      loose if the batch is small compared with the number of clusters.
    * ``mmd``: the squared maximum mean discrepancy with a named kernel, which is unbiased for every batch size.

    Reference: mathieu2019 Eq. 7 and §6; pinwheel with inclusive KL and α, β ∈ {0, 1}, Fashion-MNIST with MMD and
    α ∈ {0, 100} in the authors' repository, with their kernel ``imq-per-latent``. The paper prints the inclusive KL
    without the two 1/B, which only scales α and adds a constant. The exclusive KL(q(z) ‖ p(z)) is not supported,
    because its estimate from a batch acts like a larger β (their App. C). For a discriminator see ``aae``.
    """

    beta: Annotated[float, Ge(0), Advice("with 0 encodings can shrink to points")] = 1.0
    """Weight β of the rate; larger values make encodings overlap more, and β = 1 with α = 0 is the VAE."""
    alpha: Annotated[float, Ge(0), Advice("0 is the β-VAE, larger values move q(z) towards the prior")] = 1.0
    """Weight α of the divergence between q(z) and the prior; 0 is the β-VAE."""
    divergence: Divergence = "inclusive-kl"
    """Divergence of q(z) from the prior: KL(p(z) ‖ q(z)), or the maximum mean discrepancy with the kernel's options."""

    def check(self, data: AbstractDataset, blueprint: Blueprint, batch_size: int) -> None:
        if self.divergence == "mmd":
            super().check(data, blueprint, batch_size)
        elif blueprint.prior.is_conditional:
            raise InputError(
                problem="the inclusive KL requires the same prior for all samples",
                got="a conditional prior",
                remedy=("use ", Argument("divergence", "mmd"), ", which compares draws, or another prior"),
            )

    def terms(self, step: Step) -> Terms:
        forward = run_forward(step)
        if self.divergence == "mmd":
            divergence = self.discrepancy(step, forward.z)
        else:
            divergence = inclusive_kl(forward.posterior, step.model.prior, step.generator).mean()
        return {**forward.terms(self.beta), "aggregate": Term(divergence, weight=self.alpha)}


def inclusive_kl(
    posterior: AbstractPosteriorDistribution, prior: AbstractPriorDistribution, generator: torch.Generator
) -> Float[Tensor, " draw"]:
    """Return log p(z_j) − log (1/B) Σ_i q(z_j|x_i) at as many draws z_j ~ p(z) as there are samples."""
    n_samples = len(posterior.mean)
    z = prior.sample(n_samples, generator)
    pairs, _ = pairwise_log_density(posterior, z)
    # log (1/B) Σ_i = logsumexp_i − log B.
    return prior.log_density(z).sum(1) - torch.logsumexp(pairs, dim=1) + math.log(n_samples)
