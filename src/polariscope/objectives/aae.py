"""Adversarial autoencoder: a discriminator matches q(z) to the prior."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Annotated, Literal

import torch
from annotated_types import Ge, Gt
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import softplus

from polariscope.core.errors import Argument, InputError
from polariscope.core.option_values import Advice
from polariscope.data.dataset import AbstractDataset
from polariscope.models.adam import FusedAdam
from polariscope.models.model import Blueprint, Model
from polariscope.models.posteriors import kl
from polariscope.objectives import AbstractObjective, Step, Term, Terms, objective
from polariscope.objectives.support.adversary import Discriminator

Game = Literal["non-saturating", "saturating"]
SLOPE = 0.2


@objective("aae")
@dataclasses.dataclass(frozen=True)
class AaeObjective(AbstractObjective):
    r"""Reconstruction, and an adversarial term that makes codes look like draws from the prior.

    .. math:: -\mathbb{E}_{q(z|x)} \log p(x|z) + \beta\, \mathrm{KL}(q(z|x) \,\|\, p(z))
              + \lambda\, \mathbb{E}_{q(z)} g(z)

    A discriminator D, the probability that z is a draw from the prior, is trained with the model on
    −E_p log D(z) − E_q log(1 − D(z)), with detached codes. For the optimal D this is log 4 − 2 JS(q(z), p(z)), between
    0 (separated) and log 4 (equal). The encoder's g is log(1 − D(z)) in the ``saturating`` game, which minimises the
    Jensen-Shannon divergence itself but has no gradient if D is certain. In the ``non-saturating`` game it is
    −log D(z), which has a gradient there, and is log 2 if q(z) = p(z). λ = 0 is the autoencoder.

    Reference: Makhzani et al., Adversarial Autoencoders (makhzani2015);
    mushom2020 §4.3, Table 4.1, which includes the VAE's rate: ``keep_rate=1``. The original omits it (0, the default)
    and its encoder is deterministic or Gaussian. Two layers of 1000 units as in the original for MNIST; ours: leaky
    rectifiers with slope 0.2 and Adam with β₁ = 0.5, β₂ = 0.9, as for ``factor``, and both networks are updated in the
    same step. mathieu2019 §5 found such training unstable; ``wae`` has the same aim without an adversary.
    """

    lambda_adversary: Annotated[float, Ge(0), Advice("0 is the autoencoder")] = 1.0
    """Weight λ of the encoder's adversarial term; 0 is the autoencoder."""
    keep_rate: Annotated[float, Ge(0), Advice("0 is the original, 1 includes the VAE's rate")] = 0.0
    """Weight β of the rate; 0 is the original, 1 includes the VAE's rate. Requires a posterior with a density."""
    game: Game = "non-saturating"
    """Loss of the encoder: −log D(z), or log(1 − D(z)), whose gradient vanishes if D is certain."""
    depth: Annotated[int, Ge(1), Advice("2 layers of 1000 are the original")] = 2
    """Number of hidden layers of the discriminator."""
    width: Annotated[int, Ge(1), Advice("2 layers of 1000 are the original")] = 1000
    """Number of units of each hidden layer of the discriminator."""
    adversary_learning_rate: Annotated[float, Gt(0), Advice("0.0001 is the default")] = 1e-4
    """Learning rate of the discriminator."""

    defaults = {"posterior": "deterministic"}
    needs_density = False

    def check(self, data: AbstractDataset, blueprint: Blueprint, batch_size: int) -> None:
        if self.keep_rate > 0 and not blueprint.posterior.has_density:
            raise InputError(
                problem=(
                    Argument("keep_rate", self.keep_rate),
                    " is the weight of a rate, which a deterministic encoder does not have",
                ),
                remedy=("use ", Argument("posterior", "diagonal"), " or ", Argument("keep_rate", 0)),
            )

    def companion(self, model: Model, data: AbstractDataset, generator: torch.Generator) -> Discriminator:
        network = Discriminator(model.n_latents, 1, self.width, self.depth, SLOPE, generator)
        return network.to(model.device, model.dtype)

    def companion_optimiser(self, parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
        return FusedAdam(parameters, self.adversary_learning_rate, betas=(0.5, 0.9))

    def terms(self, step: Step) -> Terms:
        model, batch = step.model, step.batch
        q = model.encode(batch.x, batch.auxiliary)
        z = q.sample(step.generator)
        prior = model.prior.given(batch.auxiliary)
        terms = {"reconstruction": Term(-model.decode(z).log_density(batch.x))}
        if model.blueprint.posterior.has_density:
            terms["rate"] = Term(kl(q, prior, z), weight=self.keep_rate)
        # The loop restricts each loss to the weights of its own network, so this term does not train the discriminator.
        logits = step.run_companion(z)[:, 0]
        terms["aggregate"] = Term(encoder_loss(logits, self.game), weight=self.lambda_adversary)
        # A prior can have parameters, which the discriminator must not train.
        draws = prior.sample(len(z), step.generator).detach()
        real, fake = step.run_companion(torch.cat([draws, z.detach()]))[:, 0].chunk(2)
        terms["discriminator"] = Term(discriminator_loss(real, fake), trains="companion")
        return terms


def encoder_loss(logits: Float[Tensor, " sample"], game: Game) -> Float[Tensor, " sample"]:
    """Return −log D or log(1 − D) of D = sigmoid(logit), without overflow."""
    # −log sigmoid(t) = softplus(−t) and log(1 − sigmoid(t)) = −softplus(t).
    return softplus(-logits) if game == "non-saturating" else -softplus(logits)


def discriminator_loss(
    real: Float[Tensor, " sample"], fake: Float[Tensor, " sample"]
) -> Float[Tensor, " sample"]:
    """Return −log D of draws from the prior plus −log(1 − D) of codes, one of each per sample."""
    return softplus(-real) + softplus(fake)
