"""Pairs differ as their transition says, with the probabilities it says."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from oracles import STANDARD_ERRORS
from polariscope.core.errors import InputError
from polariscope.data.dataset import AbstractGridDataset, FactorKind
from polariscope.data.own.arrays import from_arrays
from polariscope.data.pairs import Transition, TransitionKind
from polariscope.data.sources import load_dataset


@dataclasses.dataclass(frozen=True)
class Grid(AbstractGridDataset):
    """Any grid of factors; observations are the factors themselves."""

    factor_sizes: tuple[int, ...] = (3, 5, 6)
    factor_kinds: tuple[FactorKind, ...] = ("categorical", "ordinal", "cyclic")

    @property
    def factor_names(self) -> tuple[str, ...]:  # type: ignore[override]
        return tuple(f"factor-{i}" for i in range(len(self.factor_sizes)))

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self.factor_sizes),)

    @property
    def name(self) -> str:
        return "grid"

    def values(self, indices):
        return self.factors(indices).astype(np.float32)


GRID = Grid()
N = 20_000


def drawn(
    kind: TransitionKind, data: AbstractGridDataset = GRID, rate: float = 1.0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Factors of many observations and of their partners, and which they share."""
    indices = np.random.default_rng(0).integers(len(data), size=N)
    partners, shared = Transition(kind, rate).draw(data, indices, np.random.default_rng(1))
    return data.factors(indices), data.factors(partners), shared


def assert_share(found: np.ndarray, expected: float) -> None:
    """A share of true values is ``expected`` within so many binomial standard errors."""
    error = math.sqrt(expected * (1 - expected) / len(found))
    assert abs(found.mean() - expected) <= STANDARD_ERRORS * error + 1e-12


@pytest.mark.parametrize("is_cyclic", [False, True])
@pytest.mark.parametrize("size", [2, 5, 6])
def test_laplace_probabilities_are_truncated_and_fall_by_the_same_factor_per_position(size, is_cyclic):
    table = Transition("laplace", 2.0).probabilities(size, is_cyclic)
    np.testing.assert_allclose(table.sum(axis=1), 1)
    for start in range(size):
        for end in range(size):
            away = abs(start - end)
            away = min(away, size - away) if is_cyclic else away
            assert table[start, end] / table[start, start] == pytest.approx(
                math.exp(-2.0 * away / math.log(size))
            )


def test_laplace_steps_have_their_probabilities_and_something_always_moves():
    factors, partners, shared = drawn("laplace")
    assert (factors[:, 0] == partners[:, 0]).all(), "categorical factors stay"
    assert (factors != partners).any(axis=1).all()
    np.testing.assert_array_equal(shared, factors == partners)
    ordinal, cyclic = (Transition().probabilities(size, size == 6) for size in (5, 6))
    # Both stay with probability p q; then one of the two, at random, is drawn again among its other values.
    both = (np.diag(ordinal)[:, None] * np.diag(cyclic)[None, :]).mean()
    stay = np.diag(ordinal).mean() - both / 2
    assert_share(factors[:, 1] == partners[:, 1], stay)
    from_zero = factors[:, 1] == 0
    joint = ordinal[0, 0] * np.diag(cyclic).mean()
    to_one = ordinal[0, 1] + joint / 2 * ordinal[0, 1] / (1 - ordinal[0, 0])
    assert_share(partners[from_zero, 1] == 1, to_one)


def test_a_large_rate_moves_one_factor_by_one_position():
    factors, partners, _ = drawn("laplace", rate=100.0)
    steps = np.abs(partners - factors)
    steps[:, 2] = np.minimum(steps[:, 2], 6 - steps[:, 2])  # around the circle
    assert (steps.sum(axis=1) == 1).all()
    assert_share(steps[:, 1] == 1, 0.5)


def test_uniform_changes_some_factors_and_never_to_what_they_were():
    factors, partners, shared = drawn("uniform")
    changed = (factors != partners).sum(axis=1)
    assert set(changed) == {1, 2}  # of three
    assert_share(changed == 1, 0.5)
    np.testing.assert_array_equal(shared, factors == partners)
    moved = factors[:, 2] != partners[:, 2]
    for shift in range(1, 6):
        assert_share((partners[moved, 2] - factors[moved, 2]) % 6 == shift, 1 / 5)


def test_share_keeps_a_random_set_and_draws_the_rest_anew():
    factors, partners, shared = drawn("share")
    assert (factors == partners)[shared].all()
    assert set(shared.sum(axis=1)) == {1, 2}
    assert_share(shared.sum(axis=1) == 1, 0.5)
    for column, size in enumerate(GRID.factor_sizes):
        assert_share(shared[:, column], 0.5)
        free = ~shared[:, column]
        assert_share(
            partners[free, column] == factors[free, column], 1 / size
        )  # by chance, and not called shared


@pytest.mark.parametrize("kind", ["laplace", "uniform", "share"])
def test_the_generator_alone_decides_the_pairs(kind):
    indices = np.arange(len(GRID))
    first, again, other = (
        Transition(kind).draw(GRID, indices, np.random.default_rng(seed))[0] for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


@pytest.mark.parametrize("kind", ["laplace", "uniform", "share"])
def test_a_factor_of_one_value_stays_as_it_is(kind):
    data = Grid((1, 4, 3), ("ordinal", "ordinal", "cyclic"))
    factors, partners, _ = drawn(kind, data)
    assert (partners[:, 0] == 0).all()
    assert (partners[:, 1] != factors[:, 1]).any()


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (from_arrays(np.zeros((4, 2))), "has no factors"),
        (from_arrays(np.zeros((4, 2)), np.linspace(0, 1, 4)), "has continuous factors or lacks"),
        (
            from_arrays(np.zeros((4, 2)), np.array([[0, 0], [0, 1], [1, 0], [1, 0]])),
            "does not find observations",
        ),
        (
            load_dataset("gaussian"),
            "pairs need a dataset whose discrete factors form a full grid, such as sprites",
        ),
    ],
)
def test_data_without_a_grid_of_factors_have_no_pairs(data, words):
    with pytest.raises(InputError, match=words):
        Transition.check(data)
    Transition.check(load_dataset("sprites"))


def test_a_transition_that_could_change_nothing_is_refused():
    with pytest.raises(InputError, match="laplace transition moves ordinal and cyclic factors"):
        Transition("laplace").check_moves(Grid((3, 1), ("categorical", "ordinal")))
    for kind in ("uniform", "share"):
        with pytest.raises(
            InputError, match=f"{kind} transition needs at least two factors that vary.* has 1"
        ):
            Transition(kind).check_moves(Grid((3, 1), ("categorical", "ordinal")))  # type: ignore[arg-type]
        Transition(kind).check_moves(GRID)  # type: ignore[arg-type]


@pytest.mark.parametrize("rate", [0.0, -1.0, math.inf, math.nan])
def test_a_rate_that_is_none_is_refused(rate):
    with pytest.raises(InputError, match=r"rate must be (positive|finite)"):
        Transition("laplace", rate)
