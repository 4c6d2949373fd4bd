"""Local and global variance on tables where both are known."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from numpy.typing import ArrayLike

from polariscope.core.errors import InputError
from polariscope.data.dataset import AbstractGridDataset
from polariscope.data.own.arrays import from_arrays
from polariscope.data.rendered.sprites import SpritesDataset
from polariscope.data.variance import VarianceShares, variance_shares

A, B, DELTA = 2.0, 0.5, 0.3


class Grid(AbstractGridDataset):
    """x = (A w₁, B w₂, δ(−1)^{w₂}, (cos, sin)(2π w₃ / 8), one-hot of w₄)."""

    factor_names = ("line", "zigzag", "turn", "class")
    factor_sizes = (5, 6, 8, 3)
    factor_kinds = ("ordinal", "ordinal", "cyclic", "categorical")
    shape = (8,)  # type: ignore[assignment]

    def values(self, indices: ArrayLike | int) -> np.ndarray:
        w = self.factors(indices)
        phase = 2 * np.pi * w[:, 2] / 8
        columns = [A * w[:, 0], B * w[:, 1], DELTA * (-1.0) ** w[:, 1], np.cos(phase), np.sin(phase)]
        return np.column_stack([*columns, np.eye(3)[w[:, 3]]]).astype(np.float32)


def uniform_variance(n: int) -> float:
    return (n**2 - 1) / 12


LOCAL = np.array(
    [
        A**2 * uniform_variance(5),
        (B**2 + (2 * DELTA) ** 2) * uniform_variance(6),  # a step flips the sign
        4 * np.sin(np.pi / 8) ** 2 * uniform_variance(8),  # the chord of an eighth of the circle
        2 / 3,  # two of three pairs differ, by √2: ½ · 2 · 2/3
    ]
)
GLOBAL = np.array([A**2 * uniform_variance(5), B**2 * uniform_variance(6) + DELTA**2, 1.0, 2 / 3])


def test_both_are_known_for_a_whole_grid() -> None:
    found = variance_shares(Grid(), n_samples=None)
    np.testing.assert_allclose(found.local, LOCAL, rtol=1e-6)
    np.testing.assert_allclose(found.overall, GLOBAL, rtol=1e-6)
    assert found.total == pytest.approx(GLOBAL.sum(), rel=1e-6)  # no factor acts through another
    np.testing.assert_allclose(found.local_share, LOCAL / LOCAL.sum(), rtol=1e-6)
    np.testing.assert_allclose(found.global_share, GLOBAL / GLOBAL.sum(), rtol=1e-6)


def test_draws_agree_with_the_whole_grid() -> None:
    found = [variance_shares(Grid(), n_samples=1000, seed=seed) for seed in range(20)]
    for name, expected in (("local", LOCAL), ("overall", GLOBAL)):
        values = np.array([getattr(one, name) for one in found])
        error = values.std(axis=0, ddof=1) / np.sqrt(20)
        assert (np.abs(values.mean(axis=0) - expected) <= 4 * error + 1e-5 * expected).all(), name


def test_a_pattern_that_flips_moves_the_local_share_and_hardly_the_global_one() -> None:
    """The idea of the attack: a change of at most δ at each value."""

    class Plain(Grid):
        def values(self, indices: ArrayLike | int) -> np.ndarray:
            x = super().values(indices)
            x[:, 2] = 0
            return x

    before, after = (variance_shares(data, n_samples=None) for data in (Plain(), Grid()))
    moved = after.local_share[1] - before.local_share[1]
    assert moved > 5 * abs(after.global_share[1] - before.global_share[1]) > 0


def test_interactions_are_local_variance_of_both_and_global_variance_of_neither() -> None:
    class Product(AbstractGridDataset):
        factor_names, factor_sizes, factor_kinds = ("a", "b"), (3, 3), ("ordinal", "ordinal")
        shape = (1,)  # type: ignore[assignment]

        def values(self, indices: ArrayLike | int) -> np.ndarray:
            w = self.factors(indices) - 1.0
            return (w[:, :1] * w[:, 1:]).astype(np.float32)

    found = variance_shares(Product(), n_samples=None)
    np.testing.assert_allclose(found.local, np.full(2, 2 / 3 * 2 / 3))
    np.testing.assert_array_equal(found.overall, [0, 0])
    np.testing.assert_array_equal(found.global_share, [0, 0])


def test_sprites_differ_most_by_their_place() -> None:
    found = variance_shares(SpritesDataset(image_size=16), n_samples=300)
    names = list(found.factor_names)
    for one, other in itertools.product(("x", "y"), ("shape", "scale", "orientation")):
        assert found.global_share[names.index(one)] > found.global_share[names.index(other)]
    again = VarianceShares.from_dict(found.to_dict())
    np.testing.assert_array_equal(again.local, found.local)


def test_data_without_a_grid_are_refused() -> None:
    with pytest.raises(InputError, match="arrays has no grid of discrete factors"):
        variance_shares(from_arrays(np.zeros((3, 2))))
    rows = from_arrays(np.eye(4), factors=np.array([[0], [1], [0], [1]]))
    with pytest.raises(InputError, match="belong to exactly one observation"):
        variance_shares(rows)
    with pytest.raises(InputError, match="n_samples must be an integer, at least 2"):
        variance_shares(Grid(), n_samples=1)
