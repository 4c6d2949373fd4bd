"""Networks: an encoder trunk and a decoder trunk.

An encoder trunk maps observations to features, from which a posterior head computes a distribution. A decoder trunk
maps latents to raw outputs, from which a likelihood head computes a distribution. Each child of a trunk is one layer
with its non-linearity, so its output is the activation that the literature compares.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Iterator
from typing import ClassVar, Literal, get_args

import torch
from jaxtyping import Float
from torch import Tensor, nn

from polariscope.core.errors import unknown
from polariscope.core.registry import open_family

Initialisation = Literal["glorot", "kaiming", "torch"]


class Trunk(nn.Module):
    """Layers in order; ``forward`` runs them, ``activations`` yields the output of each."""

    def __init__(self, layers: list[nn.Module], out_features: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.out_features = out_features

    def forward(
        self, x: Float[Tensor, "sample *shape"], auxiliary: Float[Tensor, "sample auxiliary"] | None = None
    ) -> Float[Tensor, "sample ..."]:
        for activation in self.activations(x, auxiliary):
            x = activation
        return x

    def activations(
        self, x: Float[Tensor, "sample *shape"], auxiliary: Float[Tensor, "sample auxiliary"] | None = None
    ) -> Iterator[Float[Tensor, "sample ..."]]:
        """Yield the output of each layer. An auxiliary variable is concatenated to the flattened features."""
        for layer in self.layers:
            x = layer(x)
            # Before the flattening layer, features have no flat axis to join.
            if auxiliary is not None and isinstance(layer, nn.Flatten):
                x = torch.cat([x, auxiliary], dim=1)
            yield x


class AbstractNet(abc.ABC):
    """A recipe for the two trunks; its dataclass fields are the architecture's options."""

    sizing_rate: ClassVar[float | None] = None
    """Learning rate for sizing; None if it depends on the data."""

    def check(self, shape: tuple[int, ...]) -> None:  # noqa: B027 (most accept any shape)
        """Raise an error if the architecture does not support the shape of the observations.

        :param shape: shape of one observation.
        """

    @abc.abstractmethod
    def encoder(self, shape: tuple[int, ...], n_auxiliary: int = 0) -> Trunk:
        """Build the trunk from observations of ``shape`` to a flat vector of ``out_features``.

        The layer after the flattening one is wider by ``n_auxiliary``, for an auxiliary variable that is concatenated.

        :param shape: shape of one observation.
        :param n_auxiliary: (default 0) width of the auxiliary variable; 0 if there is none.
        """

    @abc.abstractmethod
    def decoder(self, n_latents: int, shape: tuple[int, ...], n_parameters: int) -> Trunk:
        """Build the trunk from latents to raw outputs of shape ``(n_parameters · channel, …)``.

        :param n_latents: number of latent variables.
        :param shape: shape of one observation.
        :param n_parameters: numbers per value that the likelihood requires (two for a mean and a scale).
        """


def output_layer(n_in: int, shape: tuple[int, ...], n_parameters: int) -> nn.Module:
    """Return an affine map to raw outputs of the observation's shape, without non-linearity."""
    out = (n_parameters * shape[0], *shape[1:])
    return nn.Sequential(nn.Linear(n_in, math.prod(out)), nn.Unflatten(1, out))


def initialise(module: nn.Module, how: Initialisation, generator: torch.Generator) -> None:
    """Draw every weight of ``module`` from ``generator``, in the order of its modules.

    * ``glorot``: uniform on ±√(6 / (fan_in + fan_out)), biases 0. This is the default, as in the TensorFlow layers with
      which the published models (locatello2019, bonheme2023) were trained.
    * ``kaiming``: normal with std √(2 / fan_in), biases 0 (mushom2020).
    * ``torch``: weights and biases uniform on ±1/√fan_in, the default of PyTorch.

    fan_in is inputs · kernel area; for a transposed convolution PyTorch uses outputs · kernel area.
    """
    for layer in module.modules():
        if not isinstance(layer, (nn.Linear, nn.Conv2d, nn.ConvTranspose2d)):
            continue
        if how == "glorot":
            nn.init.xavier_uniform_(layer.weight, generator=generator)
        elif how == "kaiming":
            nn.init.kaiming_normal_(layer.weight, nonlinearity="relu", generator=generator)
        elif how == "torch":
            # With this slope Kaiming's bound √(6/((1 + a²) fan_in)) is 1/√fan_in.
            nn.init.kaiming_uniform_(layer.weight, a=5**0.5, generator=generator)
        else:
            raise unknown("initialisation", how, get_args(Initialisation))
        if layer.bias is not None:
            if how == "torch":
                fan_in, _ = nn.init._calculate_fan_in_and_fan_out(layer.weight)
                nn.init.uniform_(layer.bias, -(fan_in**-0.5), fan_in**-0.5, generator=generator)
            else:
                nn.init.zeros_(layer.bias)


net = family = open_family(__name__, "net")
