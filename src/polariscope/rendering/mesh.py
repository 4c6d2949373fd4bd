"""Bodies as triangles: simple solids built from their measures, moved and joined.

Coordinates: x ahead, y to the left, z up. The corners of a triangle are in anticlockwise order seen from outside.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Float, Int
from numpy.typing import ArrayLike

Number = float | int
Point = tuple[Number, Number, Number]
Colour = tuple[float, float, float]
Vector = Sequence[Number] | Float[np.ndarray, "3"]
Vectors = Sequence[Vector] | Float[np.ndarray, "point 3"]

GREY: Colour = (0.6, 0.6, 0.6)
CREASE = math.radians(40)
"""Angle between faces above which there is an edge between them; other faces are shaded as one round surface."""
_AROUND = 12


@dataclasses.dataclass(frozen=True)
class Mesh:
    """Triangles with a colour each."""

    vertices: Float[np.ndarray, "vertex 3"]
    """Positions."""
    faces: Int[np.ndarray, "face 3"]
    """Numbers of the three vertices of each triangle."""
    colours: Float[np.ndarray, "face 3"]
    """Share of red, green and blue light that each triangle reflects."""
    gloss: Float[np.ndarray, " face"]
    """Strength of the highlight on each triangle."""

    def painted(self, colour: Colour, gloss: Number = 0.0) -> Mesh:
        """Return the body in one colour.

        :param colour: red, green and blue in [0, 1].
        :param gloss: (default 0) strength of the highlight.
        """
        colours = np.tile(np.array(colour, dtype=float), (len(self.faces), 1))
        return dataclasses.replace(self, colours=colours, gloss=np.full(len(self.faces), float(gloss)))

    def moved(self, x: Number = 0.0, y: Number = 0.0, z: Number = 0.0) -> Mesh:
        """Return the body at another position.

        :param x: (default 0) distance ahead.
        :param y: (default 0) distance to the left.
        :param z: (default 0) distance upwards.
        """
        return dataclasses.replace(self, vertices=self.vertices + np.array([x, y, z]))

    def scaled(self, x: Number, y: Number, z: Number) -> Mesh:
        """Return the body stretched along the axes.

        :param x: factor of the length, positive.
        :param y: factor of the width, positive.
        :param z: factor of the height, positive.
        """
        return dataclasses.replace(self, vertices=self.vertices * np.array([x, y, z]))

    def turned(self, axis: int, angle: Number) -> Mesh:
        """Return the body turned about an axis through the origin, by the right-hand rule.

        :param axis: 0 for x, 1 for y, 2 for z.
        :param angle: angle in radians.
        """
        # Indices in cyclic order make the turn right-handed for every axis.
        first, second = (axis + 1) % 3, (axis + 2) % 3
        vertices = self.vertices.copy()
        cos, sin = math.cos(angle), math.sin(angle)
        vertices[:, first] = cos * self.vertices[:, first] - sin * self.vertices[:, second]
        vertices[:, second] = sin * self.vertices[:, first] + cos * self.vertices[:, second]
        return dataclasses.replace(self, vertices=vertices)

    def mirrored(self) -> Mesh:
        """Return the body with left and right exchanged."""
        # A mirror image reverses the orientation of the faces, so their corners are reversed too.
        return dataclasses.replace(
            self, vertices=self.vertices * np.array([1, -1, 1]), faces=self.faces[:, ::-1]
        )

    def both_sides(self) -> Mesh:
        """Return the body and its mirror image: a pair of wheels, legs or wings."""
        return join(self, self.mirrored())

    def fitted(self, radius: Number) -> Mesh:
        """Return the body centred on the ground and scaled such that a ball of this radius contains its bounding box.

        :param radius: half the diagonal of the box around the body.
        """
        low, high = self.vertices.min(axis=0), self.vertices.max(axis=0)
        scale = 2 * radius / math.sqrt(float(((high - low) ** 2).sum()))
        middle = (low + high) / 2
        middle[2] = low[2]
        return dataclasses.replace(self, vertices=(self.vertices - middle) * scale)

    @property
    def height(self) -> float:
        """Height of the highest point above the ground."""
        return float(self.vertices[:, 2].max())

    @property
    def volume(self) -> float:
        """Volume of a closed body, by the divergence theorem; negative if its triangles face inwards."""
        a, b, c = (self.vertices[self.faces[:, corner]] for corner in range(3))
        return float((a * np.cross(b, c)).sum() / 6)

    @functools.cached_property
    def corner_normals(self) -> Float[np.ndarray, "face 3 3"]:
        """Unit normals at the corners of the triangles, averaged over the faces at a vertex that no edge separates."""
        a, b, c = (self.vertices[self.faces[:, corner]] for corner in range(3))
        weighted = np.cross(b - a, c - a)  # as long as twice the area
        length = np.sqrt((weighted**2).sum(axis=1, keepdims=True))
        unit = weighted / np.maximum(length, 1e-12)
        corners = self.faces.reshape(-1)  # corner k of face f is 3 f + k
        order = np.argsort(corners, kind="stable")
        starts = np.searchsorted(corners[order], np.arange(len(self.vertices) + 1))
        counts = np.diff(starts)
        # Every pair of corners at one vertex: repeat each corner as often as its vertex has corners.
        repeats = counts[corners[order]]
        corner = np.repeat(order, repeats)
        offsets = np.arange(repeats.sum()) - np.repeat(np.cumsum(repeats) - repeats, repeats)
        neighbour = order[np.repeat(starts[corners[order]], repeats) + offsets]
        # Faces that meet at an edge do not share a normal.
        is_smooth = (unit[corner // 3] * unit[neighbour // 3]).sum(axis=1) > math.cos(CREASE)
        corner, contribution = corner[is_smooth], weighted[neighbour[is_smooth] // 3]
        normals = np.stack(
            [np.bincount(corner, weights=part, minlength=len(corners)) for part in contribution.T], axis=1
        )
        size = np.sqrt((normals**2).sum(axis=1, keepdims=True))
        # If neighbours cancel, the normal of the face itself is used.
        normals = np.where(size > 1e-12, normals / np.maximum(size, 1e-12), np.repeat(unit, 3, axis=0))
        return normals.reshape(-1, 3, 3)


def join(*meshes: Mesh) -> Mesh:
    """Join several bodies into one.

    :param meshes: the bodies.
    """
    starts = np.cumsum([0, *(len(mesh.vertices) for mesh in meshes)])
    return Mesh(
        np.concatenate([mesh.vertices for mesh in meshes]),
        np.concatenate([mesh.faces + start for mesh, start in zip(meshes, starts[:-1], strict=True)]),
        np.concatenate([mesh.colours for mesh in meshes]),
        np.concatenate([mesh.gloss for mesh in meshes]),
    )


def solid(vertices: ArrayLike, faces: ArrayLike) -> Mesh:
    """Return a grey mesh of triangles.

    :param vertices: positions, (vertex, 3).
    :param faces: numbers of vertices, (face, 3).
    """
    points, triangles = np.asarray(vertices, dtype=float), np.asarray(faces, dtype=np.int64)
    n = len(triangles)
    return Mesh(points, triangles, np.tile(np.array(GREY), (n, 1)), np.zeros(n))


def loft(rings: Float[np.ndarray, "station ring 3"]) -> Mesh:
    """Build a closed body through a row of rings; flat lids close its ends.

    :param rings: closed outlines with equally many points, in order along the body.
    """
    stations, around, _ = rings.shape
    number = np.arange(stations * around).reshape(stations, around)
    a, d = number[:-1], number[1:]
    # The ring is closed, so the last point is followed by the first.
    b, c = np.roll(a, -1, axis=1), np.roll(d, -1, axis=1)
    sides = np.concatenate([np.stack([a, b, c], axis=-1), np.stack([a, c, d], axis=-1)], axis=1).reshape(
        -1, 3
    )
    # Each lid has its own vertex at its centre.
    first, last = stations * around, stations * around + 1
    here, there = number[0], number[-1]
    start = np.stack([np.full(around, first), np.roll(here, -1), here], axis=1)
    end = np.stack([np.full(around, last), there, np.roll(there, -1)], axis=1)
    middles = [rings[0].mean(axis=0), rings[-1].mean(axis=0)]
    mesh = solid(np.concatenate([rings.reshape(-1, 3), middles]), np.concatenate([sides, start, end]))
    # The rings can be listed in either direction; faces must point outwards.
    return mesh if mesh.volume >= 0 else dataclasses.replace(mesh, faces=mesh.faces[:, ::-1])


def box(length: Number, width: Number, height: Number, bevel: Number = 0.0) -> Mesh:
    """Build a block around the origin with bevelled edges.

    :param length: size along x.
    :param width: size along y.
    :param height: size along z.
    :param bevel: (default 0) width of the bevel at every edge.
    """

    def ring(x: Number, inset: Number) -> list[Point]:
        y, z = width / 2 - inset, height / 2 - inset
        cut = bevel - inset  # the ends are already inset
        outline = [(y - cut, -z), (y, cut - z), (y, z - cut), (y - cut, z)]
        half = [(x, *point) for point in outline]
        # The second half is the first one turned by 180° about x.
        return [*half, *((x, -y_, -z_) for _, y_, z_ in half)]

    x = length / 2
    if bevel == 0:
        square = [
            (width / 2, -height / 2),
            (width / 2, height / 2),
            (-width / 2, height / 2),
            (-width / 2, -height / 2),
        ]
        return loft(np.array([[(end, *point) for point in square] for end in (-x, x)]))
    return loft(np.array([ring(-x, bevel), ring(bevel - x, 0), ring(x - bevel, 0), ring(x, bevel)]))


def ellipsoid(x: Number, y: Number, z: Number, around: int = _AROUND) -> Mesh:
    """Build an ellipsoid around the origin.

    :param x: half its length.
    :param y: half its width.
    :param z: half its height.
    :param around: (default 12) number of points of a ring; there are half as many rings.
    """
    stations = around // 2
    # The poles are not rings; they replace the centres of the lids below.
    latitude = (np.arange(1, stations) / stations - 0.5) * math.pi
    turn = 2 * math.pi * np.arange(around) / around
    rings = np.stack(
        [
            np.repeat(np.sin(latitude)[:, None], around, axis=1),
            np.cos(latitude)[:, None] * np.cos(turn),
            np.cos(latitude)[:, None] * np.sin(turn),
        ],
        axis=-1,
    )
    mesh = loft(rings)
    poles = np.array([[-1.0, 0, 0], [1, 0, 0]])  # replace the centres of the lids
    return dataclasses.replace(mesh, vertices=np.concatenate([mesh.vertices[:-2], poles])).scaled(x, y, z)


def tube(path: Vectors, radii: Sequence[Number], around: int = _AROUND, flat: Number = 1.0) -> Mesh:
    """Build a round body along a path, with flat ends.

    :param path: points of its axis.
    :param radii: radius at every point; 0 at an end makes a tip.
    :param around: (default 12) number of points of a ring.
    :param flat: (default 1) factor of the vertical radius of parts along x or y.
    """
    points = np.asarray(path, dtype=float)
    ahead = np.gradient(points, axis=0)
    ahead /= np.sqrt((ahead**2).sum(axis=1, keepdims=True))
    # The same sideways direction at every point, because otherwise the rings would twist.
    whole = points[-1] - points[0]
    across = abs(whole[1]) >= 0.9 * math.sqrt(float((whole**2).sum()))
    sideways = np.array([1.0, 0.0, 0.0] if across else [0.0, 1.0, 0.0])
    second = np.cross(ahead, sideways)
    second /= np.sqrt((second**2).sum(axis=1, keepdims=True))
    first = np.cross(second, ahead)
    turn = (2 * math.pi * np.arange(around) / around)[:, None]
    radius = np.array(radii, dtype=float)[:, None, None]
    circle = np.cos(turn) * first[:, None] + flat * np.sin(turn) * second[:, None]
    return loft(points[:, None] + radius * circle)


def limb(start: Vector, end: Vector, thick: Number, thin: Number, around: int = 10) -> Mesh:
    """Build a straight round body that becomes thinner, with round ends: a leg, an arm, a neck.

    :param start: centre of its first end.
    :param end: centre of its last end.
    :param thick: radius at the start.
    :param thin: radius at the end.
    :param around: (default 10) number of points of a ring.
    """
    a, b = np.asarray(start, dtype=float), np.asarray(end, dtype=float)
    along = (b - a) / math.sqrt(float(((b - a) ** 2).sum()))
    path = [a - thick * along, a - 0.6 * thick * along, a, b, b + 0.6 * thin * along, b + thin * along]
    return tube(np.array(path), (0.05 * thick, 0.8 * thick, thick, thin, 0.8 * thin, 0.05 * thin), around)


def wheel(radius: Number, width: Number, tyre: Colour, rim: Colour) -> Mesh:
    """Build a wheel around the origin that rolls along x: a tyre and, on both sides, a rim.

    :param radius: radius of the tyre.
    :param width: width of the tyre.
    :param tyre: colour of the tyre.
    :param rim: colour of the rim.
    """
    half = width / 2
    path = [(0, -half, 0), (0, 0.2 * width - half, 0), (0, half - 0.2 * width, 0), (0, half, 0)]
    rubber = tube(path, (0.9 * radius, radius, radius, 0.9 * radius), 16).painted(tyre)
    disc = tube([(0, -half - 0.02 * width, 0), (0, half + 0.02 * width, 0)], (0.62 * radius,) * 2, 14)
    hub = tube([(0, -half - 0.05 * width, 0), (0, half + 0.05 * width, 0)], (0.2 * radius,) * 2, 8)
    return join(rubber, disc.painted(rim, 0.2), hub.painted(tyre))


def plate(outline: Vectors, thickness: Number) -> Mesh:
    """Build a flat body with a convex outline: a wing, a fin, an ear.

    :param outline: its corners, in a plane.
    :param thickness: size across that plane.
    """
    points = np.asarray(outline, dtype=float)
    shift = _normal(points) * thickness / 2
    return loft(np.array([points - shift, points + shift]))


def panel(outline: Vectors, lift: Number) -> Mesh:
    """Build a sheet just above a surface, visible from the side on which its outline is anticlockwise: a window.

    :param outline: its corners on the surface; they form a convex outline in a plane.
    :param lift: distance above the surface.
    """
    points = np.asarray(outline, dtype=float)
    points = points + lift * _normal(points)
    # A convex outline is a fan of triangles around its first corner.
    fan = np.arange(1, len(points) - 1)
    return solid(points, np.stack([np.zeros_like(fan), fan, fan + 1], axis=1))


def revolve(
    profile: Callable[[float], float], start: Number, end: Number, stations: int, around: int = 14
) -> Mesh:
    """Build a round body along x whose radius is a function: a fuselage, a tank.

    :param profile: function that returns the radius at a share, 0 … 1, of the length.
    :param start: x at its first end.
    :param end: x at its last end.
    :param stations: number of rings.
    :param around: (default 14) number of points of a ring.
    """
    shares = [station / (stations - 1) for station in range(stations)]
    path = [(start + share * (end - start), 0.0, 0.0) for share in shares]
    return tube(path, [profile(share) for share in shares], around)


def _normal(points: Float[np.ndarray, "point 3"]) -> Float[np.ndarray, "3"]:
    """Return the unit normal of a flat outline (Newell's sum)."""
    normal = np.cross(points, np.roll(points, -1, axis=0)).sum(axis=0)
    return normal / math.sqrt(float((normal**2).sum()))
