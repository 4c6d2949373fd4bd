"""The linear assignment against the integer program it replaces, and against all signed permutations."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from oracles import random_rotation
from polariscope.core.errors import InputError
from polariscope.numerics.assignment import closest_signed_permutation, signed_permutation_distance


def by_integer_program(V):
    """zietlow2022 Eq. 3.29: minimise Σ D over P⁺, P⁻ ∈ {0, 1} with |V − P⁺ + P⁻| ≤ D."""
    from scipy.optimize import Bounds, LinearConstraint, milp

    d = len(V)
    n, eye = d * d, np.eye(d * d)
    difference = np.hstack([eye, -eye])
    sums = np.vstack([np.kron(np.eye(d), np.ones(d)), np.kron(np.ones(d), np.eye(d))])
    found = milp(
        np.concatenate([np.zeros(2 * n), np.ones(n)]),
        integrality=np.concatenate([np.ones(2 * n), np.zeros(n)]),
        bounds=Bounds(0, np.concatenate([np.ones(2 * n), np.full(n, np.inf)])),
        constraints=[
            LinearConstraint(np.hstack([difference, -eye]), -np.inf, V.ravel()),
            LinearConstraint(np.hstack([-difference, -eye]), -np.inf, -V.ravel()),
            LinearConstraint(np.hstack([sums, sums, np.zeros((2 * d, n))]), 1, 1),
        ],
    )
    assert found.success
    return (found.x[:n] - found.x[n : 2 * n]).round().reshape(d, d)


@pytest.mark.parametrize("d", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_it_is_the_optimum_of_the_integer_program(d, seed):
    V = random_rotation(d, seed)
    np.testing.assert_array_equal(closest_signed_permutation(V), by_integer_program(V))


@pytest.mark.parametrize("seed", range(5))
def test_no_signed_permutation_is_closer_in_either_norm(seed):
    V = random_rotation(4, seed)
    P = closest_signed_permutation(V)
    every = [
        np.eye(4)[list(order)] * np.array(signs)[:, None]
        for order in itertools.permutations(range(4))
        for signs in itertools.product([-1, 1], repeat=4)
    ]
    assert np.abs(V - P).sum() == pytest.approx(min(np.abs(V - Q).sum() for Q in every), abs=1e-12)
    assert np.linalg.norm(V - P) == pytest.approx(min(np.linalg.norm(V - Q) for Q in every), abs=1e-12)


@pytest.mark.parametrize("d", [2, 5, 10])
def test_the_distance_has_its_closed_form(d):
    V = random_rotation(d, 3)
    kept = (np.abs(V) * np.abs(closest_signed_permutation(V))).sum()
    assert signed_permutation_distance(V[None])[0] == pytest.approx(math.sqrt(2 * d - 2 * kept), rel=1e-12)


def test_a_rotation_in_the_plane_has_its_own_closed_form():
    for angle in np.linspace(-np.pi, np.pi, 37):
        turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        nearest = max(abs(np.cos(angle)), abs(np.sin(angle)))
        assert signed_permutation_distance(turn[None])[0] ** 2 == pytest.approx(4 - 4 * nearest, abs=1e-12)


def test_small_distances_are_not_lost_in_rounding():
    angle = 1e-9
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    assert signed_permutation_distance(turn[None])[0] == pytest.approx(math.sqrt(2) * angle, rel=1e-6)


@pytest.mark.parametrize(
    "V",
    [
        np.zeros((2, 3)),
        np.zeros(4),
        np.zeros((0, 0)),
        np.full((2, 2), np.nan),
        np.array([[2.0, 0.0], [0.0, 1.0]]),
    ],
)
@pytest.mark.usefixtures("unannotated")
def test_what_is_not_a_rotation_is_refused(V):
    with pytest.raises(InputError, match="must be square with finite entries between -1 and 1"):
        closest_signed_permutation(V)


def test_a_stack_of_rotations_is_answered_one_by_one():
    stack = np.stack([random_rotation(3, seed) for seed in range(8)]).reshape(2, 4, 3, 3)
    found = closest_signed_permutation(stack)
    for place in np.ndindex(2, 4):
        np.testing.assert_array_equal(found[place], closest_signed_permutation(stack[place]))
