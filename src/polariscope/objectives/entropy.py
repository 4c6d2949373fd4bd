"""Entropy-regularised VAE: the effect of β without rescaling the latents."""

from __future__ import annotations

import dataclasses
from typing import Annotated

from annotated_types import Ge

from polariscope.core.option_values import Advice
from polariscope.objectives import AbstractObjective, Step, Term, Terms, objective, run_forward


@objective("entropy")
@dataclasses.dataclass(frozen=True)
class EntropyObjective(AbstractObjective):
    r"""VAE with a reward for the entropy of the posterior: L_{H,β}.

    .. math:: -\mathbb{E}_{q(z|x)} \log p(x|z) + \mathrm{KL}(q(z|x) \,\|\, p(z)) - \frac{\beta - 1}{2} \log|S(x)|

    with S(x) the covariance of q(z|x), so log|S| = Σ_j log σ_j² if it is diagonal. The entropy of q(z|x) is ½ log|S|
    plus a constant. β = 1 is the VAE; larger values make encodings overlap more, smaller values less.

    For a Gaussian prior N(0, Σ) over D latents it is the β-VAE in rescaled latents: with decoder p(x|z/√β), means
    √β μ and covariances βS it exceeds the β-VAE's loss by :math:`c = \frac{D(\beta - 1)}{2} (1 + \log
    \frac{2\pi}{\beta}) + \log F_\beta`, :math:`\log F_\beta = \frac{1 - \beta}{2} (D \log 2\pi + \log|\Sigma|) -
    \frac D2 \log\beta`, so the stationary points of both correspond.

    Reference: mathieu2019 Eq. 5, Corollaries 1 and 2 (the value of F_β is derived here). β = 4 as for the β-VAE.
    """

    beta: Annotated[float, Ge(0), Advice("1 is the VAE, larger values make encodings overlap more")] = 4.0
    """Weight β of the corresponding β-VAE; 1 is the VAE, larger values make encodings overlap more."""

    def terms(self, step: Step) -> Terms:
        forward = run_forward(step)
        # The entropy is ½ log|S| plus a constant, which does not affect training.
        size = Term(forward.posterior.log_determinant, weight=-(self.beta - 1) / 2)
        return {**forward.terms(), "log_determinant": size}
