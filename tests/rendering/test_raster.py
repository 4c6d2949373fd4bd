"""What the camera sees, against projections by hand and circles in closed form."""

from __future__ import annotations

import math

import numpy as np
import pytest

from polariscope.core.seeds import generator
from polariscope.data.rendered.norb import figure
from polariscope.rendering import raster
from polariscope.rendering.mesh import Mesh, box, ellipsoid, join, panel, solid
from polariscope.rendering.raster import Camera, cover, rasterise

SIDE = 200


def sheet(n: int) -> Mesh:
    """A wall across the view, in small triangles with corners anywhere."""
    lines = np.linspace(-3, 3, n)
    y, z = np.meshgrid(lines, lines, indexing="ij")
    shift = generator(0, "sheet").uniform(-0.2, 0.2, size=(2, n, n)) * (lines[1] - lines[0])
    points = np.stack([np.zeros_like(y), y + shift[0], z + shift[1]], axis=-1).reshape(-1, 3)
    number = np.arange(n * n).reshape(n, n)
    a, b, c, d = number[:-1, :-1], number[1:, :-1], number[1:, 1:], number[:-1, 1:]
    faces = np.concatenate([np.stack([a, b, c], axis=-1), np.stack([a, c, d], axis=-1)]).reshape(-1, 3)
    return solid(points, faces)


@pytest.mark.parametrize("corner", [(1, 1, 1), (-1, 1, -1), (1, -1, 1)])
def test_a_corner_of_a_box_appears_where_similar_triangles_put_it(corner):
    x, y, z = corner
    # from ahead, 5 away: the corner is 5 − x from the camera, and y is to the right
    ahead = Camera(0.0, 0.0, 5.0, 2.0).project(np.array([corner], dtype=float), SIDE)[0]
    np.testing.assert_allclose(ahead, [100 * (1 + 2 * y / (5 - x)), 100 * (1 - 2 * z / (5 - x)), 1 / (5 - x)])
    # from the left, its front is on the left
    left = Camera(math.pi / 2, 0.0, 5.0, 2.0).project(np.array([corner], dtype=float), SIDE)[0]
    np.testing.assert_allclose(left, [100 * (1 - 2 * x / (5 - y)), 100 * (1 - 2 * z / (5 - y)), 1 / (5 - y)])
    # from above, its front is below
    above = Camera(0.0, math.pi / 2, 5.0, 2.0).project(np.array([corner], dtype=float), SIDE)[0]
    np.testing.assert_allclose(above, [100 * (1 + 2 * y / (5 - z)), 100 * (1 + 2 * x / (5 - z)), 1 / (5 - z)])


def test_the_target_is_in_the_middle_whatever_the_angles():
    camera = Camera(0.7, 0.4, 3.0, 2.0, target=(1.0, 2.0, 3.0))
    np.testing.assert_allclose(camera.project(np.array([[1.0, 2.0, 3.0]]), SIDE), [[100, 100, 1 / 3]])
    axes = np.array([camera.right, camera.up, camera.towards])
    np.testing.assert_allclose(axes @ axes.T, np.eye(3), atol=1e-12)
    assert np.linalg.det(axes) == pytest.approx(1)


@pytest.mark.parametrize(("azimuth", "elevation"), [(0.0, 0.0), (1.0, 0.5), (4.0, 1.2)])
def test_a_ball_is_a_disc_of_the_radius_in_closed_form(azimuth, elevation):
    camera = Camera(azimuth, elevation, 4.0, 3.0)
    visible = rasterise(ellipsoid(1, 1, 1, 96), camera, SIDE)
    radius = SIDE / 2 * 3 / math.sqrt(4**2 - 1)
    rows, columns = np.divmod(visible.where, SIDE)
    # a polyhedron of 96 points a ring lies within 1 − cos(π/96) = 5e-4 of the ball
    assert len(visible.where) == pytest.approx(math.pi * radius**2, rel=3e-3)
    assert rows.mean() + 0.5 == pytest.approx(SIDE / 2, abs=0.05)
    assert columns.mean() + 0.5 == pytest.approx(SIDE / 2, abs=0.05)
    # a ray at the angle θ from the axis meets the ball at the angle i from its normal, R sin i = D sin θ
    tangent = np.hypot(rows + 0.5 - SIDE / 2, columns + 0.5 - SIDE / 2) / (SIDE / 2 * 3)
    inside = tangent < 0.95 / math.sqrt(4**2 - 1)
    theta = np.arctan(tangent[inside])
    facing = np.cos(np.arcsin(4 * np.sin(theta)) - theta)
    np.testing.assert_allclose(
        visible.normals[inside] @ camera.towards, facing, atol=0.02
    )  # facets differ by 2π/96 = 0.065


