"""Objectives: losses to minimise, in nats, summed over pixels and latents and averaged over the batch.

An objective returns named terms, unsummed; their weighted sum is the loss. Every member of the family has the
general form

    loss = reconstruction + β · rate + Σ λ · R(q(z)),

a term per sample for the reconstruction, per sample and latent for the rate KL(q(z|x) ‖ p(z)), and one number
per batch for what regularises the aggregate posterior q(z). An objective may bring a *companion*: a network
beside the model, either its adversary (a discriminator, trained on terms of its own) or trained with it.
"""

from __future__ import annotations

import abc
import dataclasses
import functools
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from polariscope.core.errors import InputError
from polariscope.core.registry import open_family
from polariscope.models.adam import FusedAdam
from polariscope.models.model import Blueprint, Model
from polariscope.models.posteriors import AbstractPosteriorDistribution, kl

if TYPE_CHECKING:
    from polariscope.data.dataset import AbstractDataset

Need = Literal["pairs", "labels"]


@dataclasses.dataclass(frozen=True, eq=False)
class Term:
    """One named part of a loss: per sample and latent, per sample, or one number for the batch."""

    value: Float[Tensor, "..."]
    weight: float = 1.0
    """Its factor in the loss; 0 for what is only watched."""
    trains: Literal["model", "companion"] = "model"
    """Whose loss it belongs to; the companion's only where that is an adversary."""

    @functools.cached_property
    def per_batch(self) -> Float[Tensor, ""]:
        """Unweighted: summed over latents, averaged over samples."""
        return self.value.flatten(1).sum(1).mean() if self.value.ndim > 1 else self.value.mean()


Terms = dict[str, Term]


def total(terms: Terms, trains: str = "model") -> Float[Tensor, ""]:
    """The loss of the model, or of its adversary: weighted sum of the terms."""
    return torch.stack(
        [term.weight * term.per_batch for term in terms.values() if term.trains == trains]
    ).sum()


@dataclasses.dataclass(frozen=True, eq=False)
class Batch:
    """What one training step sees."""

    x: Float[Tensor, "sample *shape"]
    """Observations, placed for the model."""
    step: int
    """Number of finished steps before this one, for objectives whose weights follow a schedule."""
    n_data: int = 0
    """Size N of the training split, for estimators of q(z)."""
    auxiliary: Float[Tensor, "sample auxiliary"] | None = None
    """What a conditional prior is conditioned on."""
    pair: Float[Tensor, "sample *shape"] | None = None
    """For each observation one a transition away, where the objective needs pairs."""
    shared: Float[Tensor, "sample factor"] | None = None
    """1 for each factor that observation and pair have in common, 0 for the others; comes with ``pair``."""
    labels: Int[Tensor, "sample factor"] | None = None
    """Class of each discrete factor, where the objective needs labels."""


@dataclasses.dataclass(frozen=True, eq=False)
class Step:
    """All that an objective may look at in one step: what is trained, on which batch, with which noise."""

    model: Model
    """The model, in training or in evaluation."""
    batch: Batch
    """Observations, and what else the objective needs."""
    generator: torch.Generator
    """Where every random choice of the step comes from."""
    companion: Callable[..., Any] | None = None
    """The network beside the model, where the objective brings one."""

    def ask_companion(self, *inputs: Tensor) -> Any:
        """The companion's output for ``inputs``; a step without a companion is refused.

        :param inputs: what the companion's ``forward`` takes
        """
        if self.companion is None:
            raise InputError(
                problem="the objective trains a network beside the model, and this step has none",
                remedy="make it with objective.companion(model, data, generator)",
            )
        return self.companion(*inputs)


