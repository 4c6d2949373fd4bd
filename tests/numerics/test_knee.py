"""Knees of curves whose knee is known, and of curves that have none."""

from __future__ import annotations

import numpy as np
import pytest

from polariscope.core.errors import InputError
from polariscope.numerics.knee import knee

X = np.arange(1, 21)


def broken(x: np.ndarray, place: float, before: float = -2.0, after: float = -0.1) -> np.ndarray:
    return np.where(x < place, before * (x - place), after * (x - place))


@pytest.mark.parametrize("place", [2, 3, 7.3, 11.5, 18.5, 19])
@pytest.mark.parametrize(("before", "after"), [(-2.0, -0.1), (-1.0, 0.0), (3.0, 0.5), (-1.0, 0.3)])
def test_two_lines_have_their_knee_where_they_meet(place, before, after):
    found = knee(X, broken(X, place, before, after))
    assert found.value == pytest.approx(place, abs=1e-9)
    assert found.slopes == pytest.approx((before, after), abs=1e-9)
    assert found.interval == pytest.approx((place, place), abs=1e-6)
    assert found.p_value == 0.001  # 1 of 1000, the least that 999 draws can say


def test_a_knee_between_points_far_apart_is_found_between_them():
    x = np.array([1, 2, 4, 8, 16, 32, 64])
    assert knee(x, broken(x, 11.0)).value == pytest.approx(11, abs=1e-9)


def noisy(seed: int = 0, n_seeds: int | None = None) -> np.ndarray:
    shape = (20,) if n_seeds is None else (n_seeds, 20)
    return broken(X, 8.0) + np.random.default_rng(seed).normal(scale=0.5, size=shape)


@pytest.mark.parametrize("n_seeds", [None, 5])
def test_units_and_offsets_of_both_axes_change_nothing(n_seeds):
    y = noisy(n_seeds=n_seeds)
    plain, scaled = knee(X, y), knee(X / 7 - 100, 1e-4 * y + 3.0)
    assert plain.value is not None
    assert plain.interval is not None
    assert scaled.interval is not None
    assert scaled.value == pytest.approx(plain.value / 7 - 100, abs=1e-6)
    assert scaled.interval == pytest.approx([end / 7 - 100 for end in plain.interval], abs=1e-6)
    assert scaled.slopes == pytest.approx([slope * 7e-4 for slope in plain.slopes], abs=1e-9)
    assert scaled.p_value == plain.p_value
    upside_down = knee(X, -y)
    assert upside_down.value == pytest.approx(plain.value)
    assert upside_down.slopes == pytest.approx([-slope for slope in plain.slopes])


def test_order_of_points_and_of_seeds_does_not_matter():
    y = noisy(n_seeds=4)
    order = np.random.default_rng(0).permutation(20)
    assert knee(X[order], y[:, order]) == knee(X, y)
    assert knee(X, y[::-1]).value == pytest.approx(knee(X, y).value)


def test_the_fit_is_the_least_squares_of_a_fine_search():
    """Every k on a grid of 0.001, with the best lines joined there."""
    for seed in range(2):
        y = noisy(seed)
        grid = np.arange(2, 19.0005, 0.001)
        designs = np.stack([np.stack([np.ones(20), X, np.maximum(0, X - k)], axis=1) for k in grid])
        fitted = (designs @ (np.linalg.pinv(designs) @ y)[..., None])[..., 0]
        errors = ((y - fitted) ** 2).sum(axis=1)
        assert knee(X, y).value == pytest.approx(grid[errors.argmin()], abs=0.002)


@pytest.mark.parametrize("n_seeds", [None, 10])
def test_the_interval_holds_the_knee_about_as_often_as_it_says(n_seeds):
    """Percentile intervals of small samples are known to be too narrow, so 85 % is asked for, less 3 deviations."""
    n_trials = 30
    held = 0
    for seed in range(n_trials):
        found = knee(X, noisy(seed, n_seeds), seed=seed)
        assert found.interval is not None
        held += found.interval[0] <= 8 <= found.interval[1]
    assert held / n_trials > 0.85 - 3 * np.sqrt(0.85 * 0.15 / n_trials)


def test_noise_widens_the_interval_and_more_seeds_narrow_it():
    def width(scale, n_seeds):
        y = broken(X, 8.0) + np.random.default_rng(1).normal(scale=scale, size=(n_seeds, 20))
        low, high = knee(X, y).interval
        return high - low

    assert width(0.1, 5) < width(1.0, 5)
    assert width(1.0, 40) < width(1.0, 5)


def test_straight_noise_is_called_a_knee_as_rarely_as_the_level_says():
    """Of 40 straight curves 5 % may be: 2, with a standard deviation of 1.4."""
    found = [knee(X, 0.3 * X + np.random.default_rng(seed).normal(size=20)) for seed in range(40)]
    knees = sum(one.p_value <= 0.05 for one in found)
    assert knees <= 2 + 5 * 1.4
    none = next(one for one in found if one.value is None)
    assert none.interval is None
    assert "straight line with noise would bend as clearly in" in none.reason or "steeper" in none.reason


@pytest.mark.parametrize(
    ("y", "reason"),
    [
        (np.full(20, 0.1), "the curve is constant"),
        (0.1 * X + 1e3, "the curve is a straight line"),
        (broken(X, 8.0, before=-0.1, after=-2.0), "gets steeper at 8, not flatter"),
        ((X - 1.0) ** 2, "gets steeper"),
    ],
)
def test_a_curve_without_a_knee_says_why(y, reason):
    found = knee(X, y)
    assert found.value is None
    assert found.interval is None
    assert reason in found.reason
    assert found.notes == (f"There is no knee: {found.reason}.",)


def test_lists_are_as_good_as_arrays():
    y = noisy()
    assert knee(X.tolist(), y.tolist()) == knee(X, y)
    assert knee(X, y).notes == ()


def test_the_same_seed_gives_the_same_interval():
    assert knee(X, noisy(), seed=3) == knee(X, noisy(), seed=3)
    assert knee(X, noisy(), seed=3) != knee(X, noisy(), seed=4)


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        (np.arange(4), np.arange(4.0), "at least 5 different values, each once, got 4 in 4"),
        (np.array([1, 1, 2, 3, 4, 5]), np.arange(6.0), "each once, got 5 in 6"),
        (np.arange(6), np.array([1.0, 2, np.nan, 0, 0, 0]), "must be finite"),
        (np.arange(6), np.zeros((2, 3, 6)), r"a table \(seed, point\), got the shape \(2, 3, 6\)"),
        (np.arange(6), np.zeros((0, 6)), "one curve of 6 points"),
        ([1, 2, 3, 4, 5, 6], [1.0, 2.0], r"one curve of 6 points, .* got the shape \(2,\)"),
    ],
)
def test_what_cannot_have_a_knee_is_refused_in_words(x, y, message):
    with pytest.raises(InputError, match=message):
        knee(x, y)


def test_a_constant_has_no_slope_and_is_one_in_any_unit():
    x = np.arange(20.0)
    for size in (1e-6, 1.0, 1e6):
        curve = size * (1 + 1e-15 * (x % 2))  # rounding alone
        found = knee(x, curve)
        assert (found.slopes, found.reason) == ((0.0, 0.0), "the curve is constant")
        assert knee(x, size * (1 + 1e-9 * (x % 2))).reason != "the curve is constant"
