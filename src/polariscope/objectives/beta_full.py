"""β-VAE with a full-covariance posterior."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Annotated

from annotated_types import Ge

from polariscope.core.errors import Argument, InputError
from polariscope.core.option_values import Advice
from polariscope.models.model import Blueprint
from polariscope.objectives import AbstractObjective, Step, Terms, elbo_terms, objective

if TYPE_CHECKING:
    from polariscope.data.dataset import AbstractDataset


@objective("beta-full")
@dataclasses.dataclass(frozen=True)
class BetaFullObjective(AbstractObjective):
    r"""β-VAE with a full posterior covariance, a control for the effect of the diagonal posterior.

    .. math:: -\mathbb{E}_{q(z|x)} \log p(x|z) + \beta\, \mathrm{KL}(\mathcal{N}(\mu(x), \Sigma(x)) \,\|\, p(z)),
        \qquad \mathrm{KL} = \tfrac12 \left( \|\mu\|^2 + \mathrm{tr}\,\Sigma - \log\det\Sigma - n \right)

    with the KL for the standard normal prior. With an isotropic prior the loss is invariant to rotations of the latents
    (mathieu2019 Thm 2; zietlow2022 Props 2–3), so they are not aligned with the factors, as in a plain autoencoder.
    Reference: β-VAE_Σ of zietlow2022 §3.2.7, Tab. 3.3; β and nets as for the β-VAE.

    It equals the objective 'beta' with the posterior 'full'. A diagonal posterior raises an error, because it would be
    the ordinary β-VAE.
    """

    beta: Annotated[float, Ge(0), Advice("1 is the VAE, larger values prune more")] = 4.0
    """Weight β of the rate; 1 is the VAE, larger values prune more latent directions."""

    defaults = {"posterior": "full"}

    def check(self, data: AbstractDataset, blueprint: Blueprint, batch_size: int) -> None:
        if blueprint.posterior.is_diagonal:
            raise InputError(
                problem="objective 'beta-full' requires a posterior with a full covariance",
                got=type(blueprint.posterior).__name__,
                remedy=("omit the posterior, or use ", Argument("objective", "beta")),
            )

    def terms(self, step: Step) -> Terms:
        return elbo_terms(step, beta=self.beta)
