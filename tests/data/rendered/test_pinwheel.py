"""The pinwheel has the arms it was asked for."""

from __future__ import annotations

import numpy as np
import pytest

from oracles import STANDARD_ERRORS
from polariscope.core.errors import InputError
from polariscope.data.rendered.pinwheel import PinwheelDataset


def blobs(data: PinwheelDataset) -> np.ndarray:
    """The points as complex numbers."""
    x = data.values(range(len(data))).astype(np.float64)
    return x[:, 0] + 1j * x[:, 1]


def test_without_bending_the_arms_are_blobs_on_the_unit_circle_clockwise() -> None:
    data = PinwheelDataset(n_samples=40_000, rate=0.0)
    # The published row vector times [[cos, −sin], [sin, cos]] turns clockwise: arm 1 of 4 points down.
    for arm, centre in enumerate([1, -1j, -1, 1j]):
        points = blobs(data)[data.factors(range(len(data)))[:, 0] == arm] / centre
        for part, mean, std in ((points.real, 1, 0.3), (points.imag, 0, 0.1)):
            n = len(points)
            assert abs(part.mean() - mean) < STANDARD_ERRORS * std / np.sqrt(n)
            assert abs(part.std() - std) < STANDARD_ERRORS * std / np.sqrt(2 * n)  # of a normal's std


@pytest.mark.parametrize(("spread", "along", "across"), [("published", 0.3, 0.1), ("as-named", 0.1, 0.3)])
def test_the_named_variants_swap_the_two_deviations(spread: str, along: float, across: float) -> None:
    n = 40_000
    points = blobs(PinwheelDataset(n_samples=n, n_arms=1, rate=0.0, spread=spread))
    assert abs(points.real.std() - along) < STANDARD_ERRORS * along / np.sqrt(2 * n)
    assert abs(points.imag.std() - across) < STANDARD_ERRORS * across / np.sqrt(2 * n)


def test_swapping_the_numbers_is_the_same_as_the_other_variant() -> None:
    one = PinwheelDataset(radial_std=0.2, tangential_std=0.4)
    two = PinwheelDataset(radial_std=0.4, tangential_std=0.2, spread="as-named")
    assert (one.values(range(400)) == two.values(range(400))).all()


def test_bending_turns_each_point_by_rate_times_exp_radius_and_keeps_its_distance() -> None:
    straight, bent = (PinwheelDataset(rate=rate) for rate in (0.0, 0.7))
    before, after = blobs(straight), blobs(bent)
    np.testing.assert_allclose(np.abs(after), np.abs(before), rtol=1e-6)
    arm = straight.factors(range(400))[:, 0]
    f1 = (before * np.exp(2j * np.pi * arm / 4)).real  # the arm's own turn undone
    turn = 0.7 * np.exp(f1)
    np.testing.assert_allclose(after, before * np.exp(-1j * turn), atol=1e-6)  # float32 rows


def test_every_arm_has_as_many_points_and_so_has_every_stretch() -> None:
    data = PinwheelDataset(n_samples=400)
    assert data.factor_sizes == (4,)
    assert np.bincount(data.factors(range(400))[:, 0]).tolist() == [100] * 4
    assert set(data.factors(range(37, 41))[:, 0]) == {0, 1, 2, 3}


def test_a_longer_wheel_begins_with_the_shorter_one_and_seeds_differ() -> None:
    short, long = PinwheelDataset(n_samples=10), PinwheelDataset(n_samples=20)
    assert (short.values(range(10)) == long.values(range(10))).all()
    assert (PinwheelDataset(n_samples=10, seed=1).values(range(10)) != short.values(range(10))).all()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"n_samples": 0}, "n_samples must be at least 1, got 0"),
        ({"n_arms": 0}, "n_arms must be at least 1, got 0"),
        ({"radial_std": -0.1}, "radial_std must not be negative, got -0.1; it is a standard deviation"),
        ({"tangential_std": float("nan")}, "tangential_std must be finite, got nan"),
        ({"rate": float("inf")}, "rate must be finite, got inf; 0 leaves the arms straight"),
    ],
)
def test_impossible_options_are_refused(options: dict, words: str) -> None:
    with pytest.raises(InputError, match=words):
        PinwheelDataset(**options)
