"""Quaternions against rotation matrices, groups by counting, and the reduction as a function of classes."""

from __future__ import annotations

import math

import numpy as np
import pytest

from polariscope.core.seeds import generator
from polariscope.rendering import rotations


def random_rotations(n: int) -> np.ndarray:
    return rotations.uniform(generator(0, "rotations").uniform(size=(n, 3)))


def test_products_of_quaternions_are_products_of_their_matrices():
    p, q = random_rotations(40).reshape(2, 20, 4)
    product = rotations.matrices(rotations.multiply(p, q))
    np.testing.assert_allclose(product, rotations.matrices(p) @ rotations.matrices(q), atol=1e-12)


def test_a_turn_about_an_axis_keeps_it_and_has_its_angle():
    axis = np.array([1.0, -2.0, 2.0])
    matrix = rotations.matrices(rotations.about(axis, 0.7))
    np.testing.assert_allclose(matrix @ axis, axis, atol=1e-12)
    assert np.trace(matrix) == pytest.approx(1 + 2 * math.cos(0.7))
    quarter = rotations.matrices(rotations.about(np.array([0, 0, 1.0]), math.pi / 2))
    np.testing.assert_allclose(quarter @ [1, 0, 0], [0, 1, 0], atol=1e-12)


def test_even_points_give_even_rotations():
    """E w² = 1/4, and the angle of a uniform rotation has the distribution (θ − sin θ) / π."""
    cube = np.stack(np.meshgrid(*[(np.arange(40) + 0.5) / 40] * 3), axis=-1).reshape(-1, 3)
    quaternions = rotations.uniform(cube)
    np.testing.assert_allclose(np.linalg.norm(quaternions, axis=1), 1)
    np.testing.assert_allclose(quaternions.T @ quaternions / len(cube), np.eye(4) / 4, atol=1e-3)
    angles = 2 * np.arccos(np.abs(quaternions[:, 0]))
    for angle in (0.8, 1.6, 2.4):
        assert (angles < angle).mean() == pytest.approx((angle - math.sin(angle)) / math.pi, abs=5e-3)


def test_tilts_take_the_axis_where_it_is_to_go_without_a_turn_about_it():
    axes = generator(0, "axes").normal(size=(50, 3))
    axes = np.concatenate([axes / np.linalg.norm(axes, axis=1, keepdims=True), [[0, 0, -1.0], [0, 0, 1.0]]])
    tilts = rotations.tilts(axes)
    np.testing.assert_allclose(rotations.matrices(tilts)[:, :, 2], axes, atol=1e-7)
    assert (tilts[:, 3] == 0).all()
    np.testing.assert_allclose(np.abs(tilts[:, 0]), np.cos(np.arccos(axes[:, 2]) / 2), atol=1e-7)


@pytest.mark.parametrize("order", [1, 2, 5, 12])
def test_turns_about_one_axis_generate_a_group_of_their_order(order):
    turn = rotations.about(np.array([1.0, 1, 0]), 2 * math.pi / order)
    assert len(rotations.generated(turn)) == order


def test_two_half_turns_generate_the_group_of_four():
    group = rotations.generated(np.array([0, 1.0, 0, 0]), np.array([0, 0, 1.0, 0]))
    np.testing.assert_allclose(np.sort(np.abs(group).argmax(axis=1)), range(4))


def test_the_reduced_quaternion_is_the_smallest_turn_of_its_class_even_on_borders():
    group = rotations.generated(rotations.about(np.array([0, 0, 1.0]), math.pi / 2))
    some = random_rotations(200)
    reduced = rotations.reduced(some, group)
    assert (reduced[:, 0] >= np.abs(some[:, 0]) - 1e-12).all()
    for element in (*group, *-group):
        np.testing.assert_allclose(
            rotations.reduced(rotations.multiply(some, element), group), reduced, atol=1e-9
        )
    border = rotations.about(np.array([0, 0, 1.0]), math.pi / 4)[np.newaxis]
    answers = [rotations.reduced(rotations.multiply(border, element), group) for element in (*group, *-group)]
    np.testing.assert_allclose(
        np.concatenate(answers), np.repeat(answers[0], len(answers), axis=0), atol=1e-9
    )


@pytest.mark.parametrize("has_two_ends", [False, True])
def test_only_the_axis_of_a_solid_of_revolution_matters(has_two_ends):
    some = np.concatenate([random_rotations(100), [rotations.about(np.array([1.0, 0, 0]), math.pi / 2)]])
    reduced = rotations.reduced_about_axis(some, has_two_ends)
    over = np.array([0, 1.0, 0, 0])
    for angle in (0.3, 2.0, 4.0):
        turned = rotations.multiply(some, rotations.about(np.array([0, 0, 1.0]), angle))
        np.testing.assert_allclose(rotations.reduced_about_axis(turned, has_two_ends), reduced, atol=1e-9)
        ends = rotations.reduced_about_axis(rotations.multiply(turned, over), has_two_ends)
        assert np.allclose(ends, reduced, atol=1e-9) == has_two_ends
    axes = rotations.matrices(reduced)[:, :, 2]
    same = (axes * rotations.matrices(some)[:, :, 2]).sum(axis=1)
    np.testing.assert_allclose(np.abs(same) if has_two_ends else same, 1, atol=1e-9)
