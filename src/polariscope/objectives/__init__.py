"""Objectives: losses to minimise, in nats, summed over pixels and latents and averaged over the batch.

An objective returns named terms, unsummed; their weighted sum is the loss. Every member of the family has the
general form

    loss = reconstruction + β · rate + Σ λ · R(q(z)),

a term per sample for the reconstruction, per sample and latent for the rate KL(q(z|x) ‖ p(z)), and one number
per batch for what regularises the aggregate posterior.
"""

from __future__ import annotations

import abc
import dataclasses

import torch
from jaxtyping import Float
from torch import Tensor

from polariscope.model import Model
from polariscope.posteriors import kl
from polariscope.registry import open_family


@dataclasses.dataclass(frozen=True, eq=False)
class Term:
    """One named part of a loss: per sample and latent, per sample, or one number for the batch."""

    value: Float[Tensor, "..."]
    weight: float = 1.0

    @property
    def per_batch(self) -> Float[Tensor, ""]:
        """Unweighted: summed over latents, averaged over samples."""
        return self.value.flatten(1).sum(1).mean() if self.value.ndim > 1 else self.value.mean()


Terms = dict[str, Term]


def total(terms: Terms) -> Float[Tensor, ""]:
    """The loss: weighted sum of the terms."""
    parts = [term.weight * term.per_batch for term in terms.values()]
    return torch.stack(parts).sum()


@dataclasses.dataclass(frozen=True, eq=False)
class Batch:
    """What one training step sees."""

    x: Float[Tensor, "sample *shape"]
    """Observations, placed for the model."""
    step: int
    """Number of finished steps before this one, for objectives whose weights follow a schedule."""


class AbstractObjective(abc.ABC):
    """A recipe for a loss; its dataclass fields are its options."""

    @abc.abstractmethod
    def terms(self, model: Model, batch: Batch, generator: torch.Generator) -> Terms:
        """Named terms of the loss for one batch; randomness comes from ``generator``."""


def elbo_terms(model: Model, batch: Batch, generator: torch.Generator, beta: float = 1.0) -> Terms:
    r"""The two terms of the evidence lower bound, with one draw z ~ q(z|x) per sample.

    .. math:: -\mathbb{E}_{q(z|x)} \log p(x|z) + \beta\, \mathrm{KL}(q(z|x) \,\|\, p(z))
    """
    q = model.encode(batch.x)
    z = q.sample(generator)
    return {
        "reconstruction": Term(-model.decode(z).log_density(batch.x)),
        "rate": Term(kl(q, model.prior, z), weight=beta),
    }


objective = family = open_family(__name__, "objective")
