"""Pairs differ as their transition says, with the probabilities it says."""

from __future__ import annotations

import dataclasses
import itertools
import math

import numpy as np
import pytest
from scipy import stats

from oracles import STANDARD_ERRORS
from polariscope.core.errors import InputError
from polariscope.data import pairs
from polariscope.data.dataset import AbstractGridDataset, FactorKind
from polariscope.data.own.arrays import ArraysDataset, from_arrays
from polariscope.data.pairs import Transition, TransitionKind
from polariscope.data.sources import load_dataset
from polariscope.training.train import train


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


def test_share_one_keeps_each_factor_equally_often_alone_and_draws_the_rest_anew():
    factors, partners, shared = drawn("share-one")
    assert (shared.sum(axis=1) == 1).all()
    assert (factors == partners)[shared].all()
    for column, size in enumerate(GRID.factor_sizes):
        assert_share(shared[:, column], 1 / 3)
        free = ~shared[:, column]
        assert_share(partners[free, column] == factors[free, column], 1 / size)  # by chance


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


@pytest.mark.parametrize("kind", ["laplace", "uniform", "share", "share-one"])
def test_the_generator_alone_decides_the_pairs(kind):
    indices = np.arange(len(GRID))
    first, again, other = (
        Transition(kind).draw(GRID, indices, np.random.default_rng(seed))[0] for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


@pytest.mark.parametrize("kind", ["laplace", "uniform", "share", "share-one"])
def test_a_factor_of_one_value_stays_as_it_is(kind):
    data = Grid((1, 4, 3), ("ordinal", "ordinal", "cyclic"))
    factors, partners, _ = drawn(kind, data)
    assert (partners[:, 0] == 0).all()
    assert (partners[:, 1] != factors[:, 1]).any()


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (from_arrays(np.zeros((4, 2))), "has no factors"),
        (from_arrays(np.zeros((4, 2)), np.linspace(0, 1, 4)), "has continuous factors"),
        (load_dataset("gaussian"), "pairs need a dataset with discrete factors, such as sprites"),
    ],
)
def test_data_without_discrete_factors_have_no_pairs(data, words):
    with pytest.raises(InputError, match=words):
        Transition.check(data)
    Transition.check(load_dataset("sprites"))


def test_a_transition_that_could_change_nothing_is_refused():
    with pytest.raises(
        InputError, match=r"laplace transition moves ordinal and cyclic factors.*factor_kinds, or use"
    ):
        Transition("laplace").check_moves(Grid((3, 1), ("categorical", "ordinal")))
    for kind in ("uniform", "share", "share-one"):
        with pytest.raises(
            InputError, match=f"{kind} transition requires at least two factors that vary.* has 1"
        ):
            Transition(kind).check_moves(Grid((3, 1), ("categorical", "ordinal")))  # type: ignore[arg-type]
        Transition(kind).check_moves(GRID)  # type: ignore[arg-type]


@pytest.mark.parametrize("rate", [0.0, -1.0, math.inf, math.nan])
def test_a_rate_that_is_none_is_refused(rate):
    with pytest.raises(InputError, match=r"rate must be (positive|finite)"):
        Transition("laplace", rate)


KINDS = ("categorical", "ordinal", "cyclic")
SMALL = Grid((2, 3, 4), KINDS)


def arrays_of(factors: np.ndarray, kinds: tuple[str, ...] = KINDS) -> ArraysDataset:
    """Observations that are their factors."""
    return from_arrays(factors.astype(float), factors, factor_kinds=kinds)


@pytest.mark.parametrize("kind", ["laplace", "uniform", "share", "share-one"])
def test_arrays_that_hold_a_full_grid_in_any_order_have_the_pairs_of_the_grid(kind):
    shuffled = np.random.default_rng(3).permutation(len(SMALL))
    data = arrays_of(SMALL.factors(shuffled) * [5, 1, 1] + [7, 0, 0])  # other values, in the same order
    place = np.argsort(shuffled)
    indices = np.random.default_rng(0).integers(len(SMALL), size=500)
    expected, same = Transition(kind).draw(SMALL, indices, np.random.default_rng(1))
    found, shared = Transition(kind).draw(data, place[indices], np.random.default_rng(1))
    np.testing.assert_array_equal(found, place[expected])
    np.testing.assert_array_equal(shared, same)


def assert_draws(found: np.ndarray, expected: np.ndarray) -> None:
    """Counts of draws against their probabilities: exact zeros, and a chi-square test at one in a million."""
    assert (found[expected == 0] == 0).all()
    possible = expected > 0
    assert expected.sum() == pytest.approx(1)
    assert stats.chisquare(found[possible], expected[possible] * found.sum()).pvalue > 1e-6


