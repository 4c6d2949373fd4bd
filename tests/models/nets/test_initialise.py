"""Weights are drawn by formula from a generator that is passed in."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
import torch
from scipy import stats
from torch import nn

from polariscope.core.errors import InputError
from polariscope.models.nets import initialise

# fan_in and fan_out are channels times kernel area; PyTorch stores transposed convolutions the other way round.
LAYERS = {
    "linear": (lambda: nn.Linear(300, 200), 300, 200),
    "convolution": (lambda: nn.Conv2d(20, 30, 4), 20 * 16, 30 * 16),
    "transposed": (lambda: nn.ConvTranspose2d(20, 30, 4), 30 * 16, 20 * 16),
}


def drawn(kind: str, how: str, seed: int = 0) -> nn.Module:
    layer = LAYERS[kind][0]()
    initialise(layer, how, torch.Generator().manual_seed(seed))  # type: ignore[arg-type]
    return layer


def p_value(values: torch.Tensor, distribution: object) -> float:
    return float(stats.kstest(values.detach().numpy().ravel(), distribution.cdf).pvalue)  # type: ignore[attr-defined]


@pytest.mark.parametrize("kind", sorted(LAYERS))
def test_glorot_is_uniform_within_its_bound_and_biases_are_zero(kind: str) -> None:
    _, fan_in, fan_out = LAYERS[kind]
    layer, bound = drawn(kind, "glorot"), np.sqrt(6 / (fan_in + fan_out))
    assert layer.weight.abs().max() <= bound
    assert p_value(layer.weight, stats.uniform(-bound, 2 * bound)) > 1e-4
    assert (layer.bias == 0).all()


@pytest.mark.parametrize("kind", sorted(LAYERS))
def test_kaiming_is_normal_with_its_standard_deviation(kind: str) -> None:
    layer, std = drawn(kind, "kaiming"), np.sqrt(2 / LAYERS[kind][1])
    assert p_value(layer.weight, stats.norm(scale=std)) > 1e-4
    n = layer.weight.numel()
    assert abs(float(layer.weight.detach().std()) / std - 1) < 5 / np.sqrt(
        2 * n
    )  # standard error of a normal's std
    assert (layer.bias == 0).all()


@pytest.mark.parametrize("kind", sorted(LAYERS))
def test_torch_is_uniform_within_one_over_root_fan_in_biases_too(kind: str) -> None:
    layer, bound = drawn(kind, "torch"), LAYERS[kind][1] ** -0.5
    assert layer.weight.abs().max() <= bound * (1 + 1e-6)
    assert p_value(layer.weight, stats.uniform(-bound, 2 * bound)) > 1e-4
    assert 0 < layer.bias.abs().max() <= bound
    assert p_value(layer.bias, stats.uniform(-bound, 2 * bound)) > 1e-4


@pytest.mark.parametrize("how", ["glorot", "kaiming", "torch"])
def test_the_seed_decides_and_the_previous_weights_do_not(how: str) -> None:
    first, again, other = drawn("linear", how), drawn("linear", how), drawn("linear", how, seed=1)
    assert torch.equal(first.weight, again.weight)
    assert torch.equal(first.bias, again.bias)
    assert not torch.equal(first.weight, other.weight)


def test_layers_of_one_shape_get_different_draws() -> None:
    network = nn.Sequential(nn.Linear(4, 4), nn.Sequential(nn.ReLU(), nn.Linear(4, 4)))
    initialise(network, "glorot", torch.Generator().manual_seed(0))
    assert not torch.equal(network[0].weight, network[1][1].weight)


def test_an_unknown_name_is_refused_and_never_read_as_another() -> None:
    unchecked = inspect.unwrap(initialise)  # the type checker of the tests would refuse it first
    with pytest.raises(InputError, match=r"no initialisation named 'gloroot'; .*Did you mean 'glorot'\?"):
        unchecked(nn.Linear(2, 2), "gloroot", torch.Generator())
