"""Identifiable VAE: the prior depends on an auxiliary variable."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from polariscope.core.errors import Argument, InputError
from polariscope.models.model import Blueprint
from polariscope.objectives import AbstractObjective, Step, Terms, elbo_terms, objective

if TYPE_CHECKING:
    from polariscope.data.dataset import AbstractDataset


@objective("ivae")
@dataclasses.dataclass(frozen=True)
class IvaeObjective(AbstractObjective):
    r"""Negative evidence lower bound given an auxiliary variable u, an input of encoder and prior.

    .. math:: -\mathbb{E}_{q(z|x,u)} \log p(x|z) + \mathrm{KL}(q(z|x,u) \,\|\, p(z|u))

    with :math:`p(z|u) = N(\mu^\dagger(u), \mathrm{diag}\, \Sigma^\dagger(u))`, the prior ``conditional``, and u the
    dataset's factors or labels. With a learned Σ† the latents are identifiable, whether the prior's mean is learned or
    fixed at 0. If only the mean is learned, they are not. If u determines x, the prior can follow the posterior, and
    the rate of a latent that the decoder uses can be near 0, so a small rate does not make it passive. If p(z|u) is the
    same for every u, this is the VAE, so a prior without u raises an error.

    Reference: Khemakhem et al., Variational Autoencoders and Nonlinear ICA (khemakhem2020);
    bonheme2023 §5, Eq. 5.3. Very large Σ† make training unstable (§5.3); if so, try ``clip_gradient``.
    """

    defaults = {"prior": "conditional"}

    def check(self, data: AbstractDataset, blueprint: Blueprint, batch_size: int) -> None:
        if not blueprint.prior.is_conditional:
            raise InputError(
                problem="objective 'ivae' requires a prior that depends on the auxiliary variable",
                remedy=(
                    "with another prior it is the VAE. Use ",
                    Argument("prior", "conditional"),
                    ", or ",
                    Argument("objective", "vae"),
                ),
            )

    def terms(self, step: Step) -> Terms:
        return elbo_terms(step)
