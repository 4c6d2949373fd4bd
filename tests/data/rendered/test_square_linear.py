"""The linear toy is a rotated rectangle."""

from __future__ import annotations

import math

import numpy as np
import pytest

from polariscope.core.errors import InputError
from polariscope.data.rendered.square_linear import SquareLinearDataset, rotation


def test_rotation_keeps_its_axis_and_lengths_and_turns_by_its_angle():
    axis = np.array([1.0, -1.0, 1.0])
    turn = rotation(axis, math.pi / 4)
    np.testing.assert_allclose(turn @ axis, axis, atol=1e-12)
    np.testing.assert_allclose(turn.T @ turn, np.eye(3), atol=1e-12)
    assert np.linalg.det(turn) == pytest.approx(1)
    assert np.trace(turn) == pytest.approx(1 + 2 * math.cos(math.pi / 4))
    np.testing.assert_allclose(np.linalg.matrix_power(turn, 8), np.eye(3), atol=1e-12)


@pytest.mark.parametrize("ratio", [1.0, 1.5, 2.0])
def test_covariance_has_the_eigenvalues_of_a_stretched_uniform_square(ratio):
    data = SquareLinearDataset(ratio=ratio, n_samples=20_000)
    rows = data.values(range(20_000)).astype(np.float64)
    eigenvalues = np.linalg.eigvalsh(np.cov(rows.T))
    # Var of (w - 1/2)² is 1/80 - 1/144, so the relative standard error is sqrt(0.8/n); five of them
    np.testing.assert_allclose(eigenvalues[1:], [1 / 12, ratio**2 / 12], rtol=5 * math.sqrt(0.8 / 20_000))
    assert abs(eigenvalues[0]) < 1e-12


def test_values_are_the_matrix_times_the_factors():
    data = SquareLinearDataset(n_samples=50)
    factors = data.factors(range(50))
    assert factors.min() >= 0
    assert factors.max() <= 1
    np.testing.assert_allclose(data.values(range(50)), factors @ data.matrix.T, atol=1e-6)
    np.testing.assert_allclose(data.matrix.T @ data.matrix, np.diag([4, 1]), atol=1e-12)


@pytest.mark.parametrize(
    ("options", "words"), [({"ratio": 0.0}, "ratio must be pos"), ({"n_samples": 0}, "n_sampl")]
)
def test_impossible_options_are_refused(options, words):
    with pytest.raises(InputError, match=words):
        SquareLinearDataset(**options)
