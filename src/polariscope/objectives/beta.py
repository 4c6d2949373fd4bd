"""The β-VAE: a weight on the rate."""

from __future__ import annotations

import dataclasses
import math

from polariscope.core.errors import InputError
from polariscope.objectives import AbstractObjective, Step, Terms, elbo_terms, objective


@objective("beta")
@dataclasses.dataclass(frozen=True)
class BetaObjective(AbstractObjective):
    r"""Evidence lower bound with the rate weighted by β.

    .. math:: -\mathbb{E}_{q(z|x)} \log p(x|z) + \beta\, \mathrm{KL}(q(z|x) \,\|\, p(z))

    β = 1 is the VAE. A larger β makes more latents passive; in a linear model a direction of the data survives
    if and only if its variance exceeds β times the decoder's. Reference: Higgins et al., β-VAE, 2017,
    https://openreview.net/forum?id=Sy2fzU9gl; bonheme2023 Eq. 4.25. β = 4 as in zietlow2022 for dSprites.
    """

    beta: float = 4.0
    """Weight β of the rate; 1 is the VAE, larger prunes more latents."""

    def __post_init__(self) -> None:
        if not (self.beta >= 0 and math.isfinite(self.beta)):
            raise InputError(f"beta must not be negative, got {self.beta}; 1 is the VAE, larger prunes more.")

    def terms(self, step: Step) -> Terms:
        return elbo_terms(step, beta=self.beta)
