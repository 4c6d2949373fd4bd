"""Random rotations: uniform, and as far from signed permutations as they should be."""

from __future__ import annotations

import math

import numpy as np
import pytest

from oracles import assert_mean_is
from polariscope.core.errors import InputError
from polariscope.geometry.orthogonality import haar_distance, haar_rotations
from polariscope.numerics.assignment import signed_permutation_distance


def test_rotations_are_orthogonal_and_have_the_moments_of_the_uniform_measure():
    d = 4
    Q = haar_rotations(4000, d, np.random.default_rng(0))
    np.testing.assert_allclose(Q @ Q.transpose(0, 2, 1), np.broadcast_to(np.eye(d), Q.shape), atol=1e-12)
    # E[Q_ij] = 0, E[Q_ij²] = 1/d, E[Q_ij⁴] = 3/(d(d + 2)), and the determinant is ±1 equally often.
    assert_mean_is(Q.reshape(len(Q), -1), 0.0)
    assert_mean_is(Q.reshape(len(Q), -1) ** 2, 1 / d)
    assert_mean_is(Q.reshape(len(Q), -1) ** 4, 3 / (d * (d + 2)))
    assert_mean_is(np.linalg.det(Q), 0.0)


def test_two_latents_have_the_closed_form_which_draws_confirm():
    known = haar_distance(2)
    Q = haar_rotations(4000, 2, np.random.default_rng(0))
    distances = signed_permutation_distance(Q)
    assert_mean_is(distances, known.mean)
    assert_mean_is(distances**2, known.mean**2 + known.deviation**2)
    # By quadrature over the angle, to the error of the midpoint rule.
    angles = (np.arange(100_000) + 0.5) / 100_000 * math.pi / 4
    expected = np.sqrt(4 - 4 * np.cos(angles))
    assert known.mean == pytest.approx(expected.mean(), rel=1e-8)
    assert known.deviation == pytest.approx(expected.std(), rel=1e-8)
    assert known.standard_error == 0


@pytest.mark.parametrize(
    ("d", "mean", "deviation"), [(5, 1.632, 0.194), (6, 1.912, 0.170), (10, 2.847, 0.119)]
)
def test_more_latents_agree_with_the_reference(d, mean, deviation):
    # The reference's values are over 4000 draws, ours over 2000; a deviation's relative error is 1/√(2n).
    found = haar_distance(d)
    error = deviation * math.sqrt(1 / 2000 + 1 / 4000)
    assert found.mean == pytest.approx(mean, abs=5 * error + 5e-4)
    assert found.deviation == pytest.approx(deviation, rel=5 * math.sqrt(1 / 4000 + 1 / 8000) + 5e-3)


def test_one_latent_is_always_aligned():
    assert haar_distance(1).mean == 0


def test_nothing_to_rotate_is_refused():
    with pytest.raises(InputError, match="n_latents must be at least 1"):
        haar_distance(0)
