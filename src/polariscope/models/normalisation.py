"""Layers that keep activations or weights at a fixed scale: batch norm and spectral norm.

Both carry numbers that follow the training and have no gradient: running moments, and singular vectors. Taking a loss
changes none of them, so a loss can be taken again, or only looked at. They move once a step, by
:meth:`AbstractNormalisation.advance`.
"""

from __future__ import annotations

import abc
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from polariscope.core.errors import InputError
from polariscope.models.nets import Trunk

EPSILON = 1e-5
"""Added to the variances of batch norm."""
MOMENTUM = 0.1
"""Share of a batch's moments in the running ones."""
ITERATIONS = 5
"""Steps of the power method for each step of training."""


class AbstractNormalisation(nn.Module, abc.ABC):
    """A layer with numbers that follow the training without a gradient."""

    @abc.abstractmethod
    def advance(self) -> None:
        """Let these numbers follow the step of training that was just made."""


class BatchNorm(AbstractNormalisation):
    r"""Every unit, or channel, at mean b and variance g² over the batch.

    .. math:: y_c = g_c \, \frac{x_c - m_c}{\sqrt{v_c + \epsilon}} + b_c

    In training mode m and v are the mean and the variance over the batch and, for images, over the pixels. In
    evaluation mode they are running averages of those, so an output does not depend on the rest of its batch. Each step
    moves the averages a tenth of the way; their variances have n − 1 in the denominator.

    Reference: Ioffe & Szegedy, Batch Normalization (ioffe2015).

    :param n_units: units or channels, the second axis of the input
    """

    mean: Tensor
    variance: Tensor
    batch_mean: Tensor
    batch_variance: Tensor

    def __init__(self, n_units: int) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.ones(n_units)), nn.Parameter(torch.zeros(n_units))
        for front, is_kept in (("", True), ("batch_", False)):
            self.register_buffer(f"{front}mean", torch.zeros(n_units), persistent=is_kept)
            self.register_buffer(f"{front}variance", torch.ones(n_units), persistent=is_kept)

    def forward(self, x: Float[Tensor, "sample unit *pixels"]) -> Float[Tensor, "sample unit *pixels"]:
        trained = (self.weight, self.bias)
        if not self.training:
            return functional.batch_norm(x, self.mean, self.variance, *trained, eps=EPSILON)
        # With a momentum of 1 PyTorch leaves the moments of this very batch in the tensors it is given.
        return functional.batch_norm(
            x, self.batch_mean, self.batch_variance, *trained, training=True, momentum=1.0, eps=EPSILON
        )

    @torch.no_grad()
    def advance(self) -> None:
        self.mean.lerp_(self.batch_mean, MOMENTUM)
        self.variance.lerp_(self.batch_variance, MOMENTUM)


class SpectralNorm(AbstractNormalisation):
    r"""A layer with its weights divided by their largest singular value σ.

    .. math:: \bar W = W / \sigma, \qquad \sigma = u^\top W v

    with W as a matrix of outputs by everything else, and u, v its leading singular vectors. They are exact when the
    layer is made. Afterwards five steps of the power method for each step of training, v ∝ Wᵀu and u ∝ Wv, keep them
    close. σ is part of the gradient, u and v are constants: at the exact vectors that is the derivative of σ.

    Reference: Miyato et al., Spectral Normalization for Generative Adversarial Networks (miyato2018). Ours: the exact
    start, where they take random vectors, and five steps, where they take one for each use of the layer: while large
    rates turn fresh weights, one lags behind by a third.

    :param layer: an affine map, whose weights are already drawn
    """

    left: Tensor
    right: Tensor

    def __init__(self, layer: nn.Linear | nn.Conv2d) -> None:
        super().__init__()
        self.layer = layer
        weight = layer.weight.detach()
        left, right = leading_vectors(weight.flatten(1).double())
        self.register_buffer("left", left.to(weight))
        self.register_buffer("right", right.to(weight))

    @property
    def norm(self) -> Float[Tensor, ""]:
        """σ, as the two vectors give it."""
        return self.left @ (self.layer.weight.flatten(1) @ self.right)

    def forward(self, x: Float[Tensor, "sample ..."]) -> Float[Tensor, "sample ..."]:
        weight = self.layer.weight / self.norm
        output: Tensor = torch.func.functional_call(self.layer, {"weight": weight}, (x,))
        return output

    @torch.no_grad()
    def advance(self) -> None:
        matrix = self.layer.weight.flatten(1)
        for _ in range(ITERATIONS):
            self.right.copy_(functional.normalize(matrix.T @ self.left, dim=0))
            self.left.copy_(functional.normalize(matrix @ self.right, dim=0))


def leading_vectors(
    matrix: Float[Tensor, "row column"],
) -> tuple[Float[Tensor, " row"], Float[Tensor, " column"]]:
    """The left and right singular vectors of the largest singular value, both of length 1.

    From the smaller of the two products of the matrix with itself: eight times faster than all singular vectors of a
    layer of 1200 units on images.

    :param matrix: any but 0
    """
    if len(matrix) > matrix.shape[1]:
        right, left = leading_vectors(matrix.T)
        return left, right
    left = torch.linalg.eigh(matrix @ matrix.T).eigenvectors[:, -1]
    return left, functional.normalize(matrix.T @ left, dim=0)


def add_batch_norm(trunk: Trunk) -> None:
    """Put batch norm behind the non-linearity of every layer but the last.

    :param trunk: changed in place; its hidden layers are an affine map and a non-linearity, each
    """
    for number, layer in enumerate(list(trunk.layers)[:-1]):
        parts: list[Any] = list(layer.children())
        if len(parts) < 2 or not isinstance(parts[0], nn.Linear | nn.Conv2d | nn.ConvTranspose2d):
            raise InputError(
                problem="batch norm needs hidden layers of an affine map and a non-linearity",
                got=f"{type(layer).__name__} as layer {number + 1}",
                remedy="use another net",
            )
        n_units = parts[0].out_features if isinstance(parts[0], nn.Linear) else parts[0].out_channels
        trunk.layers[number] = nn.Sequential(*parts[:2], BatchNorm(n_units), *parts[2:])


def add_spectral_norm(module: nn.Module) -> None:
    """Divide the weights of every affine map within a module by their largest singular value.

    :param module: changed in place; its weights are already drawn
    """
    for name, part in list(module.named_children()):
        if isinstance(part, nn.Linear | nn.Conv2d):
            setattr(module, name, SpectralNorm(part))
        else:
            add_spectral_norm(part)


def normalisations(*networks: nn.Module | None) -> list[AbstractNormalisation]:
    """All layers within the networks that have to advance after a step of training.

    :param networks: modules; None is passed over
    """
    return [
        layer
        for network in networks
        if network is not None
        for layer in network.modules()
        if isinstance(layer, AbstractNormalisation)
    ]