@pytest.mark.parametrize("sizes", [(2, 3, 4), (1, 3, 4)])
@pytest.mark.parametrize("kind", ["laplace", "uniform"])
def test_the_probability_of_a_partner_is_how_often_it_is_drawn(kind, sizes):
    data = Grid(sizes, KINDS)
    start = len(data) // 2
    everything = data.factors(np.arange(len(data)))
    logs = Transition(kind).log_probability(everything[start], everything, sizes, KINDS)
    if sizes[0] == 1 and kind == "uniform":  # where only the factor of one value is chosen, nothing changes
        logs[start] = math.log(1 / 6)
    partners, _ = Transition(kind).draw(data, np.full(N, start), np.random.default_rng(0))
    assert_draws(np.bincount(partners, minlength=len(data)), np.exp(logs))


def part_of_a_grid() -> tuple[ArraysDataset, np.ndarray]:
    """Two thirds of the combinations, some of them repeated, in random order."""
    random = np.random.default_rng(5)
    rows = random.choice(len(SMALL), size=16, replace=False)
    rows = random.permutation(np.concatenate([rows, rows[:5], rows[:2]]))
    return arrays_of(SMALL.factors(rows)), rows


@pytest.mark.parametrize("rounds", [0, 8])
@pytest.mark.parametrize("kind", ["laplace", "uniform"])
def test_on_part_of_a_grid_partners_have_the_probabilities_of_the_grid_given_that_they_exist(
    kind, rounds, monkeypatch
):
    monkeypatch.setattr(pairs, "ROUNDS", rounds)  # 0: from the list of what exists; 8: by drawing again
    data, rows = part_of_a_grid()
    transition = Transition(kind)
    transition.check_moves(data)
    full = SMALL.factors(np.arange(len(SMALL)))
    draws = 2000
    for start in (0, 7):
        grid = np.exp(transition.log_probability(full[rows[start]], full, SMALL.factor_sizes, KINDS))
        repeats = np.bincount(rows, minlength=len(SMALL))
        each = np.where(repeats > 0, grid, 0) / np.maximum(repeats, 1)  # shared by those of a combination
        expected = each[rows] / each[rows].sum()
        partners, shared = transition.draw(data, np.full(draws, start), np.random.default_rng(rounds))
        assert_draws(np.bincount(partners, minlength=len(data)), expected)
        np.testing.assert_array_equal(shared, data.factors(partners) == data.factors([start]))


@pytest.mark.parametrize(("kind", "largest"), [("share", 2), ("share-one", 1)])
def test_on_part_of_a_grid_a_shared_set_is_drawn_as_ever_and_the_partner_from_the_data_given_it(
    kind, largest
):
    data, _ = part_of_a_grid()
    factors = data.factors(np.arange(len(data)))
    start, draws = 3, 20_000
    partners, shared = Transition(kind).draw(data, np.full(draws, start), np.random.default_rng(0))
    sets = [np.array(kept, bool) for kept in itertools.product([0, 1], repeat=3) if 0 < sum(kept) <= largest]
    for kept in sets:
        drawn = (shared == kept).all(axis=1)
        assert_share(drawn, 1 / len(sets))  # each size has the same chance, and three sets
        agree = (factors[:, kept] == factors[start, kept]).all(axis=1)
        assert_draws(np.bincount(partners[drawn], minlength=len(data)), agree / agree.sum())


def test_a_large_rate_goes_to_the_nearest_that_exists():
    # From (0, 0) neither (1, 0) nor (0, 1) exists, and (2, 0) is the nearest. e^{−1000 · 2/log 4} is 0 in float64.
    data = arrays_of(np.array([[0, 0], [2, 0], [3, 0], [1, 1]]), ("ordinal", "ordinal"))
    partners, _ = Transition("laplace", 1000.0).draw(data, np.zeros(50, int), np.random.default_rng(0))
    assert (partners == 1).all()


def test_observations_without_a_partner_are_counted_and_refused():
    alone = arrays_of(np.array([[0, 0, 0], [0, 1, 0], [1, 2, 1], [1, 2, 1]]))
    with pytest.raises(
        InputError, match=r"laplace transition requires.*categorical factors.*got 2 of 4 without.*'share'"
    ):
        Transition("laplace").check_moves(alone)
    with pytest.raises(InputError, match=r"uniform.*agrees in one factor.*got 2 of 4 without"):
        Transition("uniform").check_moves(alone)
    unique = arrays_of(np.stack([np.arange(50)] * 3, axis=1))
    for kind in ("share", "share-one"):
        Transition(kind).check_moves(part_of_a_grid()[0])
        with pytest.raises(
            InputError, match=f"a {kind} transition .* for 100% of the draws only the observation itself"
        ):
            Transition(kind).check_moves(unique)


@pytest.mark.parametrize("objective", ["slow", "pcl", "weak-gan"])
def test_objectives_on_pairs_train_on_part_of_a_grid(objective):
    data, _ = part_of_a_grid()
    options = {"net": "mlp", "n_latents": 3, "batch_size": 8, "steps": 3, "log_every": 1, "probe_samples": 2}
    model = train(data, objective=objective, **options)
    assert model.step == 3
