"""Protocol of models for all analyses: encode to a posterior, decode to a likelihood, and return activations.

:class:`~polariscope.models.model.Model` implements it, and :func:`polariscope.wrap` adapts models of other libraries
to it.
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
    """A model that encodes and optionally decodes. All analyses use the results of these two methods."""

    prior: AbstractPriorModule
    """p(z), the distribution of a passive latent."""
    folder: Path | None = None
    """Folder of the run it belongs to, in which results are cached."""
    step: int | None = None
    """Number of training steps, if known."""
    units: tuple[Mapping[str, object], ...] = ()
    """Records of the variants that rescaled its training data; later data are rescaled with them, too."""
    n_auxiliary: int = 0
    """Width of the auxiliary variable u that encoder and prior receive besides x; 0 if there is none."""
    has_density: bool = True
    """If True, q(z|x) has a density, and therefore a KL to the prior; a point mass has none."""
    has_exact_variance: bool = False
    """If True, its variance is certainly a variance; that of other libraries might be a logarithm or a root."""
    is_diagonal: bool = True
    """If True, latents are independent given x."""
    needs_counts: bool = False
    """If True, observations must be non-negative integers."""

    @property
    @abc.abstractmethod
    def shape(self) -> tuple[int, ...]:
        """Shape of one observation."""

    @property
    @abc.abstractmethod
    def n_latents(self) -> int:
        """Number of latent variables."""

    @property
    def code_shape(self) -> tuple[int, ...]:
        """Shape of one code, with the channel first: (channel, height, width) for a convolutional encoder."""
        return (self.n_latents,)

    @property
    @abc.abstractmethod
    def has_decoder(self) -> bool:
        """True if there is a decoder."""

    @property
    @abc.abstractmethod
    def device(self) -> torch.device:
        """Device of its weights."""

    @property
    @abc.abstractmethod
    def dtype(self) -> torch.dtype:
        """Type of its weights."""

    @property
    @abc.abstractmethod
    def digest(self) -> str:
        """Hash of the architecture and the weights: models with equal digests compute equal functions."""

    @abc.abstractmethod
    def encode(
        self, x: Float[Tensor, "sample *shape"], auxiliary: Float[Tensor, "sample auxiliary"] | None = None
    ) -> AbstractPosteriorDistribution:
        """Return q(z|x), or q(z|x, u) with an auxiliary variable.

        :param x: a batch of observations.
        :param auxiliary: (default None) the auxiliary variable u of each, for models that have one.
        """

    @abc.abstractmethod
    def decode(self, z: Float[Tensor, "sample latent"]) -> AbstractLikelihoodDistribution:
        """Return p(x|z) for a batch of latents.

        :param z: a batch of latents.
        """

    @abc.abstractmethod
    def activations(
        self,
        x: Float[Tensor, "sample *shape"],
        noise: Float[Tensor, "sample latent"],
        auxiliary: Float[Tensor, "sample auxiliary"] | None = None,
    ) -> Iterator[tuple[str, Float[Tensor, "sample ..."]]]:
        """Yield name and activation of every layer in network order.

        The names are ``input``, ``encoder/…``, ``mean``, ``variance``, ``sampled`` and ``decoder/…``. The sampled layer
        is the posterior at ``noise``.

        :param x: a batch of observations.
        :param noise: standard normal noise, which determines the draw of the sampled layer.
        :param auxiliary: (default None) the auxiliary variable u of each, for models that have one.
        """

    def place(self, x: Float[Tensor, "sample *shape"]) -> Float[Tensor, "sample *shape"]:
        """Move a batch to the model's device and type.

        :param x: a batch of observations.
        """
        return x.to(device=self.device, dtype=self.dtype)


if TYPE_CHECKING:
    ModelLike: TypeAlias = AbstractModel | nn.Module | Callable[..., object]
    """A model of this package, a wrapped model, a PyTorch module, or a function that encodes."""
    WholeModel: TypeAlias = AbstractModel
    """A model with an encoder and a decoder."""
    DeviceLike: TypeAlias = str | torch.device
    """A device by name ("auto", "cpu", "cuda", "mps") or as a PyTorch object."""
else:
    # Other objects are refused with a message that names the remedy, so they must reach the function.
    ModelLike = WholeModel = DeviceLike = object
