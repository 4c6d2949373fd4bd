"""Axes or radius and angle: planes of which it is known."""

from __future__ import annotations

import numpy as np
import pytest

from forked import Forks
from oracles import random_rotation
from polariscope.core.errors import InputError
from polariscope.geometry.polar import polar_test


def uniform(n=4000, seed=0):
    return np.random.default_rng(seed).uniform(size=(n, 2))


def ring(hue, size):
    """Hue around the middle, size away from it."""
    radius = 0.5 + size
    return np.stack([radius * np.cos(2 * np.pi * hue), radius * np.sin(2 * np.pi * hue)], axis=1)


def test_a_ring_of_hues_is_polar_with_the_hue_in_the_angle():
    factors = uniform()
    found = polar_test(ring(*factors.T), factors, periods=[1.0, None])
    assert found.verdict == "polar"
    assert found.polar_pairing == ("angle", "radius")
    # 20 bins leave 1/400 of a uniform variable's variance, and of a phase 1 − sinc²(1/20) = 0.8 %.
    assert found.polar == pytest.approx(1 - (1 / 400 + 1 - np.sinc(1 / 20) ** 2) / 2, abs=2e-3)
    assert found.interval[0] <= found.value <= found.interval[1]


def test_factors_on_the_axes_are_cartesian_in_either_order():
    factors = uniform()
    codes = 4 * factors[:, ::-1] - 2
    found = polar_test(codes, factors, periods=[1.0, None])
    assert found.verdict == "cartesian"
    assert found.cartesian_pairing == ("second", "first")
    assert found.cartesian > 0.98


def test_an_axis_of_a_uniform_ring_tells_half_of_the_phase():
    # Given cos θ, cos is known and sin is ± equally often: half of the variance of (cos, sin).
    hue = np.linspace(0, 1, 4000, endpoint=False)
    found = polar_test(ring(hue, 0.5 * np.ones(4000)), hue[:, None], periods=[1.0])
    np.testing.assert_allclose(found.explained[0, :2], 0.5, atol=0.01)
    assert found.explained[0, 3] > 0.99
    assert found.explained[0, 2] == 0  # a constant radius, to rounding


def test_latents_that_code_a_position_as_distance_and_direction_are_polar_in_the_position():
    position = np.random.default_rng(1).integers(32, size=(4000, 2)).astype(float)
    x, y = (position - position.mean(axis=0)).T
    latents = np.stack([np.arctan2(y, x), np.hypot(x, y)], axis=1)
    found = polar_test(position, latents, centre="mean")
    assert found.verdict == "polar"
    assert found.polar_pairing == ("angle", "radius")
    straight = polar_test(position, position * [0.1, -0.1], centre="mean")
    assert straight.verdict == "cartesian"


def test_noise_is_undecided():
    rng = np.random.default_rng(0)
    found = polar_test(rng.standard_normal((2000, 2)), rng.uniform(size=(2000, 2)))
    assert found.verdict == "undecided"
    assert found.explained.max() < 0.05  # its standard error is √(2 · 19)/2000 = 0.003


def test_turning_the_plane_leaves_a_ring_polar_and_spoils_axes():
    factors, turn = uniform(), random_rotation(2, 0)
    assert polar_test(ring(*factors.T) @ turn, factors, periods=[1.0, None]).verdict == "polar"
    square = (2 * factors - 1) @ np.array([[1.0, -1.0], [1.0, 1.0]]) / np.sqrt(2)
    assert polar_test(square, factors).cartesian < 0.6 < polar_test(2 * factors - 1, factors).cartesian


def test_scales_of_targets_and_order_of_samples_do_not_matter():
    factors = uniform()
    order = np.random.default_rng(2).permutation(len(factors))
    first = polar_test(ring(*factors.T), factors, n_bootstrap=20)
    second = polar_test(ring(*factors.T)[order], (factors * [10.0, -3.0] + 5)[order], n_bootstrap=20)
    np.testing.assert_allclose(first.explained, second.explained, atol=1e-10)


@pytest.mark.parametrize(
    ("plane", "targets", "options", "words"),
    [
        (np.zeros((300, 2)), uniform(300), {}, "axis of the plane has a single value"),
        (uniform(300), np.ones((300, 1)), {}, "target 0 has a single value"),
        (uniform(100), uniform(100), {}, "at least 200 samples"),
        (uniform(300), uniform(299), {}, "row for each of the 300"),
        (uniform(300), np.ones((300, 3)), {}, "one or two columns"),
        (uniform(300), uniform(300), {"periods": [1.0]}, "periods must be"),
        (uniform(300), uniform(300), {"periods": [0.0, None]}, "periods must be"),
        (np.full((300, 2), np.nan), uniform(300), {}, "must be finite"),
        (np.ones((300, 3)), uniform(300), {}, r"plane must be numbers in two columns, got .* \(300, 3\)"),
        (np.ones(300), uniform(300), {}, r"plane must be numbers in two columns, got .* \(300,\)"),
        (uniform(300).astype(str), uniform(300), {}, "plane must be numbers in two columns, got <U"),
        (uniform(300), np.full((300, 1), "a"), {}, "targets must be numbers, got <U1"),
        (uniform(300), uniform(300), {"n_bootstrap": 0}, "n_bootstrap must be at least 1, got 0"),
        (
            uniform(300),
            uniform(300),
            {"centre": (0.0, np.nan)},
            "centre must be 'mean' or two finite numbers",
        ),
    ],
)
@pytest.mark.usefixtures("unannotated")
def test_what_cannot_be_told_is_refused(plane, targets, options, words):
    with pytest.raises(InputError, match=words):
        polar_test(plane, targets, **options)


WRONG_CENTRES = """
import numpy as np
from polariscope.core.errors import InputError
from polariscope.geometry.polar import polar_test
x = np.random.default_rng(0).normal(size=(300, 2))
for centre in ("median", (0.0, 0.0, 0.0), None):
    try:
        print(polar_test(x, x, centre=centre))
    except InputError as error:
        print(error)
"""


def test_a_centre_of_another_kind_is_refused_in_words(forks: Forks) -> None:
    # In a process of its own: the type checker of the tests would be first to refuse them.
    done = forks.run(WRONG_CENTRES)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        f"centre must be 'mean' or two finite numbers, got {shown}."
        for shown in ("'median'", "(0.0, 0.0, 0.0)", "None")
    ]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("is_polar", [False, True])
def test_the_value_lies_in_its_interval(seed: int, is_polar: bool) -> None:
    plane = np.random.default_rng(seed).normal(size=(500, 2))
    around = np.stack([np.hypot(*plane.T), np.arctan2(*plane.T[::-1])], axis=1)
    found = polar_test(plane, around if is_polar else plane, seed=seed)
    low, high = found.interval
    assert low <= found.value <= high
    assert found.verdict == ("polar" if is_polar else "cartesian")


def test_the_interval_has_the_bounds_of_a_difference_of_two_shares(monkeypatch):
    asked = []

    def recorded(value, replicates, bounds):
        asked.append(bounds)
        return value, value

    monkeypatch.setattr("polariscope.geometry.polar.recentred_interval", recorded)
    plane = np.random.default_rng(0).normal(size=(300, 2))
    polar_test(plane, plane, n_bootstrap=2)
    assert asked == [(-1.0, 1.0)]
