"""Bodies against their volumes in closed form, and normals against those of the surfaces they stand for."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest

from polariscope.rendering.mesh import (
    Mesh,
    box,
    ellipsoid,
    join,
    limb,
    panel,
    plate,
    revolve,
    tube,
    wheel,
)

SOLIDS = {
    "box": box(1, 2, 3),
    "bevelled box": box(1, 2, 3, 0.2),
    "ellipsoid": ellipsoid(1, 2, 3),
    "tube": tube([(0, 0, 0), (1, 0, 0.5), (2, 0.5, 1)], (0.2, 0.3, 0.1)),
    "limb": limb((0, 0, 0), (1, 1, -1), 0.3, 0.1),
    "plate": plate([(0, 0, 0), (1, 0, 0), (0, 1, 0)], 0.1),
    "round body": revolve(lambda share: 1 - share / 2, -1, 1, 5),
}


def ring_area(around: int) -> float:
    """Of a regular polygon in the unit circle."""
    return around / 2 * math.sin(2 * math.pi / around)


def test_a_box_has_the_volume_of_its_sides():
    assert box(1.5, 2, 3).volume == pytest.approx(9, rel=1e-12)


def test_a_bevelled_box_loses_its_edges():
    length, width, height, b = 3.0, 2.0, 1.5, 0.2
    # in the middle four triangles are missing; t before an end the section is inset by t and cut by b − t
    middle = (length - 2 * b) * (width * height - 2 * b**2)
    end = width * height * b - (width + height) * b**2 + 4 * b**3 / 3 - 2 * b**3 / 3
    assert box(length, width, height, b).volume == pytest.approx(middle + 2 * end, rel=1e-12)


def test_tubes_are_prisms_and_cones_of_regular_polygons():
    assert tube([(0, 0, 0), (0, 0, 2)], (0.5, 0.5), 12).volume == pytest.approx(
        ring_area(12) * 0.25 * 2, rel=1e-12
    )
    assert tube([(0, 0, 0), (0, 3, 0)], (0.5, 0), 9).volume == pytest.approx(ring_area(9) * 0.25, rel=1e-12)
    assert revolve(lambda share: 0.7, -1, 2, 4, 8).volume == pytest.approx(ring_area(8) * 0.49 * 3, rel=1e-12)


def test_an_ellipsoid_approaches_its_volume_from_inside():
    volumes = [ellipsoid(1, 2, 3, around).volume / (4 / 3 * math.pi * 6) for around in (24, 48, 96)]
    gaps = 1 - np.array(volumes)
    assert (gaps > 0).all()
    np.testing.assert_allclose(
        gaps[:-1] / gaps[1:], 4, rtol=0.02
    )  # an inscribed body's error falls with the square


@pytest.mark.parametrize("name", SOLIDS)
def test_solids_are_closed_and_face_outwards(name: str):
    mesh = SOLIDS[name]
    faces = mesh.faces
    edges = Counter(
        (int(a), int(b)) for a, b in np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]])
    )
    assert set(edges.values()) == {1}
    assert all((b, a) in edges for a, b in edges)
    assert mesh.volume > 0


@pytest.mark.parametrize("name", SOLIDS)
def test_mirroring_and_turning_keep_the_volume_and_scaling_multiplies_it(name: str):
    mesh = SOLIDS[name]
    for same in (
        mesh.mirrored(),
        mesh.turned(0, 0.3),
        mesh.turned(1, 2),
        mesh.turned(2, -1),
        mesh.moved(1, 2, 3),
    ):
        assert same.volume == pytest.approx(mesh.volume, rel=1e-9)
    assert mesh.scaled(2, 3, 0.5).volume == pytest.approx(3 * mesh.volume, rel=1e-9)
    assert mesh.both_sides().volume == pytest.approx(2 * mesh.volume, rel=1e-9)


@pytest.mark.parametrize(("axis", "start", "end"), [(0, 1, 2), (1, 2, 0), (2, 0, 1)])
def test_a_quarter_turn_takes_one_axis_to_the_next(axis: int, start: int, end: int):
    point = Mesh(np.eye(3)[[start]], np.zeros((0, 3), int), np.zeros((0, 3)), np.zeros(0))
    np.testing.assert_allclose(point.turned(axis, math.pi / 2).vertices, np.eye(3)[[end]], atol=1e-12)


def test_a_box_keeps_its_edges():
    mesh = box(1, 2, 3)
    middle = mesh.vertices[mesh.faces].mean(axis=1) / [0.5, 1, 1.5]
    outward = np.where(np.abs(middle) > 0.99, np.sign(middle), 0)
    np.testing.assert_allclose(mesh.corner_normals, np.repeat(outward[:, None], 3, axis=1), atol=1e-12)


def test_normals_of_a_round_body_are_those_of_the_surface():
    mesh = ellipsoid(1, 1, 1, 48)
    corners = mesh.vertices[mesh.faces]
    cosines = (mesh.corner_normals * corners).sum(axis=-1)
    assert (
        np.degrees(np.arccos(cosines.clip(-1, 1))).max() < 360 / 48 / 2
    )  # half the angle between neighbours


def test_joining_keeps_every_face_and_colour():
    red, blue = (
        box(1, 1, 1).painted((1.0, 0.0, 0.0)),
        ellipsoid(1, 1, 1).moved(5).painted((0.0, 0.0, 1.0), 0.5),
    )
    both = join(red, blue)
    assert both.volume == pytest.approx(red.volume + blue.volume)
    assert (both.colours[: len(red.faces)] == [1, 0, 0]).all()
    assert (both.colours[len(red.faces) :] == [0, 0, 1]).all()
    assert both.gloss.sum() == 0.5 * len(blue.faces)


def test_a_fitted_body_stands_in_the_middle_of_the_ground():
    fitted = join(box(1, 2, 3).moved(7, 8, 9), wheel(1, 1, (0.1, 0.1, 0.1), (0.5, 0.5, 0.5))).fitted(2.0)
    low, high = fitted.vertices.min(axis=0), fitted.vertices.max(axis=0)
    np.testing.assert_allclose((low + high)[:2], 0, atol=1e-12)
    assert low[2] == pytest.approx(0, abs=1e-12)
    assert np.linalg.norm(high - low) == pytest.approx(4)
    assert fitted.height == high[2]


def test_a_panel_lies_above_its_outline():
    outline = [(0.0, 0.0, 1.0), (2.0, 0.0, 1.0), (2.0, 2.0, 1.0), (0.0, 2.0, 1.0)]
    sheet = panel(outline, 0.1)
    np.testing.assert_allclose(sheet.vertices[:, 2], 1.1)
    np.testing.assert_allclose(sheet.vertices[:, :2], np.array(outline)[:, :2])
    np.testing.assert_allclose(sheet.corner_normals, np.broadcast_to([0, 0, 1], (2, 3, 3)))
