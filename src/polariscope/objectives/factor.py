"""FactorVAE: the total correlation, judged by a discriminator."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Annotated

import torch
from annotated_types import Ge
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from polariscope.core.option_values import Advice
from polariscope.models.model import Blueprint, Model
from polariscope.objectives import AbstractObjective, Step, Term, Terms, objective, run_forward
from polariscope.objectives.support.adversary import Discriminator
from polariscope.objectives.support.refusals import refuse_single_samples

if TYPE_CHECKING:
    from polariscope.data.dataset import AbstractDataset

SLOPE = 0.2


@objective("factor")
@dataclasses.dataclass(frozen=True)
class FactorObjective(AbstractObjective):
    r"""The VAE with a penalty on the total correlation, which a discriminator estimates.

    .. math:: -\mathbb{E}_{q(z|x)} \log p(x|z) + \mathrm{KL}(q(z|x) \,\|\, p(z)) + \gamma\, \mathrm{TC},
              \qquad \mathrm{TC} \approx \mathbb{E}_{q(z)}[ d_0(z) - d_1(z) ]

    with :math:`d_0, d_1` the discriminator's logits for "z is a draw of q(z)" and "z̃ is a draw of Π_j q(z_j)". It
    is trained beside the model on ½ CE(d(z), 0) + ½ CE(d(z̃), 1), where z̃ is the batch z with each latent permuted
    on its own; at its optimum d_0 − d_1 = log q(z) − Σ_j log q(z_j). γ = 0 is the VAE; γ corresponds to the β − 1 of
    the β-TCVAE. The model never trains the discriminator, nor the discriminator the model.

    Reference: Kim & Mnih, Disentangling by Factorising (kim2018); bonheme2023 Eq. 4.28,
    a maximised objective with the right sign (mushom2020's is wrong). γ = 10 was the best of 5 … 100 for two of three
    scores in mushom2020 Tab. 5.6. The discriminator and its optimiser (Adam 1e-4, 0.5, 0.9) are disentanglement_lib's,
    without its clipping of probabilities; like it, we permute the batch itself where the paper takes a second one,
    and take both gradients before either step.
    """

    gamma: Annotated[float, Ge(0), Advice("0 is the VAE, larger asks for independent latents")] = 10.0
    """Weight γ of the total correlation; 0 is the VAE, larger asks for independent latents."""
    depth: Annotated[int, Ge(1), Advice("6 layers of 1000 are usual")] = 6
    """Hidden layers of the discriminator; mushom2020 has 5."""
    width: Annotated[int, Ge(1), Advice("6 layers of 1000 are usual")] = 1000
    """Units of each hidden layer; with 1000 the discriminator is most of the cost of small models."""

    def check(self, data: AbstractDataset, blueprint: Blueprint, batch_size: int) -> None:
        refuse_single_samples(batch_size, "the discriminator compares a batch with its permutation")

    def companion(self, model: Model, data: AbstractDataset, generator: torch.Generator) -> Discriminator:
        made = Discriminator(model.n_latents, 2, self.width, self.depth, SLOPE, generator)
        return made.to(model.device, model.dtype)

    def terms(self, step: Step) -> Terms:
        forward = run_forward(step)
        joint = forward.z.detach()
        logits = step.ask_companion(torch.cat([joint, permute_latents(joint, step.generator)]))
        classes = torch.arange(2, device=joint.device).repeat_interleave(len(joint))
        return {
            **forward.terms(),
            "total_correlation": Term(log_ratio(step.ask_companion(forward.z)), weight=self.gamma),
            # Both classes have B samples, so the mean over 2B is half of each class's mean.
            "discriminator": Term(functional.cross_entropy(logits, classes), trains="companion"),
        }


def log_ratio(logits: Float[Tensor, "sample 2"]) -> Float[Tensor, " sample"]:
    """What the discriminator says about log q(z) − Σ_j log q(z_j)."""
    return logits[:, 0] - logits[:, 1]


def permute_latents(
    z: Float[Tensor, "sample latent"], generator: torch.Generator
) -> Float[Tensor, "sample latent"]:
    """Draws from about Π_j q(z_j): each column in a random order of its own."""
    keys = torch.rand(z.shape, generator=generator, device=z.device)
    return z.gather(0, keys.argsort(dim=0))
