"""The β-VAE with a full-covariance posterior."""

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
    r"""β-VAE whose posterior may be rotated: the control that shows what the diagonal posterior does.

    .. math:: -\mathbb{E}_{q(z|x)} \log p(x|z) + \beta\, \mathrm{KL}(\mathcal{N}(\mu(x), \Sigma(x)) \,\|\, p(z)),
        \qquad \mathrm{KL} = \tfrac12 \left( \|\mu\|^2 + \mathrm{tr}\,\Sigma - \log\det\Sigma - n \right)

    the KL as it is for the standard normal prior. With an isotropic prior the loss is the same for every rotation
    of the latents (mathieu2019 Thm 2; zietlow2022 Props 2–3), so nothing aligns them with the factors, as
    in a plain autoencoder. Reference: β-VAE_Σ of zietlow2022 §3.2.7, Tab. 3.3; β and nets as for the β-VAE.

    It is the objective 'beta' with the posterior 'full'; with another posterior it would be β-VAE under a wrong
    name, so those are refused.
    """

    beta: Annotated[float, Ge(0), Advice("1 is the VAE, larger prunes more")] = 4.0
    """Weight β of the rate; 1 is the VAE, larger prunes more latent directions."""

    defaults = {"posterior": "full"}

    def check(self, data: AbstractDataset, blueprint: Blueprint, batch_size: int) -> None:
        if blueprint.posterior.is_diagonal:
            raise InputError(
                problem="objective 'beta-full' needs a posterior with a full covariance",
                got=type(blueprint.posterior).__name__,
                remedy=("leave the posterior out, or use ", Argument("objective", "beta")),
            )

    def terms(self, step: Step) -> Terms:
        return elbo_terms(step, beta=self.beta)