class AbstractObjective(abc.ABC):
    """A recipe for a loss; its dataclass fields are its options."""

    needs: frozenset[Need] = frozenset()
    """What a batch must hold beside observations."""
    defaults: dict[str, str] = {}
    """Posterior, prior or likelihood that the objective stands for, where the caller leaves it open."""
    training: dict[str, str | float] = {}
    """Optimiser and its options that the objective stands for, where the caller names no other optimiser."""
    needs_density: bool = True
    """Whether q(z|x) must have a density, as everything with a rate needs."""
    trains_decoder: bool = True
    """Whether there is a decoder to train."""
    companion_is_adversary: bool = True
    """Whether the companion has terms and an optimiser of its own, or is trained together with the model."""

    has_held_out_loss: bool = True
    """Whether a held-out loss shows if the model improves; not if every term depends on an adversary."""

    @property
    def is_adversarial(self) -> bool:
        """Whether a companion is trained against the model."""
        return self.companion_is_adversary and type(self).companion is not AbstractObjective.companion

    @property
    def schedule_steps(self) -> int:
        """Step from which the loss no longer depends on the step; 0 unless weights or capacities follow a schedule."""
        return 0

    @property
    def caution(self) -> str:
        """What a reader of a report on such a model should know; mostly nothing."""
        return ""

    @property
    def normalises_decoder(self) -> bool:
        """Whether batch norm follows every hidden layer of the decoder; mostly not."""
        return False

    def check(self, data: AbstractDataset, blueprint: Blueprint, batch_size: int) -> None:  # noqa: B027
        """Refuse, before training, data or a model that the objective cannot be trained with.

        :param data: what the model is to be trained on.
        :param blueprint: the parts of the model, before it is built.
        :param batch_size: samples per step.
        """

    def companion(self, model: Model, data: AbstractDataset, generator: torch.Generator) -> nn.Module | None:
        """A network beside the model, with weights drawn from ``generator``; most objectives have none.

        :param model: the model it is trained beside.
        :param data: what both are trained on.
        :param generator: where its weights are drawn from.
        """
        return None

    def companion_optimiser(self, parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
        """Optimiser of an adversary.

        :param parameters: the companion's weights.
        """
        return FusedAdam(parameters, 1e-4, betas=(0.5, 0.9))

    @abc.abstractmethod
    def terms(self, step: Step) -> Terms:
        """Named terms of the loss for one batch; randomness comes from ``step.generator``.

        Terms that train an adversary must see the model's outputs detached.

        :param step: the model, the batch, the generator and the companion.
        """


@dataclasses.dataclass(frozen=True, eq=False)
class ForwardPass:
    """A batch through a model: what most objectives start from."""

    posterior: AbstractPosteriorDistribution
    z: Float[Tensor, "sample latent"]
    """One draw z ~ q(z|x) per sample."""
    reconstruction: Float[Tensor, " sample"]
    """−log p(x|z), nats."""
    rate: Float[Tensor, "sample latent"]
    """KL(q(z|x) ‖ p(z)), nats."""

    def terms(self, beta: float = 1.0) -> Terms:
        """Reconstruction and weighted rate."""
        return {"reconstruction": Term(self.reconstruction), "rate": Term(self.rate, weight=beta)}


def run_forward(step: Step) -> ForwardPass:
    """Encode, draw once, decode and compare with the prior.

    :param step: the step whose batch goes through its model
    """
    model, batch = step.model, step.batch
    q = model.encode(batch.x, batch.auxiliary)
    z = q.sample(step.generator)
    rate = kl(q, model.prior.given(batch.auxiliary), z)
    return ForwardPass(q, z, -model.decode(z).log_density(batch.x), rate)


def elbo_terms(step: Step, beta: float = 1.0) -> Terms:
    r"""The two terms of the evidence lower bound, with one draw z ~ q(z|x) per sample.

    .. math:: -\mathbb{E}_{q(z|x)} \log p(x|z) + \beta\, \mathrm{KL}(q(z|x) \,\|\, p(z))

    :param step: the step whose batch goes through its model
    :param beta: (default 1) weight β of the rate
    """
    return run_forward(step).terms(beta)


objective = family = open_family(__name__, "objective")
