"""The last layer of a convolutional decoder, with one to three channels."""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import pad

MAX_CHANNELS = 3
"""Maximum number of output channels at which a matrix product is faster than PyTorch's transposed convolution."""


def spread(
    x: Float[Tensor, "sample channel height width"],
    weight: Float[Tensor, "channel out 4 4"],
    bias: Float[Tensor, " out"],
) -> Float[Tensor, "sample out double_height double_width"]:
    r"""Compute a transposed convolution, 4 × 4, stride 2, padding 1, as one product and a sum of overlapping parts.

    Each input contributes to a square of 4 × 4 outputs, shifted by two for the next input, so every output is the sum
    of two by two contributions:

    .. math:: y_{2i+r} = \sum_{a \in \{0, 1\}} W_{2a+r}\, x_{i-a}

    along either side, before one row and column are removed on each side.

    :param x: features; fastest if channels are last in memory.
    :param weight: one square for each pair of channels.
    :param bias: bias of each output channel.
    """
    sample, channel, height, width = x.shape
    out = weight.shape[1]
    rows = x.permute(0, 2, 3, 1).reshape(-1, channel)
    # Rows 2a + r and columns 2b + s of a square, sorted by a, b, then r, s.
    squares = weight.reshape(channel, out, 2, 2, 2, 2).permute(0, 2, 4, 1, 3, 5).reshape(channel, -1)
    written = (rows @ squares).reshape(sample, height, width, 2, 2, 4 * out)
    # The contributions with a = 0 belong to row i and those with a = 1 to the next one, so they are padded on
    # opposite sides.
    down = pad(written[:, :, :, 0], (0, 0, 0, 0, 0, 0, 0, 1)) + pad(
        written[:, :, :, 1], (0, 0, 0, 0, 0, 0, 1, 0)
    )
    across = pad(down[:, :, :, 0], (0, 0, 0, 1)) + pad(down[:, :, :, 1], (0, 0, 1, 0))
    image = across.reshape(sample, height + 1, width + 1, out, 2, 2).permute(0, 3, 1, 4, 2, 5)
    image = image.reshape(sample, out, 2 * height + 2, 2 * width + 2)
    # The padding of the layer removes one row and column on each side.
    return image[:, :, 1:-1, 1:-1] + bias[:, None, None]


class _Spread(torch.autograd.Function):
    """:func:`spread` with the gradient of PyTorch, which is fast."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight)
        return spread(x, weight, bias)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        # After the weights: sizes of the bias, stride, padding, dilation, transposed, output padding, groups,
        # gradients needed.
        return torch.ops.aten.convolution_backward(
            gradients[0],
            x,
            weight,
            [weight.shape[1]],
            [2, 2],
            [1, 1],
            [1, 1],
            True,
            [0, 0],
            1,
            ctx.needs_input_grad,
        )


class ThinConvTranspose2d(nn.ConvTranspose2d):
    """A transposed convolution, 4 × 4 with stride 2 and padding 1, to a few channels.

    It computes the same function as PyTorch's layer, up to rounding, with the same weights. On the CPU, PyTorch
    computes a single output channel as slowly as sixteen. In training mode there are gradients, and gradients of these,
    but no ``torch.func.jvp`` and ``vmap``.

    :param in_channels: number of channels of the features.
    :param out_channels: number of channels of the images.
    """

    bias: Tensor

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__(in_channels, out_channels, 4, stride=2, padding=1)

    def forward(  # type: ignore[override]
        self, x: Float[Tensor, "sample channel height width"]
    ) -> Float[Tensor, "sample out double_height double_width"]:
        if self.out_channels > MAX_CHANNELS or x.device.type != "cpu":
            return super().forward(x)
        # Other derivatives, such as Jacobians, need the product itself.
        if self.training and torch.is_grad_enabled():
            return _Spread.apply(x, self.weight, self.bias)
        return spread(x, self.weight, self.bias)
