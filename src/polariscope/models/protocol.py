"""What analyses ask of a model: encode to a posterior, decode to a likelihood, and show its layers.

Ours implement it (:class:`~polariscope.models.model.Model`), and those of other libraries are wrapped into it
(:func:`polariscope.wrap`).
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor, nn

from polariscope.models.likelihoods import AbstractLikelihoodDistribution
from polariscope.models.posteriors import AbstractPosteriorDistribution
from polariscope.models.priors import AbstractPriorModule


class AbstractModel(nn.Module, abc.ABC):
    """A model that encodes and perhaps decodes. Everything after it works on what these return."""

    prior: AbstractPriorModule
    """p(z): what a passive latent looks like."""
    folder: Path | None = None
    """The run it belongs to, where what is measured of it is stored."""
    step: int | None = None
    """How long it was trained, where that is known."""
    units: tuple[Mapping[str, object], ...] = ()
    """Records of the variants that put its training data into other units; what it is shown later needs them too."""
    n_auxiliary: int = 0
    """Width of the auxiliary variable u that encoder and prior see beside x; 0: there is none."""
    has_density: bool = True
    """Whether q(z|x) has a density, and so a KL to the prior; a point has none."""
    knows_its_variance: bool = False
    """Whether what it calls a variance is one for sure; outputs of other libraries may be a logarithm or a root."""
    is_diagonal: bool = True
    """Whether latents are independent given x."""
    needs_counts: bool = False
    """Whether observations must be whole numbers from 0."""

    @property
    @abc.abstractmethod
    def shape(self) -> tuple[int, ...]:
        """Shape of one observation."""

    @property
    @abc.abstractmethod
    def n_latents(self) -> int:
        """Number of latent variables."""

    @property
    @abc.abstractmethod
    def has_decoder(self) -> bool:
        """Whether there is a decoder."""

    @property
    @abc.abstractmethod
    def device(self) -> torch.device:
        """Where its weights are."""

    @property
    @abc.abstractmethod
    def dtype(self) -> torch.dtype:
        """Type of its weights."""

    @property
    @abc.abstractmethod
    def digest(self) -> str:
        """Hash of the architecture and the weights: equal digests, equal functions."""

    @abc.abstractmethod
    def encode(
        self, x: Float[Tensor, "sample *shape"], auxiliary: Float[Tensor, "sample auxiliary"] | None = None
    ) -> AbstractPosteriorDistribution:
        """q(z|x), or q(z|x, u) with an auxiliary variable.

        :param x: a batch of observations.
        :param auxiliary: (default None) the auxiliary variable u of each, for models that have one.
        """

    @abc.abstractmethod
    def decode(self, z: Float[Tensor, "sample latent"]) -> AbstractLikelihoodDistribution:
        """p(x|z) for a batch of latents.

        :param z: a batch of latents.
        """

    @abc.abstractmethod
    def activations(
        self,
        x: Float[Tensor, "sample *shape"],
        noise: Float[Tensor, "sample latent"],
        auxiliary: Float[Tensor, "sample auxiliary"] | None = None,
    ) -> Iterator[tuple[str, Float[Tensor, "sample ..."]]]:
        """Name and activation of every layer in network order: ``input``, ``encoder/…``, ``mean``, ``variance``,
        ``sampled``, ``decoder/…``; the sampled layer is the posterior at ``noise``.

        :param x: a batch of observations.
        :param noise: standard normal noise, which decides the draw of the sampled layer.
        :param auxiliary: (default None) the auxiliary variable u of each, for models that have one.
        """

    def place(self, x: Float[Tensor, "sample *shape"]) -> Float[Tensor, "sample *shape"]:
        """A batch on the model's device and in its type.

        :param x: a batch of observations.
        """
        return x.to(device=self.device, dtype=self.dtype)


if TYPE_CHECKING:
    ModelLike: TypeAlias = AbstractModel | nn.Module | Callable[..., object]
    """A model of ours, a wrapped one, a module of PyTorch, or a function that encodes."""
    WholeModel: TypeAlias = AbstractModel
    """A model with an encoder and a decoder."""
    DeviceLike: TypeAlias = str | torch.device
    """A device by name ("auto", "cpu", "cuda", "mps") or as PyTorch has it."""
else:
    # Other objects are refused with a message that names the remedy, so they must reach the function.
    ModelLike = WholeModel = DeviceLike = object
