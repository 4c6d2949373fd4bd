"""The convolutional β-VAE network."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch

from oracles import TinyDataset
from polariscope.core.errors import InputError
from polariscope.models.likelihoods import AbstractLikelihood
from polariscope.models.likelihoods.bernoulli import BernoulliLikelihood
from polariscope.models.likelihoods.gaussian import GaussianLikelihood
from polariscope.models.model import Blueprint, Model, read_model
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
@pytest.mark.parametrize("size", [(16, 16), (48, 48), (64, 128), (16, 80), (28, 28), (17, 31), (63, 64)])
@pytest.mark.parametrize("kernel34", [2, 4])
def test_any_channel_count_and_any_size_from_16_pixels(
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
        ((3, 64, 15), r"at least 16 × 16 pixels, got 64 × 15; resize the images or use net='mlp'"),
        ((1, 4, 4), r"at least 16 × 16 pixels, got 4 × 4; resize the images or use net='mlp'"),
        ((100,), r"net 'conv' requires images, got flat rows of 100 features; use net='mlp'"),
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


def same_weights(framed: Model, whole: Model) -> None:
    """Copy the weights of one model to another with the same layers, whatever they are called."""
    with torch.no_grad():
        for ours, theirs in zip(framed.parameters(), whole.parameters(), strict=True):
            theirs.copy_(ours)


@pytest.mark.parametrize("shape", [(1, 28, 28), (3, 19, 46)])
def test_a_framed_image_is_the_larger_image_with_its_border_repeated(shape: tuple[int, int, int]) -> None:
    framed = conv_model(shape).double()
    height, width = (16 * -(-side // 16) for side in shape[1:])
    whole = conv_model((shape[0], height, width)).double()
    same_weights(framed, whole)
    x = torch.rand(2, *shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    top, left = (height - shape[1]) // 2, (width - shape[2]) // 2
    rows = (torch.arange(height) - top).clamp(0, shape[1] - 1)
    columns = (torch.arange(width) - left).clamp(0, shape[2] - 1)
    larger = x[:, :, rows][:, :, :, columns]
    torch.testing.assert_close(framed.encode(x).mean, whole.encode(larger).mean)
    z = framed.encode(x).mean
    inner = whole.decode(z).mean[:, :, top : top + shape[1], left : left + shape[2]]
    torch.testing.assert_close(framed.decode(z).mean, inner)


def test_the_likelihood_sees_the_real_pixels_only() -> None:
    # A last convolution of weight 0 makes every pixel's logit its bias 0: log ½ for each of 28 · 28, no more.
    model = conv_model((1, 28, 28))
    with torch.no_grad():
        model.decoder.trunk.layers[-1][0].weight.zero_()
    x = torch.zeros(2, 1, 28, 28)
    log_density = model.decode(torch.zeros(2, 10)).log_density(x)
    torch.testing.assert_close(log_density, torch.full((2,), 28 * 28 * math.log(0.5)))


def test_cropped_pixels_have_no_gradient() -> None:
    model = conv_model((1, 28, 28))
    kept: list[torch.Tensor] = []
    model.decoder.trunk.layers[-1][0].register_forward_hook(lambda *given: kept.append(given[2]))
    likelihood = model.decode(torch.ones(2, 10))
    (raw,) = kept
    (gradient,) = torch.autograd.grad(-likelihood.log_density(torch.zeros(2, 1, 28, 28)).sum(), raw)
    assert gradient.shape == (2, 1, 32, 32)
    assert (gradient[:, :, 2:30, 2:30] != 0).all()
    assert torch.count_nonzero(gradient) == 2 * 28 * 28


def test_sizes_divisible_by_16_have_the_layers_and_names_of_before() -> None:
    names = list(conv_model((1, 32, 48)).state_dict())
    assert names[:2] == ["encoder.trunk.layers.0.0.weight", "encoder.trunk.layers.0.0.bias"]
    assert "decoder.trunk.layers.5.weight" in names


def test_a_framed_model_is_read_again_as_it_was(tmp_path: Path) -> None:
    model = conv_model((2, 20, 33))
    model.save(tmp_path / "model.safetensors")
    assert read_model(tmp_path / "model.safetensors").digest == model.digest
