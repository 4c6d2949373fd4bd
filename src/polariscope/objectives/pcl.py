"""Permutation-contrastive learning: tell true pairs of frames from shuffled ones."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Annotated, Literal

import torch
from annotated_types import Ge, Gt
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from polariscope.core.option_values import Advice
from polariscope.data.pairs import Transition, TransitionKind
from polariscope.models.model import Blueprint, Model
from polariscope.models.nets import initialise
from polariscope.objectives import AbstractObjective, Step, Term, Terms, objective
from polariscope.objectives.support.paired_batches import check_pairs, pair_of
from polariscope.objectives.support.refusals import refuse_single_samples

if TYPE_CHECKING:
    from polariscope.data.dataset import AbstractDataset


@objective("pcl")
@dataclasses.dataclass(frozen=True)
class PclObjective(AbstractObjective):
    r"""Logistic regression between true pairs (x, x') and pairs with a partner from elsewhere in the batch.

    .. math:: \tfrac12 \log(1 + e^{-r(x, x')}) + \tfrac12 \log(1 + e^{r(x, \tilde x')}),
        \qquad r(x, x') = \sum_j B_j(h_j(x), h_j(x'))

    with h the encoder, a point for each observation, and B_j a function of the two values of one latent, trained with
    it; x̃' is the batch of partners in a random cyclic order, so none stays with its own. The score can only see
    the dependence between frames latent by latent, so a latent has to follow one source. At its best the score is
    log p(x, x')/(p(x) p(x')) and the loss log 2 less the Jensen-Shannon divergence of the two kinds of pairs: log 2
    for pairs that are independent. There is no decoder, no prior and no rate; the term ``accuracy`` is the share of
    pairs told apart, at chance ½.

    Reference: Hyvärinen & Morioka, Nonlinear ICA of Temporally Dependent Stationary Sources (hyvarinen2017).
    zietlow2022 §4.3 names the method as a non-variational contrast that the manipulated data do not affect.
    ``laplace`` is the B of the authors' simulations and starts where klindt2021 starts it; ``network`` is ours.
    Sources whose pairs are jointly Gaussian are not identified.
    """

    score: Literal["laplace", "network"] = "laplace"
    """Form of B: −|a h + b h' + c| + (d h + e)², for Laplace steps; or a small network, for any dependence."""
    width: Annotated[int, Ge(1), Advice("32 is the default")] = 32
    """Hidden units of each latent's network, where the score is one."""
    transition_kind: TransitionKind = "laplace"
    """How the factors of a pair differ: all by small steps, some at random, all but a random set, or all but one."""
    transition_rate: Annotated[float, Gt(0), Advice("larger means smaller steps")] = 1.0
    """Rate of the steps of a laplace transition, in factors; larger means smaller steps."""

    needs = frozenset({"pairs"})
    defaults = {"posterior": "deterministic"}
    needs_density = False
    trains_decoder = False
    companion_is_adversary = False

    @property
    def transition(self) -> Transition:
        """How pairs are drawn."""
        return Transition(self.transition_kind, self.transition_rate)

    def check(self, data: AbstractDataset, blueprint: Blueprint, batch_size: int) -> None:
        check_pairs("pcl", self.transition, data, blueprint)
        refuse_single_samples(batch_size, "each observation is compared with the partner of another")

    def companion(self, model: Model, data: AbstractDataset, generator: torch.Generator) -> nn.Module:
        made = (
            LaplaceScore(model.n_latents)
            if self.score == "laplace"
            else NetworkScore(model.n_latents, self.width, generator)
        )
        return made.to(model.device, model.dtype)

    def terms(self, step: Step) -> Terms:
        batch = step.batch
        h, partner = (step.model.encode(frame).mean for frame in (batch.x, pair_of(batch)))
        true = step.ask_companion(h, partner)
        shuffled = step.ask_companion(h, partner[cyclic_order(len(h), step.generator)])
        right = (true > 0).to(h.dtype) + (shuffled < 0).to(h.dtype)
        return {
            "contrast": Term(0.5 * (functional.softplus(-true) + functional.softplus(shuffled))),
            "accuracy": Term(0.5 * right, weight=0.0),
        }


def cyclic_order(n: int, generator: torch.Generator) -> Tensor:
    """A random permutation that is one cycle: nothing stays where it is, unless it is alone."""
    order = torch.randperm(n, generator=generator, device=generator.device)
    successor = torch.empty_like(order)
    successor[order] = order.roll(-1)
    return successor


class LaplaceScore(nn.Module):
    """Σ_j −|a_j h_j + b_j h'_j + c_j| + (d_j h_j + e_j)² + m.

    The log-density of a Laplace step less that of a Gaussian marginal, up to constants.
    """

    def __init__(self, n_latents: int) -> None:
        super().__init__()
        self.now = nn.Parameter(torch.ones(n_latents))
        self.other = nn.Parameter(-torch.ones(n_latents))
        self.shift = nn.Parameter(torch.zeros(n_latents))
        self.marginal = nn.Parameter(torch.ones(n_latents))
        self.marginal_shift = nn.Parameter(torch.zeros(n_latents))
        self.constant = nn.Parameter(torch.zeros(()))

    def forward(
        self, h: Float[Tensor, "sample latent"], partner: Float[Tensor, "sample latent"]
    ) -> Float[Tensor, " sample"]:
        step = (self.now * h + self.other * partner + self.shift).abs()
        marginal = (self.marginal * h + self.marginal_shift) ** 2
        return (marginal - step).sum(1) + self.constant


class NetworkScore(nn.Module):
    """Σ_j B_j(h_j, h'_j), each B_j a network of its own: two hidden layers with leaky rectifiers, one output."""

    def __init__(self, n_latents: int, width: int, generator: torch.Generator) -> None:
        super().__init__()
        with torch.random.fork_rng(devices=[]):  # layers draw from the global generator when constructed
            self.latents = nn.ModuleList(
                nn.Sequential(
                    nn.Linear(2, width),
                    nn.LeakyReLU(0.1),
                    nn.Linear(width, width),
                    nn.LeakyReLU(0.1),
                    nn.Linear(width, 1),
                )
                for _ in range(n_latents)
            )
        initialise(self, "glorot", generator)

    def forward(
        self, h: Float[Tensor, "sample latent"], partner: Float[Tensor, "sample latent"]
    ) -> Float[Tensor, " sample"]:
        columns = torch.stack([h, partner], dim=2).unbind(1)
        scores = [network(column) for network, column in zip(self.latents, columns, strict=True)]
        return torch.cat(scores, dim=1).sum(1)
