"""Layers that normalise activations or weights: batch norm and spectral norm.

Both have state without gradient that follows the training: running moments, and singular vectors. Computing a loss
does not change this state, so a loss can be computed repeatedly. :meth:`AbstractNormalisation.advance` updates it once
per step.
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
"""Constant added to the variances of batch norm."""
MOMENTUM = 0.1
"""Weight of a batch's moments in the running ones."""
ITERATIONS = 5
"""Iterations of the power method per training step."""


class AbstractNormalisation(nn.Module, abc.ABC):
    """A layer with state that follows the training without a gradient."""

    @abc.abstractmethod
    def advance(self) -> None:
        """Update the state after a training step."""


class BatchNorm(AbstractNormalisation):
    r"""Normalisation of every unit, or channel, to mean b and variance g² over the batch.

    .. math:: y_c = g_c \, \frac{x_c - m_c}{\sqrt{v_c + \epsilon}} + b_c

    In training mode m and v are the mean and the variance over the batch and, for images, over the pixels. In
    evaluation mode they are running averages of those, so an output does not depend on the rest of its batch. Each step
    moves the averages a tenth of the way. The running variances have n − 1 in the denominator.

    Reference: Ioffe & Szegedy, Batch Normalization (ioffe2015).

    :param n_units: number of units or channels, the second axis of the input
    """

    mean: Tensor
    variance: Tensor
    batch_mean: Tensor
    batch_variance: Tensor

    def __init__(self, n_units: int) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.ones(n_units)), nn.Parameter(torch.zeros(n_units))
        # The moments of a single batch are not part of a model file.
        for prefix, is_persistent in (("", True), ("batch_", False)):
            self.register_buffer(f"{prefix}mean", torch.zeros(n_units), persistent=is_persistent)
            self.register_buffer(f"{prefix}variance", torch.ones(n_units), persistent=is_persistent)

    def forward(self, x: Float[Tensor, "sample unit *pixels"]) -> Float[Tensor, "sample unit *pixels"]:
        affine = (self.weight, self.bias)
        if not self.training:
            return functional.batch_norm(x, self.mean, self.variance, *affine, eps=EPSILON)
        # With a momentum of 1, PyTorch writes the moments of this batch into the tensors that it receives.
        return functional.batch_norm(
            x, self.batch_mean, self.batch_variance, *affine, training=True, momentum=1.0, eps=EPSILON
        )

    @torch.no_grad()
    def advance(self) -> None:
        self.mean.lerp_(self.batch_mean, MOMENTUM)
        self.variance.lerp_(self.batch_variance, MOMENTUM)


class SpectralNorm(AbstractNormalisation):
    r"""A layer with its weights divided by their largest singular value σ.

    .. math:: \bar W = W / \sigma, \qquad \sigma = u^\top W v

    with W as a matrix of outputs by all inputs, and its leading singular vectors u, v. They are exact when the layer is
    created. Afterwards, five steps of the power method per training step, v ∝ Wᵀu and u ∝ Wv, keep them close. The
    gradient includes σ but treats u and v as constants; at the exact vectors this is the derivative of σ.

    Reference: Miyato et al., Spectral Normalization for Generative Adversarial Networks (miyato2018). Differences: the
    exact start instead of random vectors, and five steps instead of one for each use of the layer. With large learning
    rates and new weights, a single step lags behind by a third.

    :param layer: an affine map with initialised weights
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
        """σ, from the two vectors."""
        return self.left @ (self.layer.weight.flatten(1) @ self.right)

    def forward(self, x: Float[Tensor, "sample ..."]) -> Float[Tensor, "sample ..."]:
        weight = self.layer.weight / self.norm
        # The layer keeps its own weights, which receive the gradient through the quotient.
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
    """Return the left and right singular vectors of the largest singular value, both of length 1.

    They are computed from the smaller of the two products of the matrix with itself. For a layer of 1200 units on
    images, this is eight times faster than computing all singular vectors.

    :param matrix: any nonzero matrix
    """
    # The smaller product has fewer eigenvectors.
    if len(matrix) > matrix.shape[1]:
        right, left = leading_vectors(matrix.T)
        return left, right
    # eigh returns ascending order, so the last one is the leading vector.
    left = torch.linalg.eigh(matrix @ matrix.T).eigenvectors[:, -1]
    return left, functional.normalize(matrix.T @ left, dim=0)


def add_batch_norm(trunk: Trunk) -> None:
    """Add batch norm after the non-linearity of every layer but the last.

    :param trunk: changed in place; each hidden layer is an affine map and a non-linearity
    """
    # A copy of the list, because the layers are replaced.
    for number, layer in enumerate(list(trunk.layers)[:-1]):
        parts: list[Any] = list(layer.children())
        if len(parts) < 2 or not isinstance(parts[0], nn.Linear | nn.Conv2d | nn.ConvTranspose2d):
            raise InputError(
                problem="batch norm requires hidden layers of an affine map and a non-linearity",
                got=f"{type(layer).__name__} as layer {number + 1}",
                remedy="use another net",
            )
        n_units = parts[0].out_features if isinstance(parts[0], nn.Linear) else parts[0].out_channels
        trunk.layers[number] = nn.Sequential(*parts[:2], BatchNorm(n_units), *parts[2:])


def add_spectral_norm(module: nn.Module) -> None:
    """Divide the weights of every affine map within a module by their largest singular value.

    :param module: changed in place; its weights are already initialised
    """
    for name, part in list(module.named_children()):
        if isinstance(part, nn.Linear | nn.Conv2d):
            setattr(module, name, SpectralNorm(part))
        else:
            add_spectral_norm(part)


def normalisations(*networks: nn.Module | None) -> list[AbstractNormalisation]:
    """Return all layers of the networks that have to advance after a training step.

    :param networks: modules; None is skipped
    """
    return [
        layer
        for network in networks
        if network is not None
        for layer in network.modules()
        if isinstance(layer, AbstractNormalisation)
    ]
