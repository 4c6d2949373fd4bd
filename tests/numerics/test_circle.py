"""Mean directions."""

from __future__ import annotations

import numpy as np
import pytest

from polariscope.numerics.circle import mean_direction


def test_the_mean_direction_has_the_least_mean_square_chord_which_is_two_less_two_resultants() -> None:
    angles = np.random.default_rng(0).vonmises(1.0, 0.7, size=50)

    def mean_chord(direction: float) -> float:
        return float((np.abs(np.exp(1j * angles) - np.exp(1j * direction)) ** 2).mean())

    best = float(mean_direction(angles))
    resultant = abs(np.exp(1j * angles).mean())
    assert mean_chord(best) == pytest.approx(2 - 2 * resultant, abs=1e-12)
    assert all(mean_chord(best) <= mean_chord(other) for other in np.linspace(0, 2 * np.pi, 1000))


def test_angles_around_the_end_of_the_circle_have_their_mean_there_and_opposite_ones_none() -> None:
    found = mean_direction(np.array([[6.2, 0.2], [0.0, np.pi]]), otherwise=5.0)
    assert found[0] == pytest.approx((6.4 - 2 * np.pi) / 2)
    assert found[1] == 5.0
