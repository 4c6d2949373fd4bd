"""Likelihoods p(x|z): how the decoder's output scores an observation."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from polariscope.core.registry import open_family

if TYPE_CHECKING:
    from polariscope.data.dataset import AbstractDataset


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

    def like(self, x: Float[Tensor, "sample *shape"]) -> AbstractLikelihoodDistribution:
        """The same, given what observations bring along beside their latents: the size of a sample of counts.

        ``log_density`` takes it from its argument. Without it, mean and draws have the usual size.

        :param x: observations, one for each latent.
        """
        return self

    def at(self, columns: Int[Tensor, " chosen"]) -> AbstractLikelihoodDistribution | None:
        """Return the same for some values of flattened observations; None: residuals cannot be checked.

        A distribution that is not None has a ``variance``.

        :param columns: numbers of the values.
        """
        return None

    @property
    def variance(self) -> Float[Tensor, "..."]:
        """Var[x|z] of each value, or one number for all."""
        raise NotImplementedError

    def transform(
        self,
        x: Float[Tensor, "sample value"],
        noise: Float[Tensor, "sample value"],
    ) -> Float[Tensor, "sample value"] | None:
        """Return the probability integral transform F(x), uniform for draws x; None for probabilities of 0 and 1.

        :param x: observations.
        :param noise: uniform numbers, by which the steps of a discrete F are filled.
        """
        return None


@dataclasses.dataclass(frozen=True)
class Residuals:
    """Sums over residuals, from which the parameter of a rival likelihood is fitted."""

    n_values: int
    square: float
    """Σ (x − μ)²."""
    mean: float
    """Σ μ."""
    mean_square: float
    """Σ μ²."""

    @staticmethod
    def of(x: Float[np.ndarray, "sample value"], mean: Float[np.ndarray, "sample value"]) -> Residuals:
        """Return the sums for observations and their means.

        :param x: observations.
        :param mean: their means.
        """
        return Residuals(x.size, float(((x - mean) ** 2).sum()), float(mean.sum()), float((mean**2).sum()))


Fitted: TypeAlias = "tuple[float, AbstractLikelihoodDistribution]"
"""The parameter of a likelihood that was fitted to residuals, and the distribution for a batch."""


class AbstractLikelihood(abc.ABC):
    """A recipe for the head that turns the decoder's raw output into p(x|z)."""

    needs_unit_interval: bool = False
    needs_counts: bool = False
    """Whether every value must be a whole number from 0."""

    @property
    def scale_in_words(self) -> str:
        """The variance of a value and whether it is learned; empty for a likelihood without."""
        return ""

    @classmethod
    def options_for(
        cls,
        data: AbstractDataset,  # noqa: ARG003
        given: Mapping[str, Any],
    ) -> dict[str, Any]:
        """The options for these data: those that were given, and those that the data decide, in plain numbers.

        Asked when a training is planned, with an objective that has a rate; what it says is recorded, so a model is
        loaded without the data.

        :param data: what is trained on.
        :param given: the options that were given, checked.
        """
        return dict(given)

    def gamma_of(self, head: nn.Module) -> float | None:
        """The variance γ of every value now, where that is one number; else None.

        :param head: what :meth:`head` made.
        """
        return None

    @property
    def learns_one_variance(self) -> bool:
        """Whether one variance for all values is learned, which then depends on what the latents leave unexplained."""
        return False

    @property
    def fixed_variance(self) -> float | None:
        """The variance of every value, where that is one number and not learned; else None."""
        return None

    @property
    def rival(self) -> str:
        """Name of a likelihood that fits better if residuals are other than this one allows; empty if there is none."""
        return ""

    @classmethod
    def fitted_to(cls, mean: Float[Tensor, "sample value"], residuals: Residuals) -> Fitted | None:  # noqa: ARG003
        """Return the likelihood with these means, and one parameter fitted to residuals; None if that is not known.

        :param mean: means of values, by another model; outside of what this likelihood allows they are moved into it.
        :param residuals: sums over all residuals.
        """
        return None

    @property
    @abc.abstractmethod
    def n_parameters(self) -> int:
        """How many raw outputs per value of the observation."""

    @abc.abstractmethod
    def head(self, shape: tuple[int, ...] = (), data: AbstractDataset | None = None) -> nn.Module:
        """Module from raw outputs ``(sample, n_parameters · channel, …)`` to a likelihood distribution.

        :param shape: (default: any) shape of one observation, for heads with a weight for each value.
        :param data: (default None: weights will be read) what is trained on, for heads that start from it.
        """

    def encoder_input(self, x: Float[Tensor, "sample *shape"]) -> Float[Tensor, "sample *shape"]:
        """What the encoder sees of observations: mostly they themselves.

        :param x: a batch of observations.
        """
        return x


likelihood = family = open_family(__name__, "likelihood")
