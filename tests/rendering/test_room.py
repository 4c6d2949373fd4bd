"""The room against projective geometry, its mirror symmetry and points on the surfaces of the solids."""

from __future__ import annotations

import math

import numpy as np
import pytest

from polariscope.core.seeds import generator
from polariscope.rendering import room


@pytest.mark.parametrize("scale", [0.75, 1.0, 1.25])
@pytest.mark.parametrize("angle", [0.0, math.radians(30)])
def test_a_sphere_is_seen_as_the_ellipse_of_its_tangent_cone(scale, angle):
    """With the centre one ahead and c above, the outline is (1 + c z)² = (1 + c² − r²)(1 + x² + z²)."""
    n, radius = 400, room.SPHERE_RADIUS * scale
    above = room.GAP + radius - room.CAMERA_HEIGHT
    rows, columns = np.nonzero(room.cast_rays("sphere", scale, angle, n).surface == room.OBJECT)
    x, z = room.columns(n)[columns], -room.HORIZON - room.columns(n)[rows]
    middle = above / (1 - radius**2)
    half_width = radius / math.sqrt(1 - radius**2)
    half_height = radius * math.sqrt(1 + above**2 - radius**2) / (1 - radius**2)
    # rays are 1/n apart, so an end is found to half of that, and the area to the rays on the outline
    assert abs(x.max() - half_width) < 1 / n
    assert abs(x.min() + half_width) < 1 / n
    assert abs(z.max() - (middle + half_height)) < 1 / n
    assert abs(z.min() - (middle - half_height)) < 1 / n
    assert len(x) / n**2 == pytest.approx(math.pi * half_width * half_height, rel=2e-3)


@pytest.mark.parametrize("solid", room.SOLIDS)
def test_rays_end_on_the_surface_of_the_solid_with_a_normal_that_faces_them(solid):
    start, rays = room.camera(0.3, 60)
    length = room.distance_to(solid, 1.1, start, rays)
    is_met = np.isfinite(length)
    assert is_met.sum() > 100
    points = start + length[is_met][:, np.newaxis] * rays[is_met]
    x, y, z = points.T
    height = {
        "cube": room.HALF_SIDE,
        "cylinder": room.CYLINDER[1],
        "sphere": room.SPHERE_RADIUS,
        "capsule": sum(room.CAPSULE),
    }[solid]
    z = np.abs(z - room.GAP - 1.1 * height)
    if solid == "cube":
        outside = np.maximum(np.maximum(abs(x), abs(y)), z) - 1.1 * room.HALF_SIDE
    elif solid == "sphere":
        outside = np.sqrt(x**2 + y**2 + z**2) - 1.1 * room.SPHERE_RADIUS
    elif solid == "cylinder":
        outside = np.maximum(np.hypot(x, y) - 1.1 * room.CYLINDER[0], z - 1.1 * room.CYLINDER[1])
    else:
        beyond = np.maximum(z - 1.1 * room.CAPSULE[1], 0)
        outside = np.sqrt(x**2 + y**2 + beyond**2) - 1.1 * room.CAPSULE[0]
    np.testing.assert_allclose(outside, 0, atol=1e-12)
    normals = room._normals(solid, 1.1, points)
    np.testing.assert_allclose((normals**2).sum(axis=1), 1, atol=1e-12)
    assert ((normals * rays[is_met]).sum(axis=1) < 0).all()


def test_brute_force_along_the_rays_finds_the_same_surfaces():
    """Steps of 1/2000 along each ray: the first point inside the solid is where the ray is said to end."""
    start, rays = room.camera(-0.4, 24)
    along = np.arange(0.6, 1.5, 1 / 2000)
    points = start + along[:, np.newaxis, np.newaxis, np.newaxis] * rays
    x, y, z = np.moveaxis(points, -1, 0)
    inside = np.hypot(x, y) < 1.2 * room.CYLINDER[0]
    inside &= abs(z - room.GAP - 1.2 * room.CYLINDER[1]) < 1.2 * room.CYLINDER[1]
    met = inside.any(axis=0)
    found = room.distance_to("cylinder", 1.2, start, rays)
    assert (np.isfinite(found) == met).mean() > 0.995  # a ray may touch the solid between two steps
    both = met & np.isfinite(found)
    assert abs(along[inside.argmax(axis=0)] - found)[both].max() < 1 / 1000


@pytest.mark.parametrize("solid", room.SOLIDS)
def test_a_camera_on_the_other_side_sees_the_mirror_image(solid):
    left, right = (room.cast_rays(solid, 1.0, angle, 90).surface for angle in (-0.5, 0.5))
    assert (left == right[:, ::-1]).mean() > 0.9995


def test_upright_edges_are_upright_and_the_corner_is_where_the_projection_puts_it():
    n = 320
    for angle in np.radians([30.0, 20.0, 12.0]):
        sine, cosine = math.sin(angle), math.cos(angle)
        ahead = 1 + room.WALL_DISTANCE * (cosine + sine)
        across = room.WALL_DISTANCE * (cosine - sine) / ahead
        view = room.cast_rays("sphere", 0.75, angle, n)
        sky = (view.surface == room.SKY).sum(axis=0)
        # the top edges of the walls fall towards the corner and rise behind it
        deepest = room.columns(n)[sky == sky.max()]
        assert deepest.min() - 1 / n < across < deepest.max() + 1 / n
        top = -room.HORIZON - room.columns(n)[sky.max()]
        assert abs(top - (room.WALL_HEIGHT - room.CAMERA_HEIGHT) / ahead) < 2 / n
        drop = np.abs(np.diff(view.brightness[sky.max() + 3]))
        assert abs(room.columns(n)[drop.argmax()] - across) < 2 / n


