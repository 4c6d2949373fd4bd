"""Objectives: losses to minimise, in nats, summed over pixels and latents and averaged over the batch.

An objective returns named terms, unsummed; their weighted sum is the loss. Every member of the family has the
general form

    loss = reconstruction + β · rate + Σ λ · R(q(z)),

with a value per sample for the reconstruction, per sample and latent for the rate KL(q(z|x) ‖ p(z)), and one number
per batch for regularisers of the aggregate posterior q(z). An objective can have a *companion*: a second network that
is either an adversary of the model (a discriminator, trained on its own terms) or trained jointly with the model.
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
    """A named term of a loss, with a value per sample and latent, per sample, or for the batch."""

    value: Float[Tensor, "..."]
    weight: float = 1.0
    """Weight in the loss; 0 for terms that are only logged."""
    trains: Literal["model", "companion"] = "model"
    """Network that the term trains; "companion" only if that is an adversary."""

    @functools.cached_property
    def per_batch(self) -> Float[Tensor, ""]:
        """Unweighted value, summed over latents and averaged over samples."""
        return self.value.flatten(1).sum(1).mean() if self.value.ndim > 1 else self.value.mean()


Terms = dict[str, Term]


def total(terms: Terms, trains: str = "model") -> Float[Tensor, ""]:
    """Return the loss of the model, or of its adversary: the weighted sum of the terms."""
    return torch.stack(
        [term.weight * term.per_batch for term in terms.values() if term.trains == trains]
    ).sum()


@dataclasses.dataclass(frozen=True, eq=False)
class Batch:
    """Data of one training step."""

    x: Float[Tensor, "sample *shape"]
    """Observations, on the device of the model."""
    step: int
    """Number of steps before this one, for objectives with a schedule."""
    n_data: int = 0
    """Size N of the training split, for estimators of q(z)."""
    auxiliary: Float[Tensor, "sample auxiliary"] | None = None
    """Auxiliary variable of a conditional prior."""
    pair: Float[Tensor, "sample *shape"] | None = None
    """Partner of each observation, one transition away, if the objective requires pairs."""
    shared: Float[Tensor, "sample factor"] | None = None
    """1 for each factor that observation and partner share, 0 for the others; set together with ``pair``."""
    labels: Int[Tensor, "sample factor"] | None = None
    """Class of each discrete factor, if the objective requires labels."""


@dataclasses.dataclass(frozen=True, eq=False)
class Step:
    """Inputs of an objective in one step: the model, the batch and the source of randomness."""

    model: Model
    """Model in training or evaluation mode."""
    batch: Batch
    """Observations, and other data that the objective requires."""
    generator: torch.Generator
    """Generator of all random numbers of the step."""
    companion: Callable[..., Any] | None = None
    """Companion network, if the objective has one."""

    def run_companion(self, *inputs: Tensor) -> Any:
        """Return the companion's output for ``inputs``; raise an error if the step has no companion.

        :param inputs: arguments of the companion's ``forward``
        """
        if self.companion is None:
            raise InputError(
                problem="the objective requires a companion network, and this step has none",
                remedy="create it with objective.companion(model, data, generator)",
            )
        return self.companion(*inputs)


class AbstractObjective(abc.ABC):
    """Base class of objectives; the dataclass fields are the options."""

    needs: frozenset[Need] = frozenset()
    """Data that a batch must contain besides observations."""
    defaults: dict[str, str] = {}
    """Default posterior, prior or likelihood of the objective."""
    training: dict[str, str | float] = {}
    """Default optimiser of the objective, with its options."""
    needs_density: bool = True
    """If True, q(z|x) must have a density; every objective with a rate requires one."""
    trains_decoder: bool = True
    """If True, the objective trains a decoder."""
    companion_is_adversary: bool = True
    """If True, the companion has its own terms and optimiser; otherwise it is trained jointly with the model."""

    has_held_out_loss: bool = True
    """If True, a held-out loss measures progress; False if every term depends on an adversary."""

    @property
    def is_adversarial(self) -> bool:
        """If True, a companion is trained against the model."""
        # An objective has a companion if it overrides the method.
        return self.companion_is_adversary and type(self).companion is not AbstractObjective.companion

    @property
    def schedule_steps(self) -> int:
        """Step after which the loss does not depend on the step; 0 unless weights or capacities have a schedule."""
        return 0

    @property
    def caution(self) -> str:
        """Caution shown in reports on such a model; empty for most objectives."""
        return ""

    @property
    def normalises_decoder(self) -> bool:
        """If True, batch norm follows every hidden layer of the decoder; False for most objectives."""
        return False

    def check(self, data: AbstractDataset, blueprint: Blueprint, batch_size: int) -> None:  # noqa: B027
        """Raise an error, before training, if the objective does not support the data or the model.

        :param data: training data.
        :param blueprint: parts of the model, before it is built.
        :param batch_size: number of samples per step.
        """

    def companion(self, model: Model, data: AbstractDataset, generator: torch.Generator) -> nn.Module | None:
        """Return a companion network with weights drawn from ``generator``, or None, as for most objectives.

        :param model: model that is trained together with the companion.
        :param data: training data.
        :param generator: generator of the companion's weights.
        """
        return None

    def companion_optimiser(self, parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
        """Return the optimiser of an adversary.

        :param parameters: weights of the companion.
        """
        return FusedAdam(parameters, 1e-4, betas=(0.5, 0.9))

    @abc.abstractmethod
    def terms(self, step: Step) -> Terms:
        """Compute the named terms of the loss for one batch, with random numbers from ``step.generator``.

        Terms that train an adversary must use detached outputs of the model.

        :param step: model, batch, generator and companion.
        """


@dataclasses.dataclass(frozen=True, eq=False)
class ForwardPass:
    """Result of a forward pass of a batch through a model, which most objectives use."""

    posterior: AbstractPosteriorDistribution
    z: Float[Tensor, "sample latent"]
    """One draw z ~ q(z|x) per sample."""
    reconstruction: Float[Tensor, " sample"]
    """−log p(x|z), in nats."""
    rate: Float[Tensor, "sample latent"]
    """KL(q(z|x) ‖ p(z)), in nats."""

    def terms(self, beta: float = 1.0) -> Terms:
        """Return the terms of the reconstruction and the weighted rate."""
        return {"reconstruction": Term(self.reconstruction), "rate": Term(self.rate, weight=beta)}


def run_forward(step: Step) -> ForwardPass:
    """Encode a batch, draw once, decode and compute the KL from the prior.

    :param step: step with the model and the batch
    """
    model, batch = step.model, step.batch
    q = model.encode(batch.x, batch.auxiliary)
    z = q.sample(step.generator)
    # The draw is used only if the KL has no closed form.
    rate = kl(q, model.prior.given(batch.auxiliary), z)
    return ForwardPass(q, z, -model.decode(z).log_density(batch.x), rate)


def elbo_terms(step: Step, beta: float = 1.0) -> Terms:
    r"""Compute the two terms of the evidence lower bound, with one draw z ~ q(z|x) per sample.

    .. math:: -\mathbb{E}_{q(z|x)} \log p(x|z) + \beta\, \mathrm{KL}(q(z|x) \,\|\, p(z))

    :param step: step with the model and the batch
    :param beta: (default 1) weight β of the rate
    """
    return run_forward(step).terms(beta)


objective = family = open_family(__name__, "objective")
