r"""A room with one object, seen by a camera that moves around it: the surface that each ray meets, and its brightness.

Lengths are in units of the distance between the camera and the object's axis, which is the z axis; the floor is z = 0.
The camera is at (−sin θ, −cos θ, h) and points horizontally at the axis, so vertical edges are vertical in the image.
With image height 1, the ray of the point (u, v), from −½ to ½ and downwards, is

.. math:: (\sin θ + u \cos θ,\; \cos θ - u \sin θ,\; h_0 - v)

with the position h₀ of the horizon. The measures were fitted to published pictures of Shapes3D.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any, Literal

import numpy as np
from jaxtyping import Bool, Float, UInt8

Solid = Literal["cube", "cylinder", "sphere", "capsule"]
SOLIDS: tuple[Solid, ...] = ("cube", "cylinder", "sphere", "capsule")
SKY, FLOOR, WALL, OBJECT = range(4)

CAMERA_HEIGHT = 0.316
HORIZON = -0.006
WALL_DISTANCE = 1.51
WALL_HEIGHT = 0.924
GAP = 0.004
"""Distance between the floor and the lowest point of an object, as in the original."""
HALF_SIDE = 0.15
CYLINDER = (0.159, 0.16)
"""Radius and half the height at scale 1."""
SPHERE_RADIUS = 0.181
CAPSULE = (0.138, 0.143)
"""Radius and half the height of the straight part at scale 1."""
REACH = 0.28
"""Maximum distance of an object from its axis."""
SHADOW_REACH = 0.6
LIGHT = np.array([-0.656, 0.163, 3.38])
LAMP_RADIUS = 0.09
"""Radius of the light, a small disc, which gives shadows soft edges."""
AMBIENT, AMBIENT_FLOOR = 0.371, 0.357
HEADLIGHT = 0.57
LAMP, LAMP_FOCUS = 0.937, 11.0
HIGHLIGHT = 0.109
"""White that the lamp adds to the object where it faces the lamp."""
TERMINATOR = 0.05
"""Cosine to the lamp from which all of this white is added."""
BRIGHTEST, BRIGHTEST_OBJECT = 1.25, 1.1
"""Limits of the brightness, such that a channel of 4/5 of full colour never exceeds white."""
MARKS = (0.89, 0.08, 0.86, 0.73)
"""Marks on the walls: their distance and the position of one of them on the back wall, and those on the side walls."""

Points = Float[np.ndarray, "*rays 3"]
Starts = Float[np.ndarray, "*#rays 3"]
"""One point for each ray, or one for all."""
Lengths = Float[np.ndarray, "*rays"]


@dataclasses.dataclass(frozen=True)
class View:
    """The surface that each ray meets, by rows from the top: its kind, its brightness and its highlight."""

    surface: UInt8[np.ndarray, "height width"]
    brightness: Float[np.ndarray, "height width"]
    highlight: Float[np.ndarray, "height width"]


def cast_rays(solid: Solid, scale: float, angle: float, n_rays: int) -> View:
    r"""Cast a square of rays into the room.

    With the surface's normal n, the viewing direction f of the camera, and ℓ from the surface to the lamp, the
    brightness is

    .. math:: a + k_h \max(0, -n·f) + k_\ell\, s\, \max(0, n·ℓ)\, ℓ_z^e

    where s is the share of the lamp that is visible from the point. Only the object casts a shadow, on the floor.

    :param solid: the object in the room.
    :param scale: its size; 1 is in the middle of the range.
    :param angle: position θ of the camera, in radians.
    :param n_rays: rays along each side of the image.
    """
    start, rays = camera(angle, n_rays)
    # All other columns miss the circle around the object.
    is_central = np.abs(columns(n_rays)) < REACH / math.sqrt(1 - REACH**2)
    to_object = np.full(rays.shape[:2], np.inf)
    to_object[:, is_central] = distance_to(solid, scale, start, rays[:, is_central])
    to_wall, is_side = _walls(start, rays)
    # Horizontal rays never meet the floor.
    with np.errstate(divide="ignore"):
        to_floor = np.where(rays[..., 2] < 0, -start[2] / rays[..., 2], np.inf)
    is_sky = start[2] + to_wall * rays[..., 2] > WALL_HEIGHT
    to_wall = np.where(is_sky, np.inf, to_wall)
    nearest = np.minimum(np.minimum(to_floor, to_wall), to_object)
    surface = np.select(
        [np.isinf(nearest), to_object == nearest, to_floor == nearest], [SKY, OBJECT, FLOOR], WALL
    ).astype(np.uint8)
    # Infinity times 0 would be NaN; the sky needs no point.
    points = start + np.where(np.isinf(nearest), 0, nearest)[..., np.newaxis] * rays
    is_object, is_floor, is_wall = surface == OBJECT, surface == FLOOR, surface == WALL
    normals = np.zeros_like(points)
    normals[is_object] = _normals(solid, scale, points[is_object])
    normals[is_floor] = (0, 0, 1)
    normals[is_wall & is_side, 0] = -np.sign(rays[is_wall & is_side, 0])
    normals[is_wall & ~is_side, 1] = -1
    view_direction = np.array([math.sin(angle), math.cos(angle), 0])
    to_lamp = LIGHT - points
    to_lamp /= np.sqrt(_dot(to_lamp, to_lamp))[..., np.newaxis]
    facing = _dot(normals, to_lamp)
    lamp = LAMP * np.maximum(facing, 0) * to_lamp[..., 2] ** LAMP_FOCUS
    lamp[is_floor] *= _lamp_seen(solid, scale, points[is_floor])
    brightness = (
        np.where(is_floor, AMBIENT_FLOOR, AMBIENT)
        + HEADLIGHT * np.maximum(-normals @ view_direction, 0)
        + lamp
    )
    brightness[is_wall] *= 1 - _marks(points[is_wall], is_side[is_wall])
    limit = np.where(is_object, BRIGHTEST_OBJECT, BRIGHTEST)
    highlight = np.where(is_object, HIGHLIGHT * np.clip(facing / TERMINATOR, 0, 1), 0.0)
    return View(surface, np.minimum(brightness, limit), highlight)


def camera(angle: float, n_rays: int) -> tuple[Float[np.ndarray, " 3"], Float[np.ndarray, "height width 3"]]:
    """Return the position of the camera and the directions of its rays, of length 1 along the optical axis.

    :param angle: θ, in radians.
    :param n_rays: rays along each side of the image.
    """
    across = columns(n_rays)
    sine, cosine = math.sin(angle), math.cos(angle)
    rays = np.empty((n_rays, n_rays, 3))
    rays[..., 0] = sine + across * cosine
    rays[..., 1] = cosine - across * sine
    rays[..., 2] = -HORIZON - across[:, np.newaxis]
    return np.array([-sine, -cosine, CAMERA_HEIGHT]), rays


def columns(n_rays: int) -> Float[np.ndarray, " column"]:
    """Return the positions of the columns, or rows, of rays, from −½ to ½.

    :param n_rays: number of columns.
    """
    return (np.arange(n_rays) + 0.5) / n_rays - 0.5


def distance_to(solid: Solid, scale: float, start: Starts, rays: Points) -> Lengths:
    """Return the distance to an object at the origin in lengths of each ray; infinite if the ray misses it.

    :param solid: the object.
    :param scale: its size.
    :param start: start of the rays, outside the object.
    :param rays: directions of the rays.
    """
    if solid == "cube":
        return _to_box(start - [0, 0, GAP + HALF_SIDE * scale], rays, HALF_SIDE * scale)
    if solid == "sphere":
        return _to_sphere(start - [0, 0, GAP + SPHERE_RADIUS * scale], rays, SPHERE_RADIUS * scale)
    radius, half_height = np.array(CYLINDER if solid == "cylinder" else CAPSULE) * scale
    if solid == "cylinder":
        middle = start - [0, 0, GAP + half_height]
        return np.minimum(
            _to_tube(middle, rays, radius, half_height), _to_lids(middle, rays, radius, half_height)
        )
    middle = start - [0, 0, GAP + radius + half_height]
    to_ends = [_to_sphere(middle - [0, 0, end], rays, radius) for end in (-half_height, half_height)]
    return np.minimum(_to_tube(middle, rays, radius, half_height), np.minimum(*to_ends))


def _to_sphere(start: Starts, rays: Points, radius: float) -> Lengths:
    """Return the smaller t with |start + t ray| = radius."""
    return _smaller_root(_dot(rays, rays), _dot(start, rays), _dot(start, start) - radius**2)


def _to_tube(start: Starts, rays: Points, radius: float, half_height: float) -> Lengths:
    """Return the smaller t in the plane if the height at t lies in the tube."""
    flat_start, flat_rays = start[..., :2], rays[..., :2]
    length = _smaller_root(
        _dot(flat_rays, flat_rays), _dot(flat_start, flat_rays), _dot(flat_start, flat_start) - radius**2
    )
    height = start[..., 2] + np.where(np.isinf(length), 0, length) * rays[..., 2]
    return np.where(np.abs(height) <= half_height, length, np.inf)


def _to_lids(start: Starts, rays: Points, radius: float, half_height: float) -> Lengths:
    """Return t at the discs that close a cylinder; only the one on the side of the start can be met first."""
    with np.errstate(divide="ignore", invalid="ignore"):
        length = (np.copysign(half_height, start[..., 2]) - start[..., 2]) / rays[..., 2]
        offset = start[..., :2] + length[..., np.newaxis] * rays[..., :2]
    is_met = (length > 0) & (_dot(offset, offset) <= radius**2)
    return np.where(is_met, length, np.inf)


def _to_box(start: Starts, rays: Points, half_side: float) -> Lengths:
    """Return t at the last of the three slabs to be entered, unless another one was left before."""
    with np.errstate(divide="ignore", invalid="ignore"):
        at_low, at_high = (-half_side - start) / rays, (half_side - start) / rays
    first, last = np.minimum(at_low, at_high), np.maximum(at_low, at_high)
    # Slabs of a ray parallel to them contain ±∞, which leaves the other slabs to decide.
    enters = np.maximum(np.maximum(first[..., 0], first[..., 1]), first[..., 2])
    leaves = np.minimum(np.minimum(last[..., 0], last[..., 1]), last[..., 2])
    return np.where((enters < leaves) & (enters > 0), enters, np.inf)


def _dot(a: Float[np.ndarray, "..."], b: Float[np.ndarray, "..."]) -> Any:
    """Return products of vectors; np.sum over so short an axis would be slow."""
    return sum(a[..., axis] * b[..., axis] for axis in range(a.shape[-1]))


def _smaller_root(a: Lengths, b: Lengths, c: Lengths | float) -> Lengths:
    """Return the smaller t with a t² + 2 b t + c = 0; infinite if it does not exist or is not positive."""
    discriminant = b**2 - a * c
    with np.errstate(divide="ignore", invalid="ignore"):
        root = (-b - np.sqrt(np.maximum(discriminant, 0))) / a
    return np.where((discriminant > 0) & (root > 0), root, np.inf)


def _normals(
    solid: Solid, scale: float, points: Float[np.ndarray, "point 3"]
) -> Float[np.ndarray, "point 3"]:
    """Return the outward normals of the object's surface."""
    if solid == "cube":
        offset = points - [0, 0, GAP + HALF_SIDE * scale]
        # The face that a point lies on is that of its largest coordinate.
        face = np.abs(offset).argmax(axis=-1)
        return np.eye(3)[face] * np.sign(offset[np.arange(len(face)), face])[:, np.newaxis]
    outwards = points.copy()
    if solid == "sphere":
        outwards[:, 2] -= GAP + SPHERE_RADIUS * scale
    elif solid == "capsule":
        radius, half_height = np.array(CAPSULE) * scale
        height = points[:, 2] - (GAP + radius + half_height)
        # Along the straight part the normal is horizontal; at the ends it points away from the centre of the
        # half sphere.
        outwards[:, 2] = height - np.clip(height, -half_height, half_height)
    else:
        radius, half_height = np.array(CYLINDER) * scale
        height = points[:, 2] - (GAP + half_height)
        is_lid = np.abs(height) > half_height - 1e-9
        outwards[:, 2] = 0
        outwards[is_lid] = np.sign(height[is_lid])[:, np.newaxis] * [0, 0, 1]
    return outwards / np.linalg.norm(outwards, axis=-1, keepdims=True)


