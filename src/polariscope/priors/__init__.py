"""Priors p(z): what a latent variable looks like when the data say nothing about it."""

from __future__ import annotations

import abc
from typing import TYPE_CHECKING

import torch
from jaxtyping import Float
from torch import Tensor, nn

from polariscope.registry import open_family

if TYPE_CHECKING:
    from polariscope.data import AbstractDataset


class AbstractPriorModule(nn.Module, abc.ABC):
    """A distribution over latents, with its parameters if it learns any."""

    n_latents: int
    meaning_of_passive: str
    """What a passive latent looks like under this prior, in words."""

    @abc.abstractmethod
    def log_density(self, z: Float[Tensor, "sample latent"]) -> Float[Tensor, "sample latent"]:
        """log p(z_j), in nats."""

    @abc.abstractmethod
    def sample(self, n_samples: int, generator: torch.Generator) -> Float[Tensor, "sample latent"]:
        """Draws z ~ p(z)."""

    def normal(self) -> tuple[Float[Tensor, " latent"], Float[Tensor, " latent"]] | None:
        """Mean and log-variance if the prior is a Gaussian with independent latents; the KL is then exact."""
        return None


class AbstractPrior(abc.ABC):
    """A recipe for a prior; its dataclass fields are its options."""

    @abc.abstractmethod
    def build(self, n_latents: int, data: AbstractDataset | None) -> AbstractPriorModule:
        """The prior over ``n_latents``; ``data`` for those that start from it, None when loading weights."""


prior = family = open_family(__name__, "prior")
