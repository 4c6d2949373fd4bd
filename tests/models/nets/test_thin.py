"""The decoder's last layer: PyTorch's transposed convolution, computed another way."""

from __future__ import annotations

import warnings

import pytest
import torch
from torch import nn

from polariscope.models.nets.support.thin import MAX_CHANNELS, ThinConvTranspose2d, spread


def layers(channels: int) -> tuple[ThinConvTranspose2d, nn.ConvTranspose2d, torch.Tensor]:
    random = torch.Generator().manual_seed(0)
    thin = ThinConvTranspose2d(5, channels).double()
    theirs = nn.ConvTranspose2d(5, channels, 4, stride=2, padding=1).double()
    with torch.no_grad():
        for parameter in thin.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=random))
    theirs.load_state_dict(thin.state_dict())
    return thin, theirs, torch.randn(3, 5, 2, 7, generator=random, dtype=torch.float64)


@pytest.mark.parametrize("channels", [1, 2, 3, 6])
@pytest.mark.parametrize("layout", [torch.channels_last, torch.contiguous_format])
@pytest.mark.parametrize("training", [True, False])
def test_outputs_and_gradients_are_those_of_pytorchs_layer(channels, layout, training):
    thin, theirs, x = layers(channels)
    thin.train(training)
    seen = []
    for layer in (thin, theirs):
        given = x.to(memory_format=layout).requires_grad_()
        output = layer(given)
        output.square().sum().backward()
        seen.append([output, given.grad, layer.weight.grad, layer.bias.grad])
    for ours, expected in zip(*seen, strict=True):
        torch.testing.assert_close(ours, expected)


def test_training_and_evaluation_give_the_same_bits():
    thin, _, x = layers(1)
    assert torch.equal(thin.train()(x), thin.eval()(x))


def test_gradients_stop_where_nothing_is_trained():
    thin, _, x = layers(1)
    thin.requires_grad_(False)
    given = x.clone().requires_grad_()
    thin(given).sum().backward()
    assert given.grad is not None
    assert thin.weight.grad is None


def test_derivatives_forward_and_in_batches_are_those_of_a_linear_map():
    thin, _, x = layers(3)
    thin.eval()
    directions = torch.stack([x.flip(0), 2 * x])

    def along(direction: torch.Tensor) -> torch.Tensor:
        return torch.func.jvp(thin, (x,), (direction,))[1]

    with warnings.catch_warnings():  # torch's own forward mode warns about torch.jit when it is first used
        warnings.filterwarnings("ignore", message=".*torch.jit.script", category=DeprecationWarning)
        found = torch.func.vmap(along)(directions)
    without_bias = [spread(direction, thin.weight, torch.zeros_like(thin.bias)) for direction in directions]
    torch.testing.assert_close(found, torch.stack(without_bias))


def test_many_channels_are_left_to_pytorch():
    thin, theirs, x = layers(MAX_CHANNELS + 1)
    assert torch.equal(thin(x), theirs(x))
