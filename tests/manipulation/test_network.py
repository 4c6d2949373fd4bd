"""The manipulation is a function of one number, and its table is the network."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from manipulations import untrained
from polariscope.data.dataset import AbstractDataset
from polariscope.data.own.arrays import from_arrays
from polariscope.data.rendered.sprites import SpritesDataset
from polariscope.manipulation.network import MAX_TABLE_ERROR, Architecture, Tabulated
from polariscope.models.nets.conv import ConvNet


@pytest.fixture(scope="module")
def data() -> AbstractDataset:
    sprites = SpritesDataset(image_size=16)
    indices = np.random.default_rng(0).choice(len(sprites), size=500, replace=False)
    return from_arrays(sprites.images(indices), factors=sprites.factors(indices))


def factors_of(data: AbstractDataset) -> np.ndarray:
    return data.factors(np.arange(len(data)))


def test_images_with_equal_bottleneck_value_get_equal_changes(data: AbstractDataset) -> None:
    network = untrained(data).double()
    weight = network.squeeze[0][0].weight
    with torch.no_grad():  # the number depends on the first factor alone
        weight[:, 1:] = 0
    factors = torch.from_numpy(factors_of(data)).double()
    with torch.no_grad():
        numbers, m = network.bottleneck(factors), network(factors)
    assert numbers.shape == (500, 1)
    for value in factors[:, 0].unique():
        members = factors[:, 0] == value
        assert members.sum() > 1
        assert torch.equal(numbers[members], numbers[members][:1].expand(int(members.sum()), 1))
        assert torch.equal(m[members], m[members][:1].expand(int(members.sum()), *m.shape[1:]))
    assert len({float(m[factors[:, 0] == value][0].sum()) for value in factors[:, 0].unique()}) > 1


def test_the_change_has_one_degree_of_freedom(data: AbstractDataset) -> None:
    network = untrained(data).double()
    factors = torch.from_numpy(factors_of(data)[:20]).double()
    for row in factors:
        jacobian = torch.autograd.functional.jacobian(lambda w: network(w[None]).flatten(), row)
        singular = torch.linalg.svdvals(jacobian)
        assert singular[0] > 0
        assert singular[1] < 1e-12 * singular[0]


def test_changes_are_bounded(data: AbstractDataset) -> None:
    network = untrained(data)
    with torch.no_grad():
        m = network(torch.from_numpy(factors_of(data)).float())
    assert m.shape == (500, 1, 16, 16)
    assert m.abs().max() <= 1
    assert m.abs().max() > 0.5


def test_factors_are_seen_between_minus_one_and_one() -> None:
    rows = np.random.default_rng(0).normal(size=(50, 3))
    data = from_arrays(rows, factors=np.stack([rows[:, 0] * 100, np.arange(50) % 4], axis=1))
    architecture = Architecture.of(data, ConvNet(), 0.1)
    np.testing.assert_allclose(architecture.low, [100 * rows[:, 0].min(), 0])
    np.testing.assert_allclose(architecture.high, [100 * rows[:, 0].max(), 3])
    assert not architecture.reflects
    assert Architecture.from_record(architecture.describe()) == architecture


def test_a_table_is_close_to_its_network_and_the_same_in_any_batch(
    data: AbstractDataset, tmp_path: Path
) -> None:
    network = untrained(data)
    table = Tabulated.of(network, data)
    factors = factors_of(data)
    with torch.no_grad():
        drawn = network.double()(torch.from_numpy(factors).double()).numpy()
    found = table(factors)
    # Linear between knots, whose midpoints are within MAX_TABLE_ERROR: elsewhere the distance is of the same order.
    assert np.abs(found - drawn).max() < 2 * MAX_TABLE_ERROR
    assert np.abs(found).max() <= 1 + 1e-6
    np.testing.assert_array_equal(np.concatenate([table(row[None]) for row in factors]), found)
    np.testing.assert_array_equal(table(factors[::-1]), found[::-1])

    table.save(tmp_path / "m.safetensors", step=7)
    again = Tabulated.read(tmp_path / "m.safetensors")
    assert again.digest == table.digest
    np.testing.assert_array_equal(again(factors), found)
    with torch.no_grad():
        np.testing.assert_allclose(
            again.network().double()(torch.from_numpy(factors).double()).numpy(), drawn, atol=1e-12
        )


def test_numbers_beyond_the_table_are_taken_for_its_ends(data: AbstractDataset) -> None:
    table = Tabulated.of(untrained(data), data)
    far = np.array([[1e6] * 5, [-1e6] * 5])
    ends = [table.table[0], table.table[-1]]
    for found in table(far):
        assert any(np.allclose(found, end, atol=1e-6) for end in ends)


def test_a_factor_that_never_varies_changes_nothing() -> None:
    rows = np.random.default_rng(0).normal(size=(40, 3))
    data = from_arrays(rows, factors=np.stack([np.arange(40), np.full(40, 5)], axis=1))
    table = Tabulated.of(untrained(data), data)
    factors = factors_of(data)
    assert np.isfinite(table(factors)).all()
    assert np.ptp(table.bottleneck(factors)) > 0


@pytest.mark.parametrize("seed", range(5))
def test_a_fresh_network_draws_changes_that_differ_between_images(data: AbstractDataset, seed: int) -> None:
    """With Glorot's weights a drawing begins at some 1e-4, and the attack never got away from it."""
    network = Architecture.of(data, ConvNet(), 0.1).build(seed)
    with torch.no_grad():
        m = network(torch.from_numpy(factors_of(data)).float())
    assert 0.2 < m.std() < 0.6
    assert m.std(dim=0).mean() > 0.02
