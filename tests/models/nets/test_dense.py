"""Fully connected and linear networks."""

from __future__ import annotations

import itertools
import math

import pytest
import torch

from polariscope.core.errors import InputError
from polariscope.models.nets import AbstractNet
from polariscope.models.nets.fc import FcNet
from polariscope.models.nets.linear import LinearNet
from polariscope.models.nets.mlp import ACTIVATIONS, MlpNet
from polariscope.models.posteriors.diagonal import DiagonalPosterior


def count(module: torch.nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


def dense(*sizes: int) -> int:
    """Parameters of affine maps between layers of these sizes."""
    return sum((a + 1) * b for a, b in itertools.pairwise(sizes))


def test_fc_has_the_published_number_of_parameters() -> None:
    encoder, decoder = FcNet().encoder((1, 64, 64)), FcNet().decoder(10, (1, 64, 64), 1)
    n_encoder = count(encoder) + count(DiagonalPosterior().head(1200, 10))
    assert n_encoder == dense(4096, 1200, 1200, 20) == 6_381_620  # 6.38 M
    assert count(decoder) == dense(10, 1200, 1200, 1200, 4096) == 7_814_896  # 7.81 M


def test_fc_uses_relu_to_encode_and_tanh_to_decode() -> None:
    kinds = [
        type(layer[1])
        for layer in FcNet(width=3).encoder((4,)).layers
        if isinstance(layer, torch.nn.Sequential)
    ]
    assert kinds == [torch.nn.ReLU] * 2
    layers = FcNet(width=3).decoder(2, (4,), 1).layers
    assert [type(layer[1]) for layer in layers] == [torch.nn.Tanh] * 3 + [torch.nn.Unflatten]


@pytest.mark.parametrize("width", [0, -3])
def test_fc_refuses_a_width_that_is_none(width: int) -> None:
    with pytest.raises(InputError, match="width must be at least 1, got"):
        FcNet(width=width)


def test_mlp_has_the_given_widths() -> None:
    net = MlpNet(encoder_widths=(7, 5), decoder_widths=(3,))
    assert count(net.encoder((2, 4))) == dense(8, 7, 5)
    assert net.encoder((2, 4)).out_features == 5
    assert count(net.decoder(2, (6,), 2)) == dense(2, 3, 12)


def test_mlp_without_hidden_layers_is_linear() -> None:
    empty = MlpNet(encoder_widths=(), decoder_widths=())
    for shape in [(5,), (2, 3, 4)]:
        assert (
            empty.encoder(shape).out_features == LinearNet().encoder(shape).out_features == math.prod(shape)
        )
        assert count(empty.decoder(3, shape, 1)) == count(LinearNet().decoder(3, shape, 1))


@pytest.mark.parametrize("name", sorted(ACTIVATIONS))
def test_mlp_applies_its_activation_to_hidden_layers_only(name: str) -> None:
    net = MlpNet(encoder_widths=(4,), decoder_widths=(4,), activation=name)  # type: ignore[arg-type]
    x = torch.linspace(-2, 2, 6).reshape(2, 3)
    hidden = net.encoder((3,)).double().layers[1]
    torch.testing.assert_close(hidden(x.double()), ACTIVATIONS[name]()(hidden[0](x.double())))
    decoder = net.decoder(3, (2,), 1)
    first, last = decoder.layers
    expected = ACTIVATIONS[name]()(first[0](x)) @ last[0].weight.T + last[0].bias
    torch.testing.assert_close(decoder(x), expected)


@pytest.mark.parametrize("name", ["encoder_widths", "decoder_widths"])
def test_mlp_refuses_widths_that_are_none(name: str) -> None:
    with pytest.raises(
        InputError, match=rf"{name} must be a list of integers, each at least 1, got \(4, 0\)"
    ):
        MlpNet(**{name: (4, 0)})


def test_the_linear_encoder_only_flattens_and_the_decoder_is_affine() -> None:
    encoder, decoder = LinearNet().encoder((2, 3, 4)), LinearNet().decoder(5, (2, 3, 4), 1)
    x = torch.arange(48.0).reshape(2, 2, 3, 4)
    assert torch.equal(encoder(x), x.reshape(2, 24))
    assert count(encoder) == 0
    z, w = torch.randn(2, 3, 5, generator=torch.Generator().manual_seed(0)).double()
    f = decoder.double()
    torch.testing.assert_close(f(z + w) + f(torch.zeros_like(z)), f(z) + f(w))


@pytest.mark.parametrize("net", [FcNet(width=4), MlpNet(), LinearNet()])
@pytest.mark.parametrize("shape", [(5,), (2, 3, 4)])
@pytest.mark.parametrize("n_parameters", [1, 2])
def test_outputs_stack_the_parameters_along_the_first_axis(
    net: AbstractNet, shape: tuple[int, ...], n_parameters: int
) -> None:
    decoder = net.decoder(3, shape, n_parameters)
    assert decoder(torch.zeros(2, 3)).shape == (2, n_parameters * shape[0], *shape[1:])
