"""The Gaussian toy has the covariance it was asked for."""

from __future__ import annotations

import numpy as np
import pytest

from polariscope.core.errors import InputError
from polariscope.data.rendered.gaussian import GaussianDataset


@pytest.mark.parametrize("rotate", [True, False])
def test_exact_rows_have_the_chosen_eigenvalues_and_mean_zero(rotate):
    data = GaussianDataset(eigenvalues=(9.0, 1.0, 0.01), width=7, n_samples=500, rotate=rotate, seed=3)
    rows = data.values(range(500)).astype(np.float64)
    np.testing.assert_allclose(rows.mean(axis=0), 0, atol=1e-6)
    eigenvalues = np.linalg.eigvalsh(rows.T @ rows / 500)
    np.testing.assert_allclose(eigenvalues[::-1], [9, 1, 0.01, 0, 0, 0, 0], atol=1e-5, rtol=1e-5)


def test_principal_directions_are_the_eigenvectors_and_factors_the_coordinates():
    data = GaussianDataset(width=8, n_samples=400)
    directions = data.principal_directions
    np.testing.assert_allclose(directions.T @ directions, np.eye(5), atol=1e-12)
    rows, factors = data.values(range(400)).astype(np.float64), data.factors(range(400))
    np.testing.assert_allclose(rows @ directions, factors, atol=1e-5)
    np.testing.assert_allclose(rows.T @ rows / 400 @ directions, directions * data.eigenvalues, atol=1e-5)
    np.testing.assert_allclose(factors.T @ factors / 400, np.diag(data.eigenvalues), atol=1e-12)


def test_without_exact_the_covariance_holds_in_expectation_only():
    data = GaussianDataset(eigenvalues=(1.0,), n_samples=10_000, exact=False)
    variance = data.values(range(10_000)).var()
    assert variance != pytest.approx(1, abs=1e-5)
    assert variance == pytest.approx(1, abs=5 * np.sqrt(2 / 10_000))  # five standard errors of a variance


def test_without_rotation_the_directions_are_the_axes():
    data = GaussianDataset(eigenvalues=(2.0, 1.0), width=3, n_samples=10, rotate=False)
    assert (data.principal_directions == np.eye(3)[:, :2]).all()
    assert (data.values(range(10))[:, 2] == 0).all()


def test_random_rotations_favour_no_direction():
    # the first direction is uniform on the circle: E[cos] = 0 with standard error 1/sqrt(2 · 400)
    first = [
        GaussianDataset((1.0, 1.0), n_samples=3, seed=seed).principal_directions[0, 0] for seed in range(400)
    ]
    assert abs(np.mean(first)) < 4 / np.sqrt(800)


def test_seeds_give_other_rows():
    rows = [GaussianDataset(n_samples=10, seed=seed).values(range(10)) for seed in (0, 0, 1)]
    assert (rows[0] == rows[1]).all()
    assert (rows[0] != rows[2]).any()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"eigenvalues": ()}, "eigenvalues must be one or more finite numbers ≥ 0"),
        ({"eigenvalues": (1.0, -1.0)}, "they are variances"),
        ({"eigenvalues": (float("nan"),)}, "eigenvalues must contain finite numbers"),
        ({"width": 3}, "width must be at least the number of eigenvalues, 5, got 3"),
        ({"n_samples": 5}, "n_samples must be at least 6 for 5 eigenvalues with exact=True, got 5"),
    ],
)
def test_impossible_options_are_refused(options, words):
    with pytest.raises(InputError, match=words):
        GaussianDataset(**options)