def test_every_sample_of_a_surface_belongs_to_exactly_one_triangle():
    mesh, camera = sheet(40), Camera(0.0, 0.0, 5.0, 3.0)
    assert len(rasterise(mesh, camera, SIDE).where) == SIDE**2
    corners = camera.project(mesh.vertices, SIDE)[mesh.faces]
    spans = raster._spans(corners, SIDE)
    times = np.zeros((SIDE, SIDE), dtype=int)
    for row, start, end in zip(spans.row, spans.start, spans.end, strict=True):
        times[row, start:end] += 1
    assert (times == 1).all()


def test_what_is_nearer_hides_what_is_farther_whatever_the_order():
    camera = Camera(0.3, 0.2, 6.0, 3.0)
    near = box(0.5, 0.5, 0.5).moved(*(2 * camera.towards)).painted((1.0, 0.0, 0.0))
    far = box(1, 4, 4).turned(2, 0.3)
    covered = set(rasterise(near, camera, SIDE).where.tolist())
    assert covered
    for both in (join(near, far), join(far, near)):
        visible = rasterise(both, camera, SIDE)
        red = both.colours[visible.faces, 0] == 1
        assert set(visible.where[red].tolist()) == covered


def test_faces_that_look_away_are_not_seen():
    outline = [(0.0, -1.0, -1.0), (0.0, 1.0, -1.0), (0.0, 1.0, 1.0), (0.0, -1.0, 1.0)]
    assert len(rasterise(panel(outline, 0.0), Camera(0.0, 0.0, 5.0, 2.0), SIDE).where)
    assert not len(rasterise(panel(outline[::-1], 0.0), Camera(0.0, 0.0, 5.0, 2.0), SIDE).where)


@pytest.mark.parametrize(("category", "instance"), [(0, 7), (2, 3), (4, 8)])
def test_turning_the_body_is_turning_the_camera(category, instance):
    mesh, angle = figure(category, instance), 2.1
    turned = rasterise(mesh.turned(2, -angle), Camera(0.0, 0.6, 6.0, 5.0), SIDE)
    moved = rasterise(mesh, Camera(angle, 0.6, 6.0, 5.0), SIDE)
    same = np.intersect1d(turned.where, moved.where)
    assert len(same) > 1000
    assert len(np.union1d(turned.where, moved.where)) - len(same) <= 2  # rounding, on an outline
    one, other = (view.normals[np.searchsorted(view.where, same)] for view in (turned, moved))
    cos, sin = math.cos(angle), math.sin(angle)
    back = one @ np.array([[cos, sin, 0], [-sin, cos, 0], [0, 0, 1]])
    assert ((np.abs(back - other) < 1e-6).all(axis=1)).mean() > 0.999


@pytest.mark.parametrize("instance", range(3))
def test_a_closed_body_covers_the_samples_that_see_it(instance):
    mesh, camera = figure(0, instance), Camera(1.0, 0.7, 6.0, 5.0)
    covered = cover(camera.project(mesh.vertices, SIDE), mesh.faces, SIDE)
    np.testing.assert_array_equal(np.flatnonzero(covered), rasterise(mesh, camera, SIDE).where)


def test_bodies_that_reach_beyond_the_image_are_cut():
    visible = rasterise(box(1, 100, 100), Camera(0.0, 0.0, 5.0, 2.0), 16)
    assert visible.where.tolist() == list(range(256))
    nothing = rasterise(box(1, 1, 1).moved(0, 50, 0), Camera(0.0, 0.0, 5.0, 2.0), 16)
    assert len(nothing.where) == 0
