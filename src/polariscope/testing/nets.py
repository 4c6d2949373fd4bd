"""Contract of every net."""

from __future__ import annotations

import itertools
import math

import pytest
import torch

from polariscope.core.errors import InputError
from polariscope.models.nets import AbstractNet, Trunk, initialise, net
from polariscope.testing.contract import AbstractContract, each
from polariscope.testing.members import assert_is_a_good_member, directional_derivatives, label, variants

SHAPES = [(7,), (1, 16, 16), (3, 32, 19)]


def cases(contract: AbstractContract) -> list[tuple[AbstractNet, tuple[int, ...]]]:
    """Return every choice of every option of the members under test, with each shape that it accepts."""
    made = []
    for candidate, shape in itertools.product(variants(net, contract.names), SHAPES):
        try:
            candidate.check(shape)
        except InputError:
            continue
        made.append((candidate, shape))
    return made


def name_of(value: AbstractNet | tuple[int, ...]) -> str:
    """Return the name of a net or of a shape in the list of tests."""
    return "x".join(map(str, value)) if isinstance(value, tuple) else label(value)


def trunks(made: AbstractNet, shape: tuple[int, ...], n_parameters: int = 1) -> tuple[Trunk, Trunk]:
    encoder, decoder = made.encoder(shape), made.decoder(3, shape, n_parameters)
    draw = torch.Generator().manual_seed(0)
    for trunk in (encoder, decoder):
        initialise(trunk, "torch", draw)
    return encoder.double(), decoder.double()


def normal(*shape: int, seed: int = 1) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


class NetContract(AbstractContract):
    """Contract of every net."""

    def test_it_is_documented_built_by_name_and_kept_as_json(self, name: str) -> None:
        assert_is_a_good_member(net, name)

    def test_it_takes_some_shape(self, name: str) -> None:
        assert any(type(candidate) is net[name] for candidate, _ in cases(self))

    @each("made, shape", cases, ids=name_of)
    def test_the_encoder_gives_as_many_features_as_it_says(
        self, made: AbstractNet, shape: tuple[int, ...]
    ) -> None:
        encoder, _ = trunks(made, shape)
        assert encoder(normal(2, *shape)).shape == (2, encoder.out_features)

    @pytest.mark.parametrize("n_parameters", [1, 2])
    @each("made, shape", cases, ids=name_of)
    def test_the_decoder_gives_all_parameters_of_every_value(
        self, made: AbstractNet, shape: tuple[int, ...], n_parameters: int
    ) -> None:
        _, decoder = trunks(made, shape, n_parameters)
        raw = decoder(normal(2, 3))
        assert raw.shape == (2, n_parameters * shape[0], *shape[1:])
        assert decoder.out_features == n_parameters * math.prod(shape)

    @each("made, shape", cases, ids=name_of)
    def test_activations_end_in_the_output(self, made: AbstractNet, shape: tuple[int, ...]) -> None:
        for trunk, x in zip(trunks(made, shape), (normal(2, *shape), normal(2, 3)), strict=True):
            layers = list(trunk.activations(x))
            assert len(layers) == len(trunk.layers)
            assert torch.equal(layers[-1], trunk(x))

    @each("made, shape", cases, ids=name_of)
    def test_samples_of_a_batch_do_not_see_each_other(
        self, made: AbstractNet, shape: tuple[int, ...]
    ) -> None:
        for trunk, x in zip(trunks(made, shape), (normal(3, *shape), normal(3, 3)), strict=True):
            alone = torch.cat([trunk(row[None]) for row in x])
            torch.testing.assert_close(trunk(x), alone, rtol=1e-10, atol=1e-12)

    @each("made, shape", cases, ids=name_of)
    def test_the_gradient_reaches_every_weight_and_is_right(
        self, made: AbstractNet, shape: tuple[int, ...]
    ) -> None:
        for trunk, x in zip(trunks(made, shape), (normal(2, *shape), normal(2, 3)), strict=True):
            parameters = list(trunk.parameters())
            if not parameters:
                continue  # the linear encoder only flattens
            weights = normal(*trunk(x).shape, seed=2)

            def loss(
                trunk: torch.nn.Module = trunk, x: torch.Tensor = x, weights: torch.Tensor = weights
            ) -> torch.Tensor:
                return (trunk(x) * weights).sum()

            assert all((g != 0).any() for g in torch.autograd.grad(loss(), parameters))
            # A step this small rarely crosses the kink of a ReLU; rounding is 1e-16·|f|/h ≈ 1e-7 per term of f.
            analytic, difference = directional_derivatives(loss, parameters, seed=0, step=1e-7)
            assert analytic == pytest.approx(difference, rel=1e-5, abs=1e-4)