def _walls(start: Float[np.ndarray, " 3"], rays: Points) -> tuple[Lengths, Bool[np.ndarray, "*rays"]]:
    """Return the distance of the walls, and whether a side wall is met."""
    with np.errstate(divide="ignore"):
        to_back = np.where(rays[..., 1] > 0, (WALL_DISTANCE - start[1]) / rays[..., 1], np.inf)
        to_side = (np.copysign(WALL_DISTANCE, rays[..., 0]) - start[0]) / rays[..., 0]
    return np.minimum(to_back, to_side), to_side < to_back


def _lamp_seen(
    solid: Solid, scale: float, points: Float[np.ndarray, "point 3"]
) -> Float[np.ndarray, " point"]:
    """Return the share of the lamp that the object does not hide from points of the floor."""
    seen = np.ones(len(points))
    is_near = _dot(points, points) < SHADOW_REACH**2
    near = points[is_near]
    turns = 2 * math.pi * np.arange(6) / 6
    rim = LIGHT + LAMP_RADIUS * np.stack([np.cos(turns), np.sin(turns), 0 * turns], axis=1)
    # Seven points of the lamp, its centre and six on its rim, give the edge of the shadow eight levels.
    shares = [np.isinf(distance_to(solid, scale, near, spot - near)) for spot in (LIGHT, *rim)]
    seen[is_near] = np.mean(shares, axis=0)
    return seen


def _marks(points: Float[np.ndarray, "point 3"], is_side: Bool[np.ndarray, " point"]) -> Lengths:
    """Return how much darker the faint marks on the walls are: slanted spots at half height."""
    period, first, left, right = MARKS
    # Distance to the nearest mark of the periodic row.
    along = (points[:, 0] - first + period / 2) % period - period / 2
    side = np.where(points[:, 0] < 0, points[:, 1] - left, right - points[:, 1])
    along = np.where(is_side, side, along)
    up = points[:, 2] - WALL_HEIGHT / 2
    lengthwise, across = 0.77 * along - 0.64 * up, 0.64 * along + 0.77 * up
    return 0.09 * np.exp(-np.square((lengthwise / 0.13) ** 2) - (across / 0.07) ** 2)
