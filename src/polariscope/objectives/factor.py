"""FactorVAE: a penalty on the total correlation, estimated by a discriminator."""

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
    r"""VAE with a penalty on the total correlation, estimated by a discriminator.

    .. math:: -\mathbb{E}_{q(z|x)} \log p(x|z) + \mathrm{KL}(q(z|x) \,\|\, p(z)) + \gamma\, \mathrm{TC},
              \qquad \mathrm{TC} \approx \mathbb{E}_{q(z)}[ d_0(z) - d_1(z) ]

    with :math:`d_0, d_1` the discriminator's logits for "z is a draw of q(z)" and "z̃ is a draw of Π_j q(z_j)". It is
    trained with the model on ½ CE(d(z), 0) + ½ CE(d(z̃), 1), where z̃ is the batch z with each latent permuted
    independently; at its optimum d_0 − d_1 = log q(z) − Σ_j log q(z_j). γ = 0 is the VAE; γ corresponds to the β − 1 of
    the β-TCVAE. The loss of the model does not train the discriminator, and that of the discriminator does not train
    the model.

    Reference: Kim & Mnih, Disentangling by Factorising (kim2018); bonheme2023 Eq. 4.28,
    a maximised objective with the right sign (mushom2020's is wrong). γ = 10 was the best of 5 … 100 for two of three
    scores in mushom2020 Tab. 5.6. The discriminator and its optimiser (Adam 1e-4, 0.5, 0.9) are disentanglement_lib's,
    without its clipping of probabilities. As there, the batch itself is permuted, whereas the paper uses a second one,
    and both gradients are computed before either step.
    """

    gamma: Annotated[float, Ge(0), Advice("0 is the VAE, larger values make latents more independent")] = 10.0
    """Weight γ of the total correlation; 0 is the VAE, larger values make latents more independent."""
    depth: Annotated[int, Ge(1), Advice("6 layers of 1000 are the default")] = 6
    """Number of hidden layers of the discriminator; mushom2020 uses 5."""
    width: Annotated[int, Ge(1), Advice("6 layers of 1000 are the default")] = 1000
    """Number of units of each hidden layer; with 1000 the discriminator dominates the cost of small models."""

    def check(self, data: AbstractDataset, blueprint: Blueprint, batch_size: int) -> None:
        refuse_single_samples(batch_size, "the discriminator compares a batch with its permutation")

    def companion(self, model: Model, data: AbstractDataset, generator: torch.Generator) -> Discriminator:
        network = Discriminator(model.n_latents, 2, self.width, self.depth, SLOPE, generator)
        return network.to(model.device, model.dtype)

    def terms(self, step: Step) -> Terms:
        forward = run_forward(step)
        # Detached, so the discriminator's term does not train the encoder.
        joint = forward.z.detach()
        # One pass for both kinds: class 0 are codes, class 1 permuted codes.
        logits = step.run_companion(torch.cat([joint, permute_latents(joint, step.generator)]))
        classes = torch.arange(2, device=joint.device).repeat_interleave(len(joint))
        return {
            **forward.terms(),
            # The loop restricts each loss to the weights of its own network, so this term does not train the
            # discriminator.
            "total_correlation": Term(log_ratio(step.run_companion(forward.z)), weight=self.gamma),
            # Both classes have B samples, so the mean over 2B is half the sum of the classes' means.
            "discriminator": Term(functional.cross_entropy(logits, classes), trains="companion"),
        }


def log_ratio(logits: Float[Tensor, "sample 2"]) -> Float[Tensor, " sample"]:
    """Return the discriminator's estimate of log q(z) − Σ_j log q(z_j)."""
    return logits[:, 0] - logits[:, 1]


def permute_latents(
    z: Float[Tensor, "sample latent"], generator: torch.Generator
) -> Float[Tensor, "sample latent"]:
    """Permute each column independently, for draws from approximately Π_j q(z_j)."""
    keys = torch.rand(z.shape, generator=generator, device=z.device)
    # Sorting random keys gives an independent permutation of each column.
    return z.gather(0, keys.argsort(dim=0))
