"""Batch norm and spectral norm: their closed forms, and that only a step of training moves what they carry."""

from __future__ import annotations

import copy
import dataclasses

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from polariscope.core.errors import InputError
from polariscope.core.files import digest_tensors
from polariscope.geometry.jacobian import decoder_jacobian
from polariscope.models.likelihoods.bernoulli import BernoulliLikelihood
from polariscope.models.likelihoods.gaussian import GaussianLikelihood
from polariscope.models.model import Blueprint, read_model
from polariscope.models.nets import Trunk
from polariscope.models.nets.conv import ConvNet
from polariscope.models.nets.linear import LinearNet
from polariscope.models.nets.mlp import MlpNet
from polariscope.models.normalisation import (
    EPSILON,
    BatchNorm,
    SpectralNorm,
    add_batch_norm,
    add_spectral_norm,
    normalisations,
)
from polariscope.models.posteriors.diagonal import DiagonalPosterior
from polariscope.models.priors.isotropic import IsotropicPrior

FLAT = Blueprint(
    MlpNet((6,), (5, 4)),
    DiagonalPosterior(),
    IsotropicPrior(),
    GaussianLikelihood(),
    n_latents=3,
    shape=(7,),
    normalises=True,
)
IMAGES = dataclasses.replace(FLAT, net=ConvNet(), likelihood=BernoulliLikelihood(), shape=(1, 16, 20))


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def drawn(layer: nn.Module, seed: int = 3) -> nn.Module:
    """The layer with other weights than those it starts with."""
    with torch.no_grad():
        for number, weight in enumerate(layer.parameters()):
            weight.copy_(normal(*weight.shape, seed=seed + number))
    return layer


@pytest.mark.parametrize("shape", [(50, 4), (10, 4, 3, 5)])
def test_units_have_the_mean_and_the_variance_that_they_are_given(shape: tuple[int, ...]) -> None:
    layer = drawn(BatchNorm(4).double())
    x = 3 * normal(*shape) + 7
    out = layer(x).transpose(0, 1).flatten(1)
    variance = x.transpose(0, 1).flatten(1).var(dim=1, correction=0)
    torch.testing.assert_close(out.mean(dim=1), layer.bias)
    torch.testing.assert_close(
        out.var(dim=1, correction=0), layer.weight**2 * variance / (variance + EPSILON), rtol=1e-9, atol=0
    )


@pytest.mark.parametrize(("shape", "theirs"), [((9, 4), nn.BatchNorm1d), ((9, 4, 3, 2), nn.BatchNorm2d)])
def test_three_steps_leave_the_running_moments_that_pytorch_has(
    shape: tuple[int, ...], theirs: type[nn.Module]
) -> None:
    ours, other = BatchNorm(4).double(), theirs(4).double()
    for seed in range(3):
        x = normal(*shape, seed=seed) * (seed + 1) + seed
        torch.testing.assert_close(ours(x), other(x))
        ours.advance()
    torch.testing.assert_close(ours.mean, other.running_mean)
    torch.testing.assert_close(ours.variance, other.running_var)
    x = normal(*shape, seed=9)
    torch.testing.assert_close(ours.eval()(x), other.eval()(x))


@pytest.mark.parametrize("blueprint", [FLAT, IMAGES], ids=["flat", "images"])
def test_only_advancing_moves_what_is_kept_and_by_one_batch_only(blueprint: Blueprint) -> None:
    model = blueprint.build(seed=0).double()
    start = model.digest
    model.decode(normal(8, 3, seed=1))
    model.decode(normal(8, 3, seed=2))
    assert model.digest == start
    other = blueprint.build(seed=0).double()
    other.decode(normal(8, 3, seed=2))
    for each in (*normalisations(model), *normalisations(other)):
        each.advance()
    assert model.digest == other.digest != start  # as if the first batch had never been decoded


@pytest.mark.parametrize("blueprint", [FLAT, IMAGES], ids=["flat", "images"])
def test_in_evaluation_a_sample_does_not_depend_on_its_batch(blueprint: Blueprint) -> None:
    model = blueprint.build(seed=0).double()
    z = normal(6, 3)
    for _ in range(5):
        model.decode(z)
        for each in normalisations(model):
            each.advance()
    together = model.decode(z).mean
    model.eval()
    alone = torch.cat([model.decode(row[None]).mean for row in z])
    torch.testing.assert_close(model.decode(z).mean, alone, rtol=1e-10, atol=1e-12)
    assert not torch.allclose(together, alone, atol=1e-3)  # in training it does
    assert torch.equal(model.decode(z).mean, model.decode(z).mean)


@pytest.mark.parametrize("blueprint", [FLAT, IMAGES], ids=["flat", "images"])
def test_the_running_moments_are_in_the_file_of_a_model(blueprint: Blueprint, tmp_path) -> None:
    model = blueprint.build(seed=0).double()
    model.decode(normal(8, 3))
    for each in normalisations(model):
        each.advance()
    model.save(tmp_path / "model.safetensors")
    loaded = read_model(tmp_path / "model.safetensors")
    assert loaded.digest == model.digest
    z = normal(2, 3, seed=4)
    torch.testing.assert_close(loaded.decode(z).mean, model.eval().decode(z).mean, rtol=1e-12, atol=1e-12)
    fresh = blueprint.build(seed=0).double().eval()
    assert not torch.allclose(loaded.decode(z).mean, fresh.decode(z).mean, atol=1e-3)