@pytest.mark.parametrize("solid", room.SOLIDS)
def test_the_shadow_falls_away_from_the_lamp_and_has_a_soft_edge(solid):
    ground = generator(0, "floor").uniform(-1, 1, size=(20_000, 3)) * [1, 1, 0]
    seen = room._lamp_seen(solid, 1.25, ground)
    assert (seen == 0).sum() > 100
    assert ((seen > 0) & (seen < 1)).sum() > 20
    shadow = ground[seen < 0.5].mean(axis=0)
    away = -room.LIGHT[:2] / np.linalg.norm(room.LIGHT[:2])
    assert shadow[:2] @ away > 0
    assert abs(shadow[0] * away[1] - shadow[1] * away[0]) < 0.02
    # no shadow is cut off at the distance to which it is looked for
    assert np.linalg.norm(ground[seen < 1], axis=1).max() < room.SHADOW_REACH - 0.05


def test_no_solid_reaches_beyond_the_columns_that_are_looked_at():
    for solid in room.SOLIDS:
        for angle in np.radians([0, 15, 30]):
            _, rays = room.camera(angle, 200)
            everywhere = np.isfinite(room.distance_to(solid, 1.25, room.camera(angle, 200)[0], rays))
            assert (everywhere == (room.cast_rays(solid, 1.25, angle, 200).surface == room.OBJECT)).all()


def test_the_floor_is_as_bright_as_the_height_of_the_lamp_over_each_point_says():
    """Only n·ℓ = ℓ_z counts there, and the floor does not face the camera: a + k ℓ_z¹⁺ᵉ, out of the shadow."""
    angle, n = 0.2, 64
    sine, cosine = math.sin(angle), math.cos(angle)
    view = room.cast_rays("sphere", 0.75, angle, n)
    rows, columns = np.nonzero(view.surface == room.FLOOR)
    across, down = room.columns(n)[columns], room.columns(n)[rows] + room.HORIZON
    ahead = room.CAMERA_HEIGHT / down
    x, y = ahead * (sine + across * cosine) - sine, ahead * (cosine - across * sine) - cosine
    to_lamp = room.LIGHT - np.stack([x, y, 0 * x], axis=1)
    steep = to_lamp[:, 2] / np.linalg.norm(to_lamp, axis=1)
    expected = np.minimum(room.BRIGHTEST, room.AMBIENT_FLOOR + room.LAMP * steep ** (1 + room.LAMP_FOCUS))
    is_lit = np.hypot(x, y) > room.SHADOW_REACH
    assert is_lit.sum() > 200
    np.testing.assert_allclose(view.brightness[rows, columns][is_lit], expected[is_lit], rtol=1e-12)


@pytest.mark.parametrize("solid", ["sphere", "capsule"])
def test_the_lamp_lights_objects_from_above(solid):
    view = room.cast_rays(solid, 1.0, 0.0, 200)
    rows = np.flatnonzero((view.surface == room.OBJECT).any(axis=1))
    top, bottom = (view.surface[row] == room.OBJECT for row in (rows[0], rows[-1]))
    np.testing.assert_allclose(view.highlight[rows[0], top], room.HIGHLIGHT)
    assert not view.highlight[rows[-1], bottom].any()
    assert view.brightness[rows[0], top].min() > view.brightness[rows[-1], bottom].max()


def test_walls_are_brighter_the_more_they_face_the_camera():
    """The back wall faces it by cos θ, the side wall by sin θ. Marks are halfway up, so the upper edge has none."""
    angle, n = 0.4, 160
    sine, cosine = math.sin(angle), math.cos(angle)
    view = room.cast_rays("sphere", 0.75, angle, n)
    top = (view.surface == room.SKY).sum(axis=0)
    across, up = room.columns(n), -room.HORIZON - room.columns(n)[top]
    back = (room.WALL_DISTANCE + cosine) / (cosine - across * sine)
    side = (room.WALL_DISTANCE + sine) / (sine + across * cosine)
    is_side = (side > 0) & (side < back)
    ahead = np.where(is_side, side, back)
    points = [ahead * (sine + across * cosine) - sine, ahead * (cosine - across * sine) - cosine]
    to_lamp = room.LIGHT - np.stack([*points, room.CAMERA_HEIGHT + ahead * up], axis=1)
    to_lamp /= np.linalg.norm(to_lamp, axis=1, keepdims=True)
    facing = np.where(is_side, -to_lamp[:, 0], -to_lamp[:, 1])
    expected = room.AMBIENT + room.HEADLIGHT * np.where(is_side, sine, cosine)
    expected += room.LAMP * facing * to_lamp[:, 2] ** room.LAMP_FOCUS
    assert min(is_side.sum(), (~is_side).sum()) > 30
    np.testing.assert_allclose(view.brightness[top, np.arange(n)], expected, rtol=1e-6)
