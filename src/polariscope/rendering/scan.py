"""Pictures of convex solids, rendered by their edges.

The visible faces of a convex solid tile its picture. Along a row of the picture, the brightness changes only at edges,
by the difference of the two faces at the edge (a face that points away counts 0, like the background). A picture is
therefore a sum over edges. The positions at which they cross a row are known exactly, so there are no seams, and every
column is covered by its exact share.
"""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
from jaxtyping import Float, Int

ROWS = 4
"""Number of lines that are evaluated in each row of pixels."""
CAMERA_DISTANCE = 4.0
"""Distance in radii of the sphere around the solid."""
FILLED = 0.84
"""Share of the picture's width that this sphere fills."""
AMBIENT = 0.15
TO_LIGHT = np.array([-0.48, 0.6, 0.64])
"""Direction to the light: left, up and towards the camera."""


@dataclasses.dataclass(frozen=True)
class ConvexMesh:
    """Corners of a convex solid within the unit sphere, the normals of its faces, and its edges.

    An edge leads from its first corner to its second. Seen from outside, its first face is on its left.
    """

    corners: Float[np.ndarray, "corner 3"]
    normals: Float[np.ndarray, "face 3"]
    offsets: Float[np.ndarray, " face"]
    edges: Int[np.ndarray, "edge 2"]
    sides: Int[np.ndarray, "edge 2"]

    @classmethod
    def around(cls, corners: Float[np.ndarray, "corner 3"]) -> ConvexMesh:
        """Build the convex hull of points.

        :param corners: the points.
        """
        from scipy.spatial import ConvexHull

        hull = ConvexHull(corners)
        # Triangles in one plane, as at the end of a cylinder, are one face, which the first of them represents.
        rounded = hull.equations.round(9) + 0.0  # turns −0 into 0
        _, first, face_of = np.unique(rounded, axis=0, return_index=True, return_inverse=True)
        distinct, face_of = np.unique(first[face_of], return_inverse=True)
        normals, offsets = hull.equations[distinct, :3], -hull.equations[distinct, 3]
        triangles = hull.simplices.copy()
        a, b, c = (corners[triangles[:, corner]] for corner in range(3))
        is_clockwise = (np.cross(b - a, c - a) * hull.equations[:, :3]).sum(axis=1) < 0
        triangles[is_clockwise] = triangles[is_clockwise][:, [0, 2, 1]]
        left: dict[tuple[int, int], int] = {}
        for face, (first, second, third) in zip(face_of.tolist(), triangles.tolist(), strict=True):
            left |= {(first, second): face, (second, third): face, (third, first): face}
        ends, sides = [], []
        # Each edge occurs in both directions, once for the face on either side.
        for (start, end), face in sorted(left.items()):
            right = left[end, start]
            if start < end and normals[face] @ normals[right] < 1 - 1e-9:  # halves of one face share no edge
                ends.append((start, end))
                sides.append((face, right))
        return cls(corners, normals, offsets, np.array(ends), np.array(sides))


def pictures(
    mesh: ConvexMesh, turns: Float[np.ndarray, "picture 3 3"], image_size: int
) -> Float[np.ndarray, "picture height width"]:
    """Render a solid in perspective, turned about its centre; brightness from 0, the background, to 1.

    :param mesh: the solid.
    :param turns: a rotation matrix for each picture; x points to the right, y up and z towards the camera.
    :param image_size: height and width in pixels.
    """
    brightness = _brightness(mesh, turns)
    columns, rows = _project(mesh.corners, turns, image_size)
    changes = brightness[:, mesh.sides[:, 1]] - brightness[:, mesh.sides[:, 0]]
    start_row, end_row = rows[:, mesh.edges[:, 0]], rows[:, mesh.edges[:, 1]]
    changes = np.where(start_row > end_row, changes, -changes)  # rows count downwards, so this edge points up
    # Lines are at the centres of quarter rows; the first is not above the upper end of the edge.
    upper = np.ceil(np.minimum(start_row, end_row) * ROWS - 0.5).astype(np.int64)
    lower = np.ceil(np.maximum(start_row, end_row) * ROWS - 0.5).astype(np.int64)
    picture, edge = np.nonzero((changes != 0) & (lower > upper))
    upper, counts = upper[picture, edge], (lower - upper)[picture, edge]
    ends = mesh.edges[edge].T
    from_row, from_column = rows[picture, ends[0]], columns[picture, ends[0]]
    slope = (columns[picture, ends[1]] - from_column) / (rows[picture, ends[1]] - from_row)
    # The column of a crossing is that in row 0 plus a constant for each line.
    at_top, per_line = from_column + slope * (0.5 / ROWS - from_row), slope / ROWS

    def each(values: np.ndarray) -> np.ndarray:
        return np.repeat(values, counts)

    line = np.arange(counts.sum()) - each(np.cumsum(counts) - counts - upper)
    crossing = each(at_top) + each(per_line) * line
    column = crossing.astype(np.int64)
    change = each(changes[picture, edge] / ROWS)
    # Column by column, so sums from left to right are sums of whole columns.
    n_rows = len(turns) * image_size
    pixel = column * n_rows + each(picture * image_size) + line // ROWS
    size = (image_size + 1) * n_rows
    # A crossing within a pixel changes it by the share to the right of the crossing, and the next pixel by
    # the rest.
    steps = np.bincount(pixel, change, size).reshape(-1, n_rows)
    beyond = np.bincount(pixel, change * (crossing - column), size).reshape(-1, n_rows)
    steps -= beyond
    steps[1:] += beyond[:-1]
    # The brightness is the sum of all changes to the left.
    for before, after in itertools.pairwise(steps[:-1]):
        after += before
    return steps[:-1].reshape(image_size, len(turns), image_size).transpose(1, 2, 0)


def _brightness(
    mesh: ConvexMesh, turns: Float[np.ndarray, "picture 3 3"]
) -> Float[np.ndarray, "picture face"]:
    """Return the brightness of the faces: a + (1 − a) ((1 + n·l) / 2)², and 0 if the camera is behind the face.

    The square is 0 only opposite to the light, so faces in the dark differ as well.
    """
    x, y, z = _turned(turns, mesh.normals)
    lit = ((1 + TO_LIGHT[0] * x + TO_LIGHT[1] * y + TO_LIGHT[2] * z) / 2) ** 2
    # The camera is in front of a face if its distance along the normal exceeds that of the face.
    return np.where(z * CAMERA_DISTANCE > mesh.offsets, AMBIENT + (1 - AMBIENT) * lit, 0)


def _turned(
    turns: Float[np.ndarray, "picture 3 3"], vectors: Float[np.ndarray, "vector 3"]
) -> Float[np.ndarray, "3 picture vector"]:
    """Return coordinates of turned vectors, summed in a fixed order, which matrix products do not guarantee."""
    columns = turns.transpose(2, 1, 0)[..., np.newaxis]
    return columns[0] * vectors[:, 0] + columns[1] * vectors[:, 1] + columns[2] * vectors[:, 2]


def _project(
    corners: Float[np.ndarray, "corner 3"], turns: Float[np.ndarray, "picture 3 3"], image_size: int
) -> tuple[Float[np.ndarray, "picture corner"], Float[np.ndarray, "picture corner"]]:
    """Return columns and rows of the corners in pixels."""
    x, y, z = _turned(turns, corners)
    focal = FILLED / 2 * np.sqrt(CAMERA_DISTANCE**2 - 1) * image_size
    depth = CAMERA_DISTANCE - z
    return image_size / 2 + focal * x / depth, image_size / 2 - focal * y / depth
