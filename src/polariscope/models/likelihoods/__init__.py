"""Likelihoods p(x|z): distributions of an observation, from the decoder's output."""

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
    """E[x|z], the decoder's reconstruction."""

    @abc.abstractmethod
    def log_density(self, x: Float[Tensor, "sample *shape"]) -> Float[Tensor, " sample"]:
        """Return log p(x|z) in nats, summed over pixels and channels."""

    @abc.abstractmethod
    def sample(self, generator: torch.Generator) -> Float[Tensor, "sample *shape"]:
        """Draw x ~ p(x|z)."""

    def like(self, x: Float[Tensor, "sample *shape"]) -> AbstractLikelihoodDistribution:
        """Return the distribution given the size of each observation, for likelihoods of counts.

        ``log_density`` uses the sizes of its argument. Without sizes, mean and draws have the usual size.

        :param x: observations, one for each latent.
        """
        return self

    def at(self, columns: Int[Tensor, " column"]) -> AbstractLikelihoodDistribution | None:
        """Return the distribution of some values of flattened observations; None if residuals cannot be checked.

        A distribution that is not None has a ``variance``.

        :param columns: indices of the values.
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
        :param noise: uniform numbers that randomise within the steps of a discrete F.
        """
        return None


@dataclasses.dataclass(frozen=True)
class Residuals:
    """Sums over residuals, to which the parameter of a rival likelihood is fitted."""

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
    """A recipe for the head that converts the decoder's raw output to p(x|z)."""

    needs_unit_interval: bool = False
    needs_counts: bool = False
    """If True, every value must be a non-negative integer."""

    @property
    def scale_in_words(self) -> str:
        """The variance of a value and whether it is learned; empty for a likelihood without one."""
        return ""

    @classmethod
    def options_for(
        cls,
        data: AbstractDataset,  # noqa: ARG003
        options: Mapping[str, Any],
    ) -> dict[str, Any]:
        """Complete the options with those that the data determine, as plain numbers.

        This is called when training is planned, for objectives with a rate. The result is recorded, so a model can be
        loaded without the data.

        :param data: the training data.
        :param options: the checked options of the caller.
        """
        return dict(options)

    def gamma_of(self, head: nn.Module) -> float | None:
        """Return the current variance γ of every value if it is one number, otherwise None.

        :param head: the result of :meth:`head`.
        """
        return None

    @property
    def learns_one_variance(self) -> bool:
        """True if one variance for all values is learned, which then depends on the residual of the latents."""
        return False

    @property
    def fixed_variance(self) -> float | None:
        """The variance of every value if it is one fixed number, otherwise None."""
        return None

    @property
    def rival(self) -> str:
        """Name of a likelihood that fits better if the residuals do not match this one; empty if there is none."""
        return ""

    @classmethod
    def fitted_to(cls, mean: Float[Tensor, "sample value"], residuals: Residuals) -> Fitted | None:  # noqa: ARG003
        """Return the likelihood with these means and one parameter fitted to residuals; None if not implemented.

        :param mean: means of values from another model, clipped to the range of this likelihood.
        :param residuals: sums over all residuals.
        """
        return None

    @property
    @abc.abstractmethod
    def n_parameters(self) -> int:
        """Number of raw outputs per value of the observation."""

    @abc.abstractmethod
    def head(self, shape: tuple[int, ...] = (), data: AbstractDataset | None = None) -> nn.Module:
        """Build a module from raw outputs ``(sample, n_parameters · channel, …)`` to a likelihood distribution.

        :param shape: (default: any) shape of one observation, for heads with a weight for each value.
        :param data: (default None: weights will be loaded) training data, for heads that are initialised from it.
        """

    def encoder_input(self, x: Float[Tensor, "sample *shape"]) -> Float[Tensor, "sample *shape"]:
        """Return the encoder's input for observations, by default the observations themselves.

        :param x: a batch of observations.
        """
        return x


likelihood = family = open_family(__name__, "likelihood")
