"""Permutation-contrastive learning: classification of true and shuffled pairs of frames."""

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
    r"""Logistic regression of true pairs (x, x') against pairs with the partner of another observation.

    .. math:: \tfrac12 \log(1 + e^{-r(x, x')}) + \tfrac12 \log(1 + e^{r(x, \tilde x')}),
        \qquad r(x, x') = \sum_j B_j(h_j(x), h_j(x'))

    with h the encoder, which maps each observation to a point, and B_j a function of the two values of one latent,
    trained jointly; x̃' is the batch of partners in a random cyclic order, so no observation keeps its own partner. The
    score depends on the two frames through one latent at a time, so each latent has to follow one source. The optimal
    score is log p(x, x')/(p(x) p(x')), and the optimal loss is log 2 minus the Jensen-Shannon divergence of the two
    kinds of pairs, which is log 2 for independent pairs. There is no decoder, no prior and no rate. The term
    ``accuracy`` is the share of pairs classified correctly, with a chance level of ½.

    Reference: Hyvärinen & Morioka, Nonlinear ICA of Temporally Dependent Stationary Sources (hyvarinen2017).
    zietlow2022 §4.3 uses the method as a non-variational baseline that the manipulated data do not affect.
    ``laplace`` is the B of the authors' simulations, initialised as in klindt2021; ``network`` is ours. Sources whose
    pairs are jointly Gaussian are not identified.
    """

    score: Literal["laplace", "network"] = "laplace"
    """Form of B: −|a h + b h' + c| + (d h + e)², for Laplace steps; or a small network, for any dependence."""
    width: Annotated[int, Ge(1), Advice("32 is the default")] = 32
    """Number of hidden units of each latent's network, if the score is "network"."""
    transition_kind: TransitionKind = "laplace"
    """Factors that differ within a pair: all, by small steps (laplace); some, at random (uniform); all but a random set
    (share); or all but one (share-one)."""
    transition_rate: Annotated[float, Gt(0), Advice("larger values mean smaller steps")] = 1.0
    """Rate of the steps of a laplace transition, in factors; larger values mean smaller steps."""

    needs = frozenset({"pairs"})
    defaults = {"posterior": "deterministic"}
    needs_density = False
    trains_decoder = False
    companion_is_adversary = False

    @property
    def transition(self) -> Transition:
        """Transition from which pairs are drawn."""
        return Transition(self.transition_kind, self.transition_rate)

    def check(self, data: AbstractDataset, blueprint: Blueprint, batch_size: int) -> None:
        check_pairs("pcl", self.transition, data, blueprint)
        refuse_single_samples(batch_size, "each observation is compared with the partner of another")

    def companion(self, model: Model, data: AbstractDataset, generator: torch.Generator) -> nn.Module:
        network = (
            LaplaceScore(model.n_latents)
            if self.score == "laplace"
            else NetworkScore(model.n_latents, self.width, generator)
        )
        return network.to(model.device, model.dtype)

    def terms(self, step: Step) -> Terms:
        batch = step.batch
        h, partner = (step.model.encode(frame).mean for frame in (batch.x, pair_of(batch)))
        true = step.run_companion(h, partner)
        shuffled = step.run_companion(h, partner[cyclic_order(len(h), step.generator)])
        # The score is a logit: true pairs are positive.
        right = (true > 0).to(h.dtype) + (shuffled < 0).to(h.dtype)
        return {
            "contrast": Term(0.5 * (functional.softplus(-true) + functional.softplus(shuffled))),
            "accuracy": Term(0.5 * right, weight=0.0),
        }


def cyclic_order(n: int, generator: torch.Generator) -> Tensor:
    """Return a random permutation that is a single cycle, so it has no fixed point if n > 1."""
    order = torch.randperm(n, generator=generator, device=generator.device)
    successor = torch.empty_like(order)
    # Each element is mapped to the next one in a random order, which makes a single cycle.
    successor[order] = order.roll(-1)
    return successor


class LaplaceScore(nn.Module):
    """Score Σ_j −|a_j h_j + b_j h'_j + c_j| + (d_j h_j + e_j)² + m.

    It is the log-density of a Laplace step minus that of a Gaussian marginal, up to constants.
    """

    def __init__(self, n_latents: int) -> None:
        super().__init__()
        # Initially −|h − h'| + h², a Laplace step of rate 1 relative to a Gaussian marginal.
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
    """Score Σ_j B_j(h_j, h'_j), where each B_j is a network with two hidden layers, leaky rectifiers and one output."""

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
        # One (sample, 2) matrix for each latent.
        columns = torch.stack([h, partner], dim=2).unbind(1)
        scores = [network(column) for network, column in zip(self.latents, columns, strict=True)]
        return torch.cat(scores, dim=1).sum(1)
