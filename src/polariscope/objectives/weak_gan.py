"""The weakly supervised GAN: pairs that share a known factor."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Literal

import torch
from annotated_types import Ge, Gt
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from polariscope.core.errors import InputError
from polariscope.core.option_values import Advice
from polariscope.data.pairs import Transition
from polariscope.models.adam import FusedAdam
from polariscope.models.model import Blueprint, Model
from polariscope.models.nets import initialise
from polariscope.models.normalisation import add_spectral_norm
from polariscope.objectives import AbstractObjective, Step, Term, Terms, objective
from polariscope.objectives.support.adversary import Discriminator
from polariscope.objectives.support.paired_batches import check_pairs, pair_of

if TYPE_CHECKING:
    from polariscope.data.dataset import AbstractDataset

SLOPE = 0.2
BETAS = (0.5, 0.999)
"""Of Adam, for all three networks."""


@objective("weak-gan")
@dataclasses.dataclass(frozen=True)
class WeakGanObjective(AbstractObjective):
    r"""A GAN on pairs: the decoder generates two observations that share the latent of a given factor.

    For a pair of observations that share the factors S, the decoder G makes a pair from the prior, with
    :math:`z'_j = z_j` for j in S and fresh draws elsewhere. A discriminator d, which sees a pair and S, is trained on

    .. math:: \log(1 + e^{-d(x, x', S)}) + \log(1 + e^{d(G(z), G(z'), S)}),

    the decoder on :math:`\log(1 + e^{-d(G(z), G(z'), S)})`, and the encoder on undoing the decoder,
    :math:`-\log q(z | G(z))`. Latent j stands for factor j; further latents are never shared. At the equilibrium the
    discriminator is at chance: its loss is 2 log 2, the decoder's log 2. G(z) is the mean of the decoder's likelihood.
    Neither term of the model reaches the other's network: the decoder never sees the encoder, nor the encoder the
    data.

    With ``sharing="each"`` S is a single factor, each with the same chance, and the others are drawn anew: the "full
    sharing" of zietlow2022 §4.3, a non-variational contrast that the manipulated data do not affect. With
    ``sharing="sets"`` S is a random set of 1 to K − 1 factors, which teaches sooner: pairs that share most factors are
    almost equal. After 2,000 steps on sprites of 32 × 32 pixels with 5 latents, one seed each, the mutual information
    gap was 0.28 with ``sets`` and still 0.00 with ``each``.

    The discriminator is :math:`d = h^\top (a + \sum_{j \in S} c_j)`. h comes from both observations: the net's own
    encoder on each, then two layers of ``width`` on both together. Every :math:`c_j` has length 1, and every layer is
    divided by its largest singular value (:class:`~polariscope.models.normalisation.SpectralNorm`). In the decoder,
    batch norm follows each non-linearity (:class:`~polariscope.models.normalisation.BatchNorm`): while it is trained
    the samples of a batch see each other, afterwards they do not.

    Reference: Shu et al., Weakly Supervised Disentanglement with Guarantees (shu2020).

    * From the paper: pairs that share factors, and an encoder trained on generated samples.
    * From the authors' code: S a single factor, the losses, the form of d, both normalisations, an encoder trained in
      the same step as the others, and for all three Adam with rate 0.001, β₁ = 0.5 and β₂ = 0.999. Training takes that
      Adam unless another optimiser is named. The authors train for 500,000 steps of 64 samples.
    * Ours: the nets (the authors' discriminator has twice the channels, their first decoder layer 128 units, and both
      have leaky rectifiers); no spectral norm in the encoder; further latents are encoded too; all gradients are taken
      from one batch before any step, where the authors' decoder answers the discriminator's step with fresh draws; both
      halves of the generated pairs have their batch norm together; and ``sets``.
    """

    sharing: Literal["each", "sets"] = "each"
    """What a pair shares: a single factor, each with the same chance, or a random set of 1 to K − 1 factors."""
    inversion: Annotated[float, Ge(0), Advice("0 leaves the encoder untrained")] = 1.0
    """Weight of the encoder's term; no other term trains the encoder, and this one trains nothing else."""
    width: Annotated[int, Ge(1), Advice("256 is the default")] = 256
    """Units of the discriminator's last two hidden layers, where the observations of a pair meet."""
    batch_norm: bool = True
    """Whether batch norm follows the hidden layers of the decoder."""
    spectral_norm: bool = True
    """Whether the layers of the discriminator are divided by their largest singular value."""
    adversary_learning_rate: Annotated[float, Gt(0), Advice("0.001 is the published rate")] = 1e-3
    """Step size of the discriminator's optimiser."""

    needs = frozenset({"pairs"})
    has_held_out_loss = False
    training = {"optimiser": "adam", "learning_rate": 1e-3, "adam_beta1": BETAS[0]}

    @property
    def transition(self) -> Transition:
        """How pairs are drawn."""
        return Transition("share-one" if self.sharing == "each" else "share")

    @property
    def normalises_decoder(self) -> bool:
        return self.batch_norm

    @property
    def caution(self) -> str:
        """The encoder reads the generator; the posterior has no prior that pulls it."""
        return (
            "The decoder is a generator trained against a discriminator, and the encoder only learns to invert it: "
            "there is no rate, so types say how sure the encoder is, not what an objective has pruned."
        )

    def check(self, data: AbstractDataset, blueprint: Blueprint, batch_size: int) -> None:
        check_pairs("weak-gan", self.transition, data, blueprint)
        n_factors = len(data.factor_names)
        if blueprint.n_latents < n_factors:
            raise InputError(
                "n_latents",
                f"be at least {n_factors}",
                got=(
                    f"{blueprint.n_latents}: objective 'weak-gan' has a latent for each factor of {data.name}"
                ),
            )

    def companion(self, model: Model, data: AbstractDataset, generator: torch.Generator) -> PairDiscriminator:
        made = PairDiscriminator(model.blueprint, len(data.factor_names), self.width, generator)
        made = made.to(model.device, model.dtype)
        if self.spectral_norm:
            add_spectral_norm(made)
        return made

    def companion_optimiser(self, parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
        return FusedAdam(parameters, self.adversary_learning_rate, betas=BETAS)

    def terms(self, step: Step) -> Terms:
        model, batch = step.model, step.batch
        pair = pair_of(batch)
        assert batch.shared is not None  # it comes with the pair
        z, partner = shared_draws(model, batch.shared, step.generator)
        made, made_pair = model.decode(torch.cat([z, partner])).mean.chunk(2)
        fooled = step.ask_companion(made, made_pair, batch.shared)
        both = ((batch.x, made.detach()), (pair, made_pair.detach()), (batch.shared, batch.shared))
        true, false = step.ask_companion(*map(torch.cat, both)).chunk(2)
        return {
            "generation": Term(functional.softplus(-fooled)),
            "inversion": Term(-model.encode(made.detach()).log_density(z), weight=self.inversion),
            "discriminator": Term(
                functional.softplus(-true) + functional.softplus(false), trains="companion"
            ),
        }


def shared_draws(
    model: Model, shared: Float[Tensor, "sample factor"], generator: torch.Generator
) -> tuple[Float[Tensor, "sample latent"], Float[Tensor, "sample latent"]]:
    """Two draws from the prior for each sample, equal in the latents of the factors that are shared."""
    z, fresh = (model.prior.sample(len(shared), generator).detach() for _ in range(2))
    is_shared = functional.pad(shared, (0, model.n_latents - shared.shape[1])) > 0
    return z, torch.where(is_shared, z, fresh)


class PairDiscriminator(nn.Module):
    """One logit for a pair and the factors it shares, larger where they look like data."""

    def __init__(self, blueprint: Blueprint, n_factors: int, width: int, generator: torch.Generator) -> None:
        super().__init__()
        with torch.random.fork_rng(devices=[]):  # layers draw from the global generator when constructed
            self.trunk = blueprint.net.encoder(blueprint.shape)
            self.always = nn.Linear(width, 1, bias=False)
        self.neck = Discriminator(
            2 * self.trunk.out_features, width, width, depth=1, slope=SLOPE, generator=generator
        )
        self.of_factor = nn.Parameter(torch.randn(n_factors, width, generator=generator))
        initialise(self.trunk, blueprint.initialisation, generator)
        initialise(self.always, "glorot", generator)

    def forward(
        self,
        x: Float[Tensor, "sample *shape"],
        partner: Float[Tensor, "sample *shape"],
        shared: Float[Tensor, "sample factor"],
    ) -> Float[Tensor, " sample"]:
        both = torch.cat(self.trunk(torch.cat([x, partner])).chunk(2), dim=1)
        seen = functional.leaky_relu(self.neck(both), SLOPE)
        return self.always(seen)[:, 0] + (seen * (shared @ functional.normalize(self.of_factor))).sum(1)
