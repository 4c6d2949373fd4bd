"""β-VAE: the rate is weighted by β."""

from __future__ import annotations

import dataclasses
from typing import Annotated

from annotated_types import Ge

from polariscope.core.option_values import Advice
from polariscope.objectives import AbstractObjective, Step, Terms, elbo_terms, objective


@objective("beta")
@dataclasses.dataclass(frozen=True)
class BetaObjective(AbstractObjective):
    r"""Evidence lower bound with the rate weighted by β.

    .. math:: -\mathbb{E}_{q(z|x)} \log p(x|z) + \beta\, \mathrm{KL}(q(z|x) \,\|\, p(z))

    β = 1 is the VAE. A larger β makes more latents passive. In a linear model a direction of the data is active
    if and only if its variance exceeds β times the decoder's. Reference: Higgins et al., β-VAE
    (higgins2017); bonheme2023 Eq. 4.25. β = 4 as in zietlow2022 for dSprites.
    """

    beta: Annotated[float, Ge(0), Advice("1 is the VAE, larger values prune more")] = 4.0
    """Weight β of the rate; 1 is the VAE, larger values prune more latents."""

    def terms(self, step: Step) -> Terms:
        return elbo_terms(step, beta=self.beta)
