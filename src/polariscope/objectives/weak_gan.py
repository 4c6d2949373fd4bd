"""The weakly supervised GAN: pairs that share a known set of factors."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Annotated

import torch
from annotated_types import Ge
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from polariscope.core.errors import InputError
from polariscope.core.options import Advice
from polariscope.data.pairs import Transition
from polariscope.models.model import Blueprint, Model
from polariscope.models.nets import initialise
from polariscope.objectives import AbstractObjective, Step, Term, Terms, objective
from polariscope.objectives.support.adversary import Discriminator
from polariscope.objectives.support.pairs import check_pairs, pair_of

if TYPE_CHECKING:
    from polariscope.data.dataset import AbstractDataset

SLOPE = 0.2


@objective("weak-gan")
@dataclasses.dataclass(frozen=True)
class WeakGanObjective(AbstractObjective):
    r"""A GAN on pairs: the decoder generates two observations that share the latents of a given set of factors.

    For a pair of observations that share the factors S, the decoder G makes a pair from the prior, with
    :math:`z'_j = z_j` for j in S and fresh draws elsewhere. A discriminator d, which sees a pair and S, is trained on

    .. math:: \log(1 + e^{-d(x, x', S)}) + \log(1 + e^{d(G(z), G(z'), S)}),

    the decoder on :math:`\log(1 + e^{-d(G(z), G(z'), S)})`, and the encoder on undoing the decoder,
    :math:`-\log q(z | G(z))`. Latent j stands for factor j; further latents are never shared. At the equilibrium the
    discriminator is at chance: its loss is 2 log 2, the decoder's log 2. G(z) is the mean of the decoder's likelihood.
    Neither term of the model reaches the other's network: the decoder never sees the encoder, nor the encoder the
    data.

    Reference: Shu et al., Weakly Supervised Disentanglement with Guarantees (shu2020),
    share pairing. zietlow2022 §4.3 names it in its "full sharing" setting, as a non-variational contrast that the
    manipulated data do not affect; the paper adds that the discriminator sees (x, x', S) and that the encoder is
    trained afterwards on generated samples. Ours, beyond that: the non-saturating loss, encoder
    and decoder trained at the same time, the sets S (1 to K − 1 factors, uniform), and the discriminator: the net's
    own encoder on each observation, then a layer on both and S.
    """

    inversion: Annotated[float, Ge(0), Advice("0 leaves the encoder untrained")] = 1.0
    """Weight of the encoder's term; no other term trains the encoder, and this one trains nothing else."""
    width: Annotated[int, Ge(1), Advice("256 is the default")] = 256
    """Units of the discriminator's last hidden layer, where the pair meets the set of shared factors."""

    needs = frozenset({"pairs"})
    transition = Transition("share")

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
        return made.to(model.device, model.dtype)

    def terms(self, step: Step) -> Terms:
        model, batch = step.model, step.batch
        pair = pair_of(batch)
        assert batch.shared is not None  # it comes with the pair
        z, partner = shared_draws(model, batch.shared, step.generator)
        made, made_pair = (model.decode(code).mean for code in (z, partner))
        fooled = step.ask_companion(made, made_pair, batch.shared)
        true = step.ask_companion(batch.x, pair, batch.shared)
        false = step.ask_companion(made.detach(), made_pair.detach(), batch.shared)
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
    kept = functional.pad(shared, (0, model.n_latents - shared.shape[1])) > 0
    return z, torch.where(kept, z, fresh)


class PairDiscriminator(nn.Module):
    """One logit for a pair and the set of factors it shares, larger where they look like data."""

    def __init__(self, blueprint: Blueprint, n_factors: int, width: int, generator: torch.Generator) -> None:
        super().__init__()
        with torch.random.fork_rng(devices=[]):  # layers draw from the global generator when constructed
            self.trunk = blueprint.net.encoder(blueprint.shape)
        initialise(self.trunk, blueprint.initialisation, generator)
        n_in = 2 * self.trunk.out_features + n_factors
        self.judge = Discriminator(n_in, 1, width, depth=1, slope=SLOPE, generator=generator)

    def forward(
        self,
        x: Float[Tensor, "sample *shape"],
        partner: Float[Tensor, "sample *shape"],
        shared: Float[Tensor, "sample factor"],
    ) -> Float[Tensor, " sample"]:
        seen = torch.cat([self.trunk(x), self.trunk(partner), shared], dim=1)
        return self.judge(seen)[:, 0]
