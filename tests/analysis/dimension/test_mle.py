from __future__ import annotations

import math

import numpy as np
import pytest

from analysis.dimension.tables import poisson_distances, table_of_distances
from oracles import STANDARD_ERRORS
from polariscope.analysis.dimension.mle import mle
from polariscope.core.errors import InputError
from polariscope.numerics.neighbours import neighbours
from polariscope.testing.manifolds import cube, sphere, torus


def test_the_worked_example_of_the_reference_gives_one_over_log_two():
    # bonheme2023 Eq. 8.4, printed as 3.3, which is 1/log10(2).
    x = np.array([[0.0, 0, 0], [0, 1, 0], [1, 0, 0], [2, 0, 0]])
    found = mle(x, k=3, normaliser="k-1")
    assert found.pointwise[0] == pytest.approx(1 / math.log(2), rel=1e-12)
    assert round(found.pointwise[0], 4) == 1.4427


VARIANTS = [
    # Two points, k = 4, Σ log T₄/T_j = 3 and 6: local estimates c/3 and c/6.
    ("k-1", "arithmetic", (3 / 3 + 3 / 6) / 2),
    ("k-2", "arithmetic", (2 / 3 + 2 / 6) / 2),
    ("k-1", "harmonic", 3 / 4.5),
    ("k-2", "harmonic", 2 / 4.5),
]


@pytest.mark.parametrize(("normaliser", "average", "expected"), VARIANTS)
def test_known_distances_give_the_known_estimate(normaliser, average, expected):
    distances = np.exp([[0.0, 1, 2, 2], [0.0, 1, 2, 3]])  # sums 2 + 1 + 0 = 3 and 3 + 2 + 1 = 6
    found = mle(table_of_distances(distances), k=4, normaliser=normaliser, average=average)
    assert found.value == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("k", [5, 10, 20])
@pytest.mark.parametrize("normaliser", ["k-1", "k-2"])
@pytest.mark.parametrize("average", ["arithmetic", "harmonic"])
def test_a_poisson_process_gives_each_variant_its_limit(k, normaliser, average):
    n, d = 5000, 7.0
    found = mle(
        table_of_distances(poisson_distances(n, k, d)), k=k, normaliser=normaliser, average=average
    ).value
    c = k - 1 if normaliser == "k-1" else k - 2
    # Σ ~ Gamma(k−1, rate d): E[1/Σ] = d/(k−2) with relative variance 1/(k−3); E[Σ] = (k−1)/d with 1/(k−1).
    if average == "arithmetic":
        limit, spread = d * c / (k - 2), 1 / math.sqrt(k - 3)
    else:
        limit, spread = d * c / (k - 1), 1 / math.sqrt(k - 1)
    assert found == pytest.approx(limit, rel=STANDARD_ERRORS * spread / math.sqrt(n))


def test_the_published_default_corrects_twice():
    table = table_of_distances(poisson_distances(2000, 20, 7.0))
    default, consistent = mle(table), mle(table, normaliser="k-1")
    assert default.value == pytest.approx(consistent.value * 18 / 19, rel=1e-12)
    assert (default.k, default.variant) == (20, "k-2, harmonic mean")


@pytest.mark.parametrize("average", ["arithmetic", "harmonic"])
def test_the_curve_is_what_each_k_gives_by_itself(average):
    x = cube(300, 3, 5)
    curve = mle(x, k=12, average=average).curve
    assert curve.k == tuple(range(3, 13))
    for k, value in zip(curve.k, curve.values, strict=True):
        assert value == pytest.approx(mle(neighbours(x, k=k), k=k, average=average).value, rel=1e-12)
    assert all(
        low <= value <= high for low, value, high in zip(curve.low, curve.values, curve.high, strict=True)
    )


def test_local_estimates_are_small_on_the_line_and_large_in_the_ball():
    rng = np.random.default_rng(0)
    line = np.column_stack([rng.random(500), np.zeros((500, 3))])
    ball = 10 + rng.random((500, 4))
    local = np.array(mle(np.concatenate([line, ball]), normaliser="k-1").pointwise)
    # Relative standard error of a mean of 500 local estimates: about 1/√(500·17), and edges cost a few per cent.
    assert local[:500].mean() == pytest.approx(19 / 18, rel=0.1)
    assert 3 < local[500:].mean() < 4.5


