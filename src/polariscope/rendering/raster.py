"""Rasterisation of triangles: a camera on a sphere around the body, and a z-buffer without loops."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
from jaxtyping import Bool, Float, Int

from polariscope.rendering.mesh import Mesh, Point

_SLIVER = 1e-9
"""Twice the area, in samples, below which triangles are too thin to compute their distance. Faces towards the camera
have a negative area, since rows are counted downwards."""


@dataclasses.dataclass(frozen=True)
class Camera:
    r"""A pinhole camera that is aimed at a point from azimuth a, elevation e and distance D.

    .. math:: t = (\cos e \cos a, \cos e \sin a, \sin e), \quad
              r = (-\sin a, \cos a, 0), \quad
              u = (-\sin e \cos a, -\sin e \sin a, \cos e)

    point towards the camera, to the right and up in the image. A point p, measured from the target, appears at

    .. math:: (S/2)\,(1 + z\, p \cdot r / d,\; 1 - z\, p \cdot u / d), \qquad d = D - p \cdot t

    in an image of S samples per side with zoom z. A ball of radius R around the target is a disc of radius
    (S/2) z R / √(D² − R²).
    """

    azimuth: float
    """a in radians; at 0 the camera is ahead of the body, on the x-axis."""
    elevation: float
    """e in radians above the ground."""
    distance: float
    """D from the target."""
    zoom: float
    """z; a length L across the target fills the image if z L = 2 D."""
    target: Point = (0.0, 0.0, 0.0)
    """Point at the centre of the image."""

    @property
    def towards(self) -> Float[np.ndarray, "3"]:
        cos, sin = math.cos(self.elevation), math.sin(self.elevation)
        return np.array([cos * math.cos(self.azimuth), cos * math.sin(self.azimuth), sin])

    @property
    def right(self) -> Float[np.ndarray, "3"]:
        return np.array([-math.sin(self.azimuth), math.cos(self.azimuth), 0.0])

    @property
    def up(self) -> Float[np.ndarray, "3"]:
        cos, sin = math.cos(self.elevation), math.sin(self.elevation)
        return np.array([-sin * math.cos(self.azimuth), -sin * math.sin(self.azimuth), cos])

    def project(self, points: Float[np.ndarray, "point 3"], size: int) -> Float[np.ndarray, "point 3"]:
        """Project points to columns, rows (downwards) and 1/d, which is linear across a flat face.

        :param points: positions in space.
        :param size: samples per side of the image.
        """
        shifted = points - np.array(self.target)
        nearness = 1 / (self.distance - _dot(shifted, self.towards))
        half = size / 2
        columns = half + half * self.zoom * _dot(shifted, self.right) * nearness
        rows = half - half * self.zoom * _dot(shifted, self.up) * nearness
        return np.stack([columns, rows, nearness], axis=1)


@dataclasses.dataclass(frozen=True)
class Visible:
    """The surface that is visible in the samples of an image."""

    where: Int[np.ndarray, " seen"]
    """Samples in which the body is visible, counted row by row."""
    faces: Int[np.ndarray, " seen"]
    """Visible face in each of these samples."""
    normals: Float[np.ndarray, "seen 3"]
    """Unit normals of the body in these samples."""


def rasterise(mesh: Mesh, camera: Camera, size: int) -> Visible:
    """Find the nearest surface at the centre of every sample.

    :param mesh: the body.
    :param camera: the camera.
    :param size: samples per side.
    """
    corners = camera.project(mesh.vertices, size)[mesh.faces]
    # Faces that point away from the camera are hidden by a closed body.
    faces = np.flatnonzero(_twice_area(corners) < -_SLIVER)
    corners = corners[faces]
    spans = _spans(corners, size)
    counts = spans.end - spans.start
    fragment = np.repeat(np.arange(len(counts)), counts)
    # Each span is expanded to its columns: its number among all fragments minus that of its first, plus the
    # start.
    columns = np.arange(len(fragment)) - (np.cumsum(counts) - counts - spans.start)[fragment]
    face = spans.face[fragment]
    rows = spans.row[fragment]
    nearness = _across(corners, corners[:, :, 2:], face, columns, rows)[:, 0]
    sample = rows * size + columns
    nearest = np.zeros(size * size)
    # 1/d is largest for the nearest face.
    np.maximum.at(nearest, sample, nearness)
    owner = np.full(size * size, -1)
    # The maximum is one of these values bit for bit, so equality is exact.
    wins = nearness == nearest[sample]
    owner[sample[wins]] = face[wins]
    where = np.flatnonzero(owner >= 0)
    seen = owner[where]
    # n/d is linear across a face in the image, and its length does not matter.
    scaled = mesh.corner_normals[faces] * corners[:, :, 2:]
    normals = _across(corners, scaled, seen, where % size, where // size)
    normals /= np.sqrt(_dot(normals, normals))[:, None]
    return Visible(where, faces[seen], normals)


def cover(
    points: Float[np.ndarray, "point 3"], faces: Int[np.ndarray, "face 3"], size: int
) -> Bool[np.ndarray, " sample"]:
    """Return which samples lie in any triangle of a closed body, in either orientation, as for a shadow.

    :param points: columns, rows and 1/d of the vertices in the image.
    :param faces: numbers of the three vertices of each triangle.
    :param size: samples per side.
    """
    corners = points[faces]
    # Every line of sight through a closed body meets faces of both orientations, so one orientation is enough.
    spans = _spans(corners[_twice_area(corners) < 0], size)
    width = size + 1  # a span can end after the last column
    # Each span adds 1 at its start and subtracts 1 at its end, so the running sum counts the spans at a
    # sample.
    first = np.bincount(spans.row * width + spans.start, minlength=size * width)
    last = np.bincount(spans.row * width + spans.end, minlength=size * width)
    depth = np.cumsum((first - last).reshape(size, width), axis=1)
    return (depth[:, :size] > 0).reshape(-1)


@dataclasses.dataclass(frozen=True)
class _Spans:
    """Consecutive samples of one row that lie in one triangle."""

    face: Int[np.ndarray, " span"]
    row: Int[np.ndarray, " span"]
    start: Int[np.ndarray, " span"]
    end: Int[np.ndarray, " span"]
    """Index after the last column."""


def _spans(corners: Float[np.ndarray, "face 3 3"], size: int) -> _Spans:
    """Find the samples whose centres lie in triangles, row by row.

    An edge is followed from its upper end in each of its triangles. Both triangles at an edge are therefore rounded in
    the same way, and every sample along it belongs to exactly one of them, so there are no seams.
    """
    order = np.argsort(corners[:, :, 1], axis=1, kind="stable")
    high, middle, low = (corners[np.arange(len(corners)), order[:, corner]] for corner in range(3))
    # First row whose centre is not above the corner; an edge exactly on a centre belongs to the triangle
    # below it.
    first = np.clip(np.ceil(high[:, 1] - 0.5), 0, size).astype(np.int64)
    last = np.clip(np.ceil(low[:, 1] - 0.5), 0, size).astype(np.int64)
    counts = last - first
    face = np.repeat(np.arange(len(counts)), counts)
    row = np.arange(len(face)) - (np.cumsum(counts) - counts - first)[face]
    y = row + 0.5
    whole = _slope(high, low)
    upper = (high[:, 0], high[:, 1], _slope(high, middle))
    lower = (middle[:, 0], middle[:, 1], _slope(middle, low))
    long_side = high[:, 0][face] + (y - high[:, 1][face]) * whole[face]
    # The short side changes its edge at the middle corner.
    above = y < middle[:, 1][face]
    x0, y0, slope = (np.where(above, a[face], b[face]) for a, b in zip(upper, lower, strict=True))
    short_side = x0 + (y - y0) * slope
    start = np.clip(np.ceil(np.minimum(long_side, short_side) - 0.5), 0, size).astype(np.int64)
    end = np.clip(np.ceil(np.maximum(long_side, short_side) - 0.5), 0, size).astype(np.int64)
    return _Spans(face, row, start, end)


def _slope(
    start: Float[np.ndarray, "face 3"], end: Float[np.ndarray, "face 3"]
) -> Float[np.ndarray, " face"]:
    """Return the columns per row along an edge; the value is not used if no row crosses the edge."""
    rise = end[:, 1] - start[:, 1]
    return (end[:, 0] - start[:, 0]) / np.where(rise > 0, rise, 1)


def _twice_area(corners: Float[np.ndarray, "face 3 3"]) -> Float[np.ndarray, " face"]:
    """Return twice the signed area in the image, positive if corners are anticlockwise with rows counted upwards."""
    a, b, c = corners[:, 0], corners[:, 1], corners[:, 2]
    return (b[:, 0] - a[:, 0]) * (c[:, 1] - a[:, 1]) - (b[:, 1] - a[:, 1]) * (c[:, 0] - a[:, 0])


def _across(
    corners: Float[np.ndarray, "face 3 3"],
    quantity: Float[np.ndarray, "face 3 quantity"],
    face: Int[np.ndarray, " sample"],
    columns: Int[np.ndarray, " sample"],
    rows: Int[np.ndarray, " sample"],
) -> Float[np.ndarray, "sample quantity"]:
    """Interpolate a quantity that is linear across each triangle from the corners to the centres of samples."""
    a, b, c = corners[:, 0, :2], corners[:, 1, :2], corners[:, 2, :2]
    area = _twice_area(corners)[:, None]
    q0, q1, q2 = quantity[:, 0], quantity[:, 1] - quantity[:, 0], quantity[:, 2] - quantity[:, 0]
    by_column = (q1 * (c[:, 1:] - a[:, 1:]) - q2 * (b[:, 1:] - a[:, 1:])) / area
    by_row = (q2 * (b[:, :1] - a[:, :1]) - q1 * (c[:, :1] - a[:, :1])) / area
    constant = q0 - by_column * a[:, :1] - by_row * a[:, 1:]
    x, y = (columns + 0.5)[:, None], (rows + 0.5)[:, None]
    return constant[face] + by_column[face] * x + by_row[face] * y


def _dot(
    points: Float[np.ndarray, "point 3"], direction: Float[np.ndarray, "*point 3"]
) -> Float[np.ndarray, " point"]:
    """Return products of vectors, added in a fixed order, so bytes do not depend on the matrix library."""
    product = points * direction
    return product[:, 0] + product[:, 1] + product[:, 2]
