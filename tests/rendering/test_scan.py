"""Pictures by edges against rays, areas of polygons and the outline of a sphere."""

from __future__ import annotations

import math

import numpy as np
import pytest

from polariscope.core.seeds import generator
from polariscope.rendering import rotations, scan


def turns(n: int) -> np.ndarray:
    return rotations.matrices(rotations.uniform(generator(0, "turns").uniform(size=(n, 3))))


def cloud(n: int) -> scan.ConvexMesh:
    """The hull of random points on the unit sphere."""
    points = generator(0, "cloud").normal(size=(n, 3))
    return scan.ConvexMesh.around(points / np.linalg.norm(points, axis=1, keepdims=True))


def by_rays(mesh: scan.ConvexMesh, turn: np.ndarray, image_size: int, rays: int) -> np.ndarray:
    """Each ray against all planes: it enters a convex solid by the last plane it meets from outside."""
    normals = mesh.normals @ turn.T
    n = image_size * rays
    across = ((np.arange(n) + 0.5) / rays - image_size / 2) / (scan.FILLED / 2 * math.sqrt(15) * image_size)
    directions = np.stack(np.broadcast_arrays(across, -across[:, np.newaxis], np.full((n, n), -1.0)), axis=-1)
    towards = directions @ normals.T
    room = mesh.offsets - normals[:, 2] * scan.CAMERA_DISTANCE
    with np.errstate(divide="ignore"):
        distance = room / towards
    enters = np.where(room < 0, np.where(towards < 0, distance, np.inf), -np.inf)
    leaves = np.where((room > 0) & (towards > 0), distance, np.inf).min(axis=-1)
    lit = scan.AMBIENT + (1 - scan.AMBIENT) * ((1 + normals @ scan.TO_LIGHT) / 2) ** 2
    values = np.where(enters.max(axis=-1) < leaves, lit[enters.argmax(axis=-1)], 0)
    return values.reshape(image_size, rays, image_size, rays).mean(axis=(1, 3))


@pytest.mark.parametrize("n_corners", [4, 9, 30])
def test_pictures_are_those_of_rays(n_corners):
    mesh = cloud(n_corners)
    for turn, picture in zip(turns(3), scan.pictures(mesh, turns(3), 24), strict=True):
        expected = by_rays(mesh, turn, 24, 12)
        # both sample a pixel's rows, at 4 and at 12 heights
        assert abs(picture - expected).mean() < 0.002
        assert abs(picture - expected).max() < 0.13


def test_there_are_no_seams_between_faces_of_equal_brightness(monkeypatch):
    """The silhouette alone is left: pixels inside it are all as bright, whatever edges run through them."""
    mesh = cloud(40)
    monkeypatch.setattr(scan, "AMBIENT", 1.0)
    for picture in scan.pictures(mesh, turns(5), 40):
        assert picture.max() <= 1 + 1e-12
        assert picture.min() >= -1e-12
        rows, columns = np.nonzero(picture > 0)
        full = [picture[r - 1 : r + 2, c - 1 : c + 2].min() > 0 for r, c in zip(rows, columns, strict=True)]
        np.testing.assert_allclose(picture[rows[full], columns[full]], 1, atol=1e-12)


def test_a_face_has_the_area_of_its_projected_polygon(monkeypatch):
    """A thin square that faces the camera: sides of f s / (d − z)."""
    monkeypatch.setattr(scan, "AMBIENT", 1.0)
    square = np.array([[x, y, z] for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (0.0, 0.01)])
    picture = scan.pictures(scan.ConvexMesh.around(square), np.eye(3)[np.newaxis], 60)[0]
    side = scan.FILLED / 2 * math.sqrt(scan.CAMERA_DISTANCE**2 - 1) * 60 / (scan.CAMERA_DISTANCE - 0.01)
    # exact along rows; its upper and lower edge are found to a quarter of a pixel
    assert abs(picture.sum() - side**2) <= side / scan.ROWS
    np.testing.assert_allclose(picture, picture[:, ::-1], atol=1e-12)


def test_many_corners_show_the_circle_of_the_sphere_around_them(monkeypatch):
    """The tangent cone of the unit sphere at distance d, times the focal length: FILLED of the width."""
    monkeypatch.setattr(scan, "AMBIENT", 1.0)
    picture = scan.pictures(cloud(3000), np.eye(3)[np.newaxis], 64)[0]
    radius = scan.FILLED / 2 * 64
    assert picture.sum() == pytest.approx(math.pi * radius**2, rel=0.005)
    centre = (picture.sum(axis=0) @ (np.arange(64) + 0.5)) / picture.sum()
    assert abs(centre - 32) < 0.05


def test_the_light_comes_from_the_upper_left():
    picture = scan.pictures(cloud(3000), np.eye(3)[np.newaxis], 64)[0]
    row, column = np.unravel_index(picture.argmax(), picture.shape)
    assert row < 30
    assert column < 30


def test_turning_the_solid_about_the_view_turns_the_outline():
    mesh = cloud(12)
    quarter = rotations.matrices(rotations.about(np.array([0, 0, 1.0]), math.pi / 2))
    still, turned = scan.pictures(mesh, np.stack([np.eye(3), quarter]), 128) > 0.01
    assert (np.rot90(still) == turned).mean() > 0.98


def test_a_mesh_has_the_edges_of_its_solid_and_euler_counts_them():
    for n in (4, 10, 50):
        mesh = cloud(n)
        assert len(mesh.corners) - len(mesh.edges) + len(mesh.normals) == 2
    cube = np.array([[x, y, z] for x in (0, 1.0) for y in (0, 1.0) for z in (0, 1.0)]) - 0.5
    ring = [[math.cos(turn), math.sin(turn)] for turn in np.arange(96) * 2 * math.pi / 96]
    drum = 0.6 * np.array([[x, y, z] for x, y in ring for z in (-1.0, 1.0)])
    for corners, edges, faces in ((cube, 12, 6), (drum, 3 * 96, 98)):  # diagonals of faces are no edges
        mesh = scan.ConvexMesh.around(corners)
        assert (len(mesh.edges), len(mesh.normals)) == (edges, faces)
