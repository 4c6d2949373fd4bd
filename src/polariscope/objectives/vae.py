"""Variational autoencoder."""

from __future__ import annotations

import dataclasses

from polariscope.objectives import AbstractObjective, Step, Terms, elbo_terms, objective


@objective("vae")
@dataclasses.dataclass(frozen=True)
class VaeObjective(AbstractObjective):
    r"""Negative evidence lower bound.

    .. math:: -\mathbb{E}_{q(z|x)} \log p(x|z) + \mathrm{KL}(q(z|x) \,\|\, p(z))

    It is an upper bound on −log p(x), tight if q(z|x) is the true posterior. Reference: Kingma & Welling,
    Auto-Encoding Variational Bayes (kingma2014); bonheme2023 Eq. 3.5.
    """

    def terms(self, step: Step) -> Terms:
        return elbo_terms(step)
