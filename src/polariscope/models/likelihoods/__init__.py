"""Likelihoods p(x|z): how the decoder's output scores an observation."""

from __future__ import annotations

import abc

import torch
from jaxtyping import Float
from torch import Tensor, nn

from polariscope.core.registry import open_family


class AbstractLikelihoodDistribution(abc.ABC):
    """p(x|z) for a batch of latents."""

    mean: Float[Tensor, "sample *shape"]
    """What the decoder shows: E[x|z]."""

    @abc.abstractmethod
    def log_density(self, x: Float[Tensor, "sample *shape"]) -> Float[Tensor, " sample"]:
        """log p(x|z) in nats, summed over pixels and channels."""

    @abc.abstractmethod
    def sample(self, generator: torch.Generator) -> Float[Tensor, "sample *shape"]:
        """Draws x ~ p(x|z)."""


class AbstractLikelihood(abc.ABC):
    """A recipe for the head that turns the decoder's raw output into p(x|z)."""

    needs_unit_interval: bool = False

    @property
    def scale_in_words(self) -> str:
        """The variance of a value and whether it is learned; empty for a likelihood without."""
        return ""

    @property
    @abc.abstractmethod
    def n_parameters(self) -> int:
        """How many raw outputs per value of the observation."""

    @abc.abstractmethod
    def head(self) -> nn.Module:
        """Module from raw outputs ``(sample, n_parameters · channel, …)`` to a likelihood distribution."""


likelihood = family = open_family(__name__, "likelihood")