@pytest.mark.parametrize("blueprint", [FLAT, IMAGES], ids=["flat", "images"])
def test_jacobians_are_those_of_the_model_in_evaluation(blueprint: Blueprint) -> None:
    model = blueprint.build(seed=0).double()  # in training mode, which geometry does not use
    model.decode(normal(8, 3))
    for each in normalisations(model):
        each.advance()
    before, codes = model.digest, normal(2, 3, seed=4)
    found = decoder_jacobian(model, codes.numpy())
    assert model.digest == before
    model.eval()
    step = 1e-6
    for column, along in enumerate(np.eye(3) * step):
        ahead, behind = (model.decode(codes + sign * torch.from_numpy(along)).mean for sign in (1, -1))
        difference = ((ahead - behind) / (2 * step)).flatten(1).detach().numpy()
        np.testing.assert_allclose(found[:, :, column], difference, rtol=1e-5, atol=1e-7)


def test_batch_norm_stands_behind_every_non_linearity_and_not_behind_the_output() -> None:
    decoder = IMAGES.build(seed=0).decoder
    assert decoder is not None
    kinds = [[type(part).__name__ for part in layer.children()] for layer in decoder.trunk.layers]
    assert kinds == [
        ["Linear", "ReLU", "BatchNorm"],
        ["Linear", "ReLU", "BatchNorm", "Unflatten"],
        *[["ConvTranspose2d", "ReLU", "BatchNorm"]] * 3,
        ["ThinConvTranspose2d", "Crop"],
    ]
    assert [len(each.mean) for each in normalisations(decoder)] == [256, 64 * 1 * 2, 64, 32, 32]
    linear = dataclasses.replace(FLAT, net=LinearNet())
    assert normalisations(linear.build(seed=0)) == []  # no hidden layer
    plain = dataclasses.replace(IMAGES, normalises=False)
    assert normalisations(plain.build(seed=0)) == []
    ours, theirs = (dict(each.build(seed=0).decoder.named_parameters()) for each in (IMAGES, plain))  # type: ignore[union-attr]
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)  # and draws no other weights


def test_a_net_whose_hidden_layers_are_something_else_is_refused() -> None:
    with pytest.raises(
        InputError, match=r"affine map and a non-linearity, got Flatten as layer 1; use another"
    ):
        add_batch_norm(Trunk([nn.Flatten(), nn.Linear(3, 2)], 2))


LAYERS = [
    (nn.Linear(5, 3), (5,)),
    (nn.Linear(3, 8, bias=False), (3,)),
    (nn.Conv2d(2, 6, 4, stride=2), (2, 6, 6)),
]


def spectral(layer: nn.Module, seed: int = 3) -> SpectralNorm:
    return SpectralNorm(drawn(copy.deepcopy(layer).double(), seed))  # type: ignore[arg-type]


def largest(made: SpectralNorm) -> float:
    """Largest singular value of the weights that the layer computes with."""
    weight = made.layer.weight / made.norm
    return float(torch.linalg.matrix_norm(weight.detach().flatten(1), ord=2))


@pytest.mark.parametrize(("layer", "shape"), LAYERS, ids=str)
def test_the_largest_singular_value_is_1_from_the_start_and_again_after_the_weights_have_moved(
    layer: nn.Module, shape: tuple[int, ...]
) -> None:
    made = spectral(layer)
    assert largest(made) == pytest.approx(1, rel=1e-12)
    drawn(made.layer, seed=20)
    assert largest(made) > 1.1  # uᵀWv is at most the largest singular value
    for _ in range(200):
        made.advance()
    assert largest(made) == pytest.approx(1, rel=1e-9)
    before = {name: value.clone() for name, value in made.state_dict().items()}
    made(normal(4, *shape))
    assert digest_tensors(before) == digest_tensors(made.state_dict())
    assert {"left", "right"} <= before.keys()


@pytest.mark.parametrize(("layer", "shape"), LAYERS, ids=str)
def test_a_layer_computes_with_its_weights_over_their_norm(layer: nn.Module, shape: tuple[int, ...]) -> None:
    made = spectral(layer)
    x = normal(4, *shape)
    plain = copy.deepcopy(made.layer)
    with torch.no_grad():
        plain.weight /= torch.linalg.matrix_norm(plain.weight.flatten(1), ord=2)
    torch.testing.assert_close(made(x), plain(x))
    with torch.no_grad():
        made.layer.weight *= 7  # only the direction of the weights counts
    torch.testing.assert_close(made(x), plain(x))


def test_the_gradient_is_that_of_the_weights_over_their_largest_singular_value() -> None:
    made, x, along = spectral(LAYERS[0][0]), normal(4, 5), normal(4, 3, seed=1)
    (made(x) * along).sum().backward()
    weight = made.layer.weight.detach().clone().requires_grad_()
    exact = x @ (weight / torch.linalg.matrix_norm(weight, ord=2)).T + made.layer.bias
    (exact * along).sum().backward()
    torch.testing.assert_close(made.layer.weight.grad, weight.grad)


def test_every_affine_map_of_a_network_is_wrapped_once() -> None:
    trunk = ConvNet().encoder((1, 16, 16))
    n_affine = sum(isinstance(each, nn.Linear | nn.Conv2d) for each in trunk.modules())
    x = torch.rand(2, 1, 16, 16, generator=torch.Generator().manual_seed(0))
    add_spectral_norm(trunk)
    assert len(normalisations(trunk, None)) == n_affine == 5
    assert all(largest(each) == pytest.approx(1, rel=1e-5) for each in normalisations(trunk))
    assert trunk(x).shape == (2, 256)
