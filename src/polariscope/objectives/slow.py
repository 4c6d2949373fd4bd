"""SlowVAE: a sparse prior on the changes of latents between frames."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Annotated

import torch
from annotated_types import Ge, Gt
from jaxtyping import Float
from torch import Tensor

from polariscope.core.errors import Argument, InputError
from polariscope.core.option_values import Advice
from polariscope.data.pairs import Transition, TransitionKind
from polariscope.models.model import Blueprint
from polariscope.objectives import AbstractObjective, Batch, Step, Term, Terms, objective, run_forward
from polariscope.objectives.support.paired_batches import check_pairs, pair_of

if TYPE_CHECKING:
    from polariscope.data.dataset import AbstractDataset


@objective("slow")
@dataclasses.dataclass(frozen=True)
class SlowObjective(AbstractObjective):
    r"""β-VAE on pairs of frames, with a sparse (Laplace) prior on the change of each latent between them.

    .. math:: 2\, \overline{\mathrm{rec}} + \beta\, \overline{\mathrm{KL}}(q \,\|\, p)
        + \gamma \sum_j \left[ \mathrm{CE}(q_{t,j}, \mu_{t-1,j}) + \mathrm{CE}(q_{t-1,j}, \mu_{t,j})
        - \overline{H}(q_j) \right]

    for a pair of frames t and t − 1. A bar denotes the mean over the two frames: rec of −log p(x|z), KL of the
    divergence from the prior, H of the entropy ½ log 2πeσ² of each latent's posterior. CE is the cross-entropy of a
    posterior N(μ, σ²) with a Laplace density of rate λ around the other frame's mean (:func:`laplace_cross_entropy`).
    The bracket is two cross-entropies minus one entropy, as published; it is not a divergence and can be negative.

    γ = 0 is the β-VAE on both frames with the weight β/2 of the rate: the loss of a pair is the sum over its frames of
    rec + β/2 KL. A large λ makes latents constant between frames.

    Reference: Klindt et al., Towards Nonlinear Disentanglement in Natural Data with Temporal Sparse Coding
    (klindt2021); loss, averages and defaults as in the authors' code. zietlow2022 §4.3 gives only the method and β = 1.
    """

    beta: Annotated[float, Ge(0), Advice("0 removes the term")] = 1.0
    """Weight β of the rate; the loss has two reconstructions, so β = 2 corresponds to the VAE."""
    gamma: Annotated[float, Ge(0), Advice("0 removes the term")] = 10.0
    """Weight γ of the transition term; 0 is the β-VAE on both frames."""
    rate: Annotated[float, Gt(0), Advice("6 is the published rate")] = 6.0
    """Rate λ of the Laplace density between frames; larger values make latents slower."""
    transition_kind: TransitionKind = "laplace"
    """Factors that differ within a pair: all, by small steps (laplace); some, at random (uniform); all but a random set
    (share); or all but one (share-one)."""
    transition_rate: Annotated[float, Gt(0), Advice("larger values mean smaller steps")] = 1.0
    """Rate of the steps of a laplace transition, in factors; larger values mean smaller steps."""

    needs = frozenset({"pairs"})

    @property
    def transition(self) -> Transition:
        """Transition from which pairs are drawn."""
        return Transition(self.transition_kind, self.transition_rate)

    def check(self, data: AbstractDataset, blueprint: Blueprint, batch_size: int) -> None:
        check_pairs("slow", self.transition, data, blueprint)
        if not blueprint.posterior.is_diagonal:
            raise InputError(
                problem="objective 'slow' requires latents that are independent given x",
                remedy=("use ", Argument("posterior", "diagonal")),
            )

    def terms(self, step: Step) -> Terms:
        batch = step.batch
        n = len(batch.x)
        # Rows 0 … n − 1 are the frames t, rows n … 2n − 1 their partners. A conditional prior is refused by check().
        frames = Batch(torch.cat([batch.x, pair_of(batch)]), batch.step, batch.n_data)
        both = run_forward(dataclasses.replace(step, batch=frames))
        mean, log_variance = both.posterior.mean, both.posterior.log_variance
        moved = mean[:n] - mean[n:]
        # Seen from the partner, the distance has the opposite sign.
        crossed = laplace_cross_entropy(torch.cat([moved, -moved]), log_variance, self.rate)
        # ½ log 2πeσ².
        entropy = 0.5 * (math.log(2 * math.pi) + 1 + log_variance)
        return {
            # unflatten pairs row i with row n + i, its partner.
            "reconstruction": Term(both.reconstruction.unflatten(0, (2, n)).mean(0), weight=2.0),
            "rate": Term(both.rate.unflatten(0, (2, n)).mean(0), weight=self.beta),
            "transition": Term(
                crossed.unflatten(0, (2, n)).sum(0) - entropy.unflatten(0, (2, n)).mean(0), weight=self.gamma
            ),
        }


def laplace_cross_entropy(
    distance: Float[Tensor, "sample latent"], log_variance: Float[Tensor, "sample latent"], rate: float
) -> Float[Tensor, "sample latent"]:
    r"""Return the cross-entropy of N(m + Δ, σ²) with a Laplace density of rate λ around m, in nats.

    .. math:: -\mathbb{E} \log \tfrac{\lambda}{2} e^{-\lambda |z - m|} = -\log \tfrac{\lambda}{2}
        + \lambda \left[ \sigma \sqrt{2/\pi}\, e^{-\Delta^2 / 2\sigma^2} + \Delta\, (2 \Phi(\Delta/\sigma) - 1) \right]

    with Δ the ``distance``; the bracket is the mean of |z − m|. For σ → 0 it is |Δ|, for Δ = 0 it is σ√(2/π).
    """
    deviation = torch.exp(0.5 * log_variance)
    relative = distance / deviation
    # The two terms of the bracket, with 2 Φ(t) − 1 = erf(t / √2).
    near = deviation * math.sqrt(2 / math.pi) * torch.exp(-0.5 * relative**2)
    return -math.log(rate / 2) + rate * (near + distance * torch.erf(relative / math.sqrt(2)))
