"""Knees of curves whose knee is known, and of curves that have none."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from polariscope.core.errors import InputError
from polariscope.numerics import knee as _knee
from polariscope.numerics.knee import MIN_SEEDS, N_DRAWS, knee

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


def joined_lines(x: np.ndarray, place: float) -> np.ndarray:
    """Design of two lines that meet at the place."""
    return np.stack([np.ones(len(x)), x, np.maximum(0, x - place)], axis=1)


def by_search(x: np.ndarray, y: np.ndarray) -> tuple[float, float, tuple[float, float]]:
    """Place, squared error and slopes of the best joined lines, over a grid of places from second to last but one."""
    x = x.astype(np.float64)
    grid = np.linspace(x[1], x[-2], 1001)
    designs = np.stack([joined_lines(x, place) for place in grid])
    coefficients = np.linalg.pinv(designs) @ y
    errors = ((y - (designs @ coefficients[..., None])[..., 0]) ** 2).sum(axis=1)
    best = int(errors.argmin())
    before, change = coefficients[best, 1:]
    return float(grid[best]), float(errors[best]), (float(before), float(before + change))


def test_the_fit_is_the_least_squares_of_a_fine_search():
    """Few points and nothing but noise: the best place is often near an end, where one point must not be a line."""
    n_knees = 0
    for seed in range(24):
        draw = np.random.default_rng(seed)
        x = 4 * np.cumsum(draw.uniform(0.5, 2.0, size=6))
        x -= x[:2].mean() if seed % 2 else x[-2:].mean()  # 0 lies between the first two, or the last
        y = draw.normal(size=6)
        y[0 if seed % 2 else -1] += 20.0 * (seed % 3)  # an outlier at an end
        place, error, slopes = by_search(x, y)
        found = knee(x, y, level=1.0)
        if abs(found.slopes[1]) >= abs(found.slopes[0]):
            assert found.value is None
            assert "becomes steeper" in found.reason
        else:
            n_knees += 1
            assert found.value is not None
            # The square error is flat at its least: places are compared by what they leave of it.
            fitted = joined_lines(x, found.value)
            fitted = fitted @ np.linalg.pinv(fitted) @ y
            assert ((y - fitted) ** 2).sum() == pytest.approx(error, rel=1e-3, abs=1e-4)
            assert found.value == pytest.approx(place, abs=0.2)
        assert found.slopes == pytest.approx(slopes, rel=0.02, abs=0.02)
    assert 5 < n_knees < 20


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
        (broken(X, 8.0, before=-0.1, after=-2.0), "becomes steeper at 8, not flatter"),
        ((X - 1.0) ** 2, "becomes steeper"),
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
        (np.arange(6), np.zeros((0, 6)), "a curve of 6 points"),
        ([1, 2, 3, 4, 5, 6], [1.0, 2.0], r"a curve of 6 points, .* got the shape \(2,\)"),
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


def test_nothing_at_all_is_constant_too():
    found = knee(X, np.zeros(20))
    assert (found.slopes, found.p_value, found.reason) == ((0.0, 0.0), 1.0, "the curve is constant")


@pytest.mark.parametrize("slope", [0.1, 1 / 3, 0.7, -1.9])
@pytest.mark.parametrize("zero", [0, 7, -1e3])  # the second is 0 at a point
def test_a_straight_line_has_its_slope_twice(slope, zero):
    found = knee(X, slope * (X - zero))
    assert (found.p_value, found.reason) == (1.0, "the curve is a straight line")
    assert found.slopes == pytest.approx((slope, slope), abs=1e-11)


def test_a_curve_is_not_straight_because_one_of_its_points_is_on_the_line():
    x = np.arange(-10, 11)
    found = knee(x, x.astype(float) ** 3)  # at 0 it crosses its line
    assert found.reason != "the curve is a straight line"


def test_noise_has_the_slope_of_its_line_and_a_share_that_no_unit_changes():
    y = 0.3 * X + np.random.default_rng(2).normal(size=20)
    found = knee(X, y)
    assert found.value is None
    assert 0.05 < found.p_value < 1
    assert found.slopes == pytest.approx([np.polyfit(X, y, 1)[0]] * 2, abs=1e-12)
    assert f"in {found.p_value:.0%} of cases" in found.reason
    for unit in (1e-3, 1e3):
        assert knee(X, unit * y).p_value == found.p_value
        assert knee(X * unit, y - 7).p_value == found.p_value


def test_the_share_of_straight_curves_that_bend_as_clearly_is_uniform_for_straight_curves():
    """Mean 1/2 and variance 1/12 of 40 shares, each less than 5 standard errors off."""
    shares = [knee(X[:8], np.random.default_rng(seed).normal(size=8)).p_value for seed in range(40)]
    assert np.mean(shares) == pytest.approx(1 / 2, abs=5 * np.sqrt(1 / 12 / 40))
    assert np.var(shares) == pytest.approx(1 / 12, abs=5 * np.sqrt(1 / 180 / 40))


def test_a_bend_is_a_knee_up_to_the_level_and_with_it():
    y = broken(X, 8.0, before=-0.3) + np.random.default_rng(3).normal(size=20)
    share = knee(X, y).p_value
    assert 0.001 < share < 1
    assert knee(X, y, level=share).value is not None
    assert knee(X, y, level=share - 1e-9).value is None


@pytest.fixture
def fitted_curves(monkeypatch) -> list[np.ndarray]:
    """The curves to which two lines are fitted, as they come."""
    tables: list[np.ndarray] = []
    fit = _knee._two_lines

    def told(x, curves):
        tables.append(curves)
        return fit(x, curves)

    monkeypatch.setattr(_knee, "_two_lines", told)
    return tables


@pytest.mark.parametrize("n_seeds", [1, MIN_SEEDS - 1])
def test_few_curves_have_the_residuals_drawn_anew_with_the_variance_of_the_noise(n_seeds, fitted_curves):
    """Around the two lines, with residuals whose mean square is the unbiased RSS/(n − 4)."""
    x = np.arange(8.0)
    y = broken(x, 3.4) + np.random.default_rng(0).normal(scale=0.1, size=(n_seeds, 8))
    found = knee(x, y)
    assert found.value is not None
    assert "the residuals are resampled" in found.reason
    design = joined_lines(x, found.value)
    lines = design @ np.linalg.pinv(design) @ y.mean(axis=0)
    residuals = y.mean(axis=0) - lines
    assert len(np.unique(residuals.round(9))) == 8
    drawn = fitted_curves[-1] - lines
    assert drawn.shape == (N_DRAWS, 8)
    off = np.abs(drawn[..., None] - residuals * np.sqrt(8 / (8 - 4)))
    assert off.min(axis=-1).max() < 1e-9
    # Each residual as often as every other, at every point: 999 draws, 5 standard errors of a share of 1/8.
    shares = np.stack([(off.argmin(axis=-1) == k).mean(axis=0) for k in range(8)])
    assert np.abs(shares - 1 / 8).max() < 5 * np.sqrt(7 / 64 / N_DRAWS)
    assert (off.argmin(axis=-1)[0] != off.argmin(axis=-1)[1]).any()


def test_enough_curves_are_drawn_anew_themselves(fitted_curves):
    y = noisy(n_seeds=MIN_SEEDS)
    found = knee(X, y)
    assert f"when {MIN_SEEDS} seeds are resampled" in found.reason
    # Every mean of three curves with replacement, and no other: 10 of them.
    means = y[list(itertools.combinations_with_replacement(range(MIN_SEEDS), MIN_SEEDS))].mean(axis=1)
    off = np.abs(fitted_curves[-1][:, None] - means).max(axis=-1)
    assert fitted_curves[-1].shape == (N_DRAWS, 20)
    assert off.min(axis=1).max() < 1e-12
    assert len(np.unique(off.argmin(axis=1))) == 10
