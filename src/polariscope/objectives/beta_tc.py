"""β-TCVAE: the total correlation is weighted by β."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Annotated

import torch
from annotated_types import Ge

from polariscope.core.errors import Argument, InputError
from polariscope.core.option_values import Advice
from polariscope.models.model import Blueprint
from polariscope.objectives import AbstractObjective, Step, Term, Terms, objective, run_forward
from polariscope.objectives.support.aggregate import Estimator, aggregate_log_density
from polariscope.objectives.support.refusals import refuse_single_samples

if TYPE_CHECKING:
    from polariscope.data.dataset import AbstractDataset


@objective("beta-tc")
@dataclasses.dataclass(frozen=True)
class BetaTcObjective(AbstractObjective):
    r"""VAE with the total correlation of the aggregate posterior weighted by β.

    .. math:: -\mathbb{E}_{q(z|x)} \log p(x|z) + \mathrm{KL}(q(z|x) \,\|\, p(z)) + (\beta - 1)\, \mathrm{TC},
              \qquad \mathrm{TC} = \mathbb{E}_{q(z)} \Bigl[ \log q(z) - \sum_j \log q(z_j) \Bigr]

    For a prior with independent latents the rate has three parts,
    E_x KL(q(z|x) ‖ p(z)) = I(x; z) + TC + Σ_j KL(q(z_j) ‖ p(z_j)). They are logged as ``mutual_information``,
    ``total_correlation`` and ``dimension_wise_kl`` (one column per latent; for other priors, the remainder of the
    rate), and add up to log q(z|x) − log p(z) at the draw. β = 1 is the VAE, and β − 1 is FactorVAE's γ. Only TC is
    weighted; the weight of the rate is 1.

    q(z) is estimated from the batch by ``estimator`` (:mod:`polariscope.objectives.support.aggregate`). Estimates can
    be negative although TC is not, and with small batches the penalty acts like additional rate (mathieu2019 App. C;
    mushom2020 §5.4 observed both).

    Reference: Chen et al., Isolating Sources of Disentanglement in VAEs (chen2018);
    mushom2020 Eq. 4.4, whose code has β·TC instead of (β − 1)·TC. β = 6 as in zietlow2022 for dSprites.
    """

    beta: Annotated[float, Ge(0), Advice("1 is the VAE, larger values make latents more independent")] = 6.0
    """Weight β of the total correlation; 1 is the VAE, larger values make latents more independent."""
    estimator: Estimator = "batch"
    """Estimator of q(z): "batch" is the mixture of the batch, "weighted" is minibatch-weighted sampling (with the same
    gradient), "stratified" is stratified sampling, "symmetric" its symmetric form, and "exact" the exact value if all
    data are in one batch."""

    def check(self, data: AbstractDataset, blueprint: Blueprint, batch_size: int) -> None:
        refuse_single_samples(batch_size, "q(z) is estimated from the samples of a batch")
        if self.estimator == "exact" and batch_size < len(data):
            raise InputError(
                problem=f"estimator 'exact' requires every sample in the batch, and {data.name} has {len(data)}",
                got=Argument("batch_size", batch_size),
                remedy=(
                    "use ",
                    Argument("batch_size", len(data)),
                    ", or another estimator: weighted, stratified, symmetric",
                ),
            )

    def terms(self, step: Step) -> Terms:
        batch = step.batch
        forward = run_forward(step)
        q = aggregate_log_density(forward.posterior, forward.z, batch.n_data, self.estimator)
        # Both are only logged.
        with torch.no_grad():
            information = forward.posterior.log_density(forward.z).sum(1) - q.joint
            # All parts use the same draw, so they add up to the rate at that draw.
            dimension_wise = q.marginals - step.model.prior.given(batch.auxiliary).log_density(forward.z)
        return {
            **forward.terms(),
            "total_correlation": Term(q.total_correlation, weight=self.beta - 1),
            "mutual_information": Term(information, weight=0.0),
            "dimension_wise_kl": Term(dimension_wise, weight=0.0),
        }