def test_anchors_average_runs_over_a_random_share_of_the_points():
    x = sphere(500, 3)
    whole = mle(x)
    found = mle(x, anchor=0.8, n_runs=5)
    assert len(found.runs) == 5
    assert len(set(found.runs)) == 5
    assert found.value == pytest.approx(np.mean(found.runs), rel=1e-12)
    # The mean over 400 of 500 values, drawn without replacement: variance s²/400 · (1 − 0.8).
    inverse = 1 / np.array(whole.pointwise)
    spread = inverse.std(ddof=1) / inverse.mean() * math.sqrt(0.2 / 400)
    assert np.abs(np.array(found.runs) / whole.value - 1).max() < STANDARD_ERRORS * spread
    assert mle(x, anchor=0.8, n_runs=5, seed=1).runs != found.runs
    assert mle(x, anchor=0.8, n_runs=5) == found


def test_all_points_as_anchors_change_nothing():
    x = sphere(300, 3)
    assert mle(x, anchor=1.0, n_runs=3).runs == pytest.approx([mle(x).value] * 3, rel=1e-12)


def test_equal_distances_are_held_by_the_harmonic_mean_and_refused_by_the_arithmetic_one():
    table = table_of_distances(np.array([[1.0, 1, 1], [1, 1, math.e]]))
    found = mle(table, k=3, normaliser="k-1")
    assert found.value == pytest.approx(2.0)  # one over the mean of 0 and 1
    assert found.pointwise == (math.inf, 1.0)
    with pytest.raises(InputError, match="1 of 2 points have all their neighbours at the same distance"):
        mle(table, k=3, average="arithmetic")


def test_anchors_that_all_have_equal_distances_are_refused():
    distances = np.ones((20, 3))
    distances[7, 2] = 2.0
    table = table_of_distances(distances)
    assert np.isfinite(mle(table, k=3).value)
    with pytest.raises(InputError, match="19 of 20 points have all their neighbours at the same distance"):
        mle(table, k=3, anchor=0.1, n_runs=50)


def test_ties_among_the_first_neighbours_do_not_spoil_a_larger_k():
    grid = np.stack(np.meshgrid(*[np.arange(6)] * 2), axis=-1).reshape(-1, 2)
    found = mle(grid, k=12, average="arithmetic", normaliser="k-1")
    assert found.curve.k[0] > 4  # inside, the first four are at distance 1
    assert np.isfinite(found.curve.values).all()
    assert 1.5 < found.value < 3.5


def test_the_automatic_k_ends_the_smallest_stable_range():
    found = mle(torus(1500, 2), k="auto", normaliser="k-1")
    low, high = found.curve.stable
    inside = [value for k, value in zip(found.curve.k, found.curve.values, strict=True) if low <= k <= high]
    assert found.k == high >= 2 * low
    assert np.ptp(inside) <= 0.05 * np.median(inside)
    assert found.value == pytest.approx(inside[-1], rel=1e-12)
    assert found.value == pytest.approx(2, rel=0.05)


def test_the_normaliser_of_the_published_code_is_stable_only_at_large_k():
    # It rises as (k − 2)/(k − 1) by itself: 5 % from k₁ to 2 k₁ is reached for 1/(k₁ − 1) − 1/(2k₁ − 1) ≤ 0.05.
    table = table_of_distances(poisson_distances(5000, 40, 5.0))
    assert mle(table, k="auto").curve.stable[0] == pytest.approx(11, abs=2)
    assert mle(table, k="auto", normaliser="k-1").curve.stable == (3, 40)


def test_without_a_stable_range_a_note_says_so():
    scales = 2.0 ** np.arange(40)  # the gap doubles each time: the estimate falls with every k
    found = mle(table_of_distances(np.tile(scales, (50, 1))), k="auto", normaliser="k-1")
    assert found.curve.stable is None
    assert any("No range of k is stable" in note for note in found.notes)


def test_more_dimensions_than_the_samples_can_show_are_noted():
    assert any("2 log₁₀ n = 4.8" in note for note in mle(sphere(250, 12)).notes)
    assert mle(sphere(250, 2)).notes == ()


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"anchor": 0.0}, "anchor must be a share"),
        ({"anchor": 1.5}, "anchor must be a share"),
        ({"n_runs": 0}, "n_runs must be at least 1"),
        ({"k": 60}, "k = 60 neighbours require at least 61 different samples, got 50"),
    ],
)
def test_impossible_options_are_refused(options, complaint):
    with pytest.raises(InputError, match=complaint):
        mle(sphere(50, 2), **options)


def test_an_automatic_k_needs_an_octave():
    with pytest.raises(InputError, match="requires at least 6 neighbours"):
        mle(sphere(5, 2), k="auto")
