"""The convolutional β-VAE network."""

from __future__ import annotations

import pytest
import torch

from oracles import TinyDataset
from polariscope.core.errors import InputError
from polariscope.models.likelihoods import AbstractLikelihood
from polariscope.models.likelihoods.bernoulli import BernoulliLikelihood
from polariscope.models.likelihoods.gaussian import GaussianLikelihood
from polariscope.models.model import Blueprint, Model
from polariscope.models.nets.conv import ConvNet
from polariscope.models.posteriors.diagonal import DiagonalPosterior
from polariscope.models.priors.isotropic import IsotropicPrior


def conv_model(
    shape: tuple[int, ...] = (1, 64, 64),
    net: ConvNet | None = None,
    likelihood: AbstractLikelihood | None = None,
    n_latents: int = 10,
) -> Model:
    return Blueprint(
        net or ConvNet(),
        DiagonalPosterior(),
        IsotropicPrior(),
        likelihood or BernoulliLikelihood(),
        n_latents,
        shape,
    ).build(seed=0)


def count(module: torch.nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


@pytest.mark.parametrize(
    ("channels", "kernel34", "encoder", "decoder"),
    [(1, 2, 309_204, 381_313), (1, 4, 382_932, 381_313), (3, 2, 310_228, 382_339), (3, 4, 383_956, 382_339)],
)
def test_parameter_counts_are_the_published_ones(
    channels: int, kernel34: int, encoder: int, decoder: int
) -> None:
    model = conv_model((channels, 64, 64), ConvNet(kernel34=kernel34))  # type: ignore[arg-type]
    assert count(model.encoder) == encoder
    assert count(model.decoder) == decoder
    assert count(model) == encoder + decoder


@pytest.mark.parametrize("channels", [1, 3, 5])
@pytest.mark.parametrize("size", [(16, 16), (32, 32), (48, 48), (64, 64), (64, 128), (16, 80)])
@pytest.mark.parametrize("kernel34", [2, 4])
def test_any_channel_count_and_any_size_divisible_by_16(
    channels: int, size: tuple[int, int], kernel34: int
) -> None:
    shape = (channels, *size)
    model = conv_model(shape, ConvNet(kernel34=kernel34), n_latents=3)  # type: ignore[arg-type]
    with torch.no_grad():
        q = model.encode(torch.from_numpy(TinyDataset(shape, n_samples=2).values([0, 1])))
        assert q.mean.shape == q.log_variance.shape == (2, 3)
        assert model.decode(q.mean).mean.shape == (2, *shape)


def test_two_numbers_per_value_double_the_channels_of_the_output() -> None:
    model = conv_model((3, 32, 16), likelihood=GaussianLikelihood(learned="per-value"))
    raw = model.decoder.trunk(torch.zeros(2, 10))
    assert raw.shape == (2, 6, 32, 16)
    assert model.decode(torch.zeros(2, 10)).mean.shape == (2, 3, 32, 16)
    assert model.decoder.trunk.out_features == 6 * 32 * 16


@pytest.mark.parametrize(
    ("shape", "words"),
    [
        ((1, 28, 28), r"got 28 × 28; resize the images to 32 × 32 or use net='mlp'"),
        ((3, 64, 63), r"got 64 × 63; resize the images to 64 × 64 or use net='mlp'"),
        ((1, 4, 4), r"got 4 × 4; resize the images to 16 × 16 or use net='mlp'"),
        ((100,), r"net 'conv' needs images, got flat rows of 100 features; use net='mlp'"),
    ],
)
def test_other_shapes_are_refused_with_a_remedy(shape: tuple[int, ...], words: str) -> None:
    with pytest.raises(InputError, match=words):
        conv_model(shape)


def test_layers_shrink_and_grow_as_in_the_table() -> None:
    model = conv_model()
    x = torch.zeros(2, 1, 64, 64)
    shapes = {
        name: tuple(layer.shape[1:])
        for name, layer in model.activations(x, torch.zeros(len(x), model.n_latents))
    }
    assert shapes == {
        "input": (1, 64, 64),
        "encoder/1": (32, 32, 32),
        "encoder/2": (32, 16, 16),
        "encoder/3": (64, 8, 8),
        "encoder/4": (64, 4, 4),
        "encoder/5": (1024,),
        "encoder/6": (256,),
        "mean": (10,),
        "variance": (10,),
        "sampled": (10,),
        "decoder/1": (256,),
        "decoder/2": (64, 4, 4),
        "decoder/3": (64, 8, 8),
        "decoder/4": (32, 16, 16),
        "decoder/5": (32, 32, 32),
        "decoder/6": (1, 64, 64),
    }


def test_the_first_layer_is_a_strided_convolution_of_the_padded_image() -> None:
    model = conv_model((1, 16, 16)).double()
    x = torch.rand(1, 1, 16, 16, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    weight, bias = model.encoder.trunk.layers[0][0].weight, model.encoder.trunk.layers[0][0].bias
    padded = torch.nn.functional.pad(x, (1, 1, 1, 1))[0, 0]
    row, column = 3, 5
    window = padded[2 * row : 2 * row + 4, 2 * column : 2 * column + 4]
    expected = torch.relu((weight[:, 0] * window).sum((1, 2)) + bias)
    torch.testing.assert_close(model.encoder.trunk.layers[0](x)[0, :, row, column], expected)


def test_logits_may_be_negative() -> None:
    # The printed ReLU on the last layer would forbid a probability below ½.
    raw = conv_model().decoder.trunk(torch.randn(8, 10, generator=torch.Generator().manual_seed(0)))
    assert raw.min() < 0 < raw.max()
