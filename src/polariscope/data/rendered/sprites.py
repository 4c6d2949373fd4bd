"""White squares, ellipses and hearts on black: the factor grid of dSprites, rendered from the factors."""

from __future__ import annotations

import dataclasses
import functools
import math

import numpy as np
from jaxtyping import Float, Int, UInt8
from numpy.typing import ArrayLike

from polariscope.core import files
from polariscope.core.errors import InputError
from polariscope.data.dataset import AbstractGridDataset, dataset

_N_ANGLES = 39  # the last of the 40 orientations equals the first
_DRAWING = 2  # part of the fingerprint; increase it whenever an image changes
# Measures of the largest upright sprites of the original, in its pixels (64 × 64). They were fitted to the frames of
# its animation and reproduce every pixel of 92 squares and ellipses, and all but 24 of 38,476 white pixels of 174
# hearts.
_HALF_SIDE = 9.598
_SEMI_AXES = (12.766, 7.214)
_HEART_HALF_WIDTH = 9.592
_HEART_HEIGHT = 0.6625  # pixels per unit of its formula
_HEART_LIFT = 1.435  # height of the formula's origin above the position
_TABLE_STEPS = 8  # steps per pixel in the table of distances to the heart
_TABLE_REACH = 24


@dataset("sprites")
@dataclasses.dataclass(frozen=True)
class SpritesDataset(AbstractGridDataset):
    r"""One white sprite on black: every shape, scale, orientation and position once.

    The factor grid, the index order and the measures are those of dSprites: shape 3 (square, ellipse, heart), scale 6
    (0.5 … 1), orientation 40 (0 … 2π, both ends included), x 32 (to the right), y 32 (downwards); y varies fastest.
    In an image of S pixels the centres run from S/4 to 3S/4. With scale s, in units of S/64 pixels, the square has
    sides of 19.2 s, the ellipse semi-axes of 12.77 s and 7.21 s, and the heart the outline

    .. math:: x = 9.59 s \sin^3 t, \quad
              y = 1.43 s + 0.66 s (13 \cos t - 5 \cos 2t - 2 \cos 3t - \cos 4t)

    with y upwards. The orientation turns anticlockwise. A pixel is white if its centre lies in the shape. With
    antialiasing its brightness is

    .. math:: c = \mathrm{clip}(1/2 - d, 0, 1)

    with the signed distance d in pixels from its centre to the shape's outline. At 64 pixels, compared with the
    published pictures, the images are those of the original except for single pixels on the outlines of hearts.

    Distinct images: orientation 39 equals orientation 0 (the original's endpoint), so 737,280 indices contain at most
    718,848 images. Squares and ellipses repeat every quarter or half turn, but 4(k − l)/39 is an integer only if
    (k − l)/39 is, so symmetry adds no duplicates. Binary pixels do: at 64 pixels 715,756 images differ, since squares
    and small ellipses can cover the same pixels at two angles that nearly agree, up to symmetry. Antialiased images
    have no duplicates from 16 pixels on, at the positions that the tests cover; below 16, some poses share an image.

    Reference: Matthey et al., dSprites (matthey2017). Difference: there is no constant colour factor.

    >>> data = SpritesDataset()
    >>> len(data), data.images([0, 737_279]).shape, data.factors([33]).tolist()
    (737280, (2, 1, 64, 64), [[0, 0, 0, 1, 1]])
    """

    image_size: int = 64
    """Height and width in pixels, at least 8."""
    antialias: bool | None = None
    """If True, outlines are grey; if False, pixels are binary. None: binary at multiples of 64 pixels, as in the
    original, and grey at other sizes, at which binary images could not distinguish neighbouring poses."""

    factor_names = ("shape", "scale", "orientation", "x", "y")
    factor_sizes = (3, 6, 40, 32, 32)
    factor_kinds = ("categorical", "ordinal", "cyclic", "ordinal", "ordinal")
    scratch_bytes = 32 * 2**20  # mostly needed once, for the heart's table

    def __post_init__(self) -> None:
        if self.image_size < 8:
            raise InputError("image_size", "be at least 8 pixels to show a sprite", got=self.image_size)

    @property
    def shape(self) -> tuple[int, ...]:
        return (1, self.image_size, self.image_size)

    @property
    def fingerprint(self) -> str:
        """Hash of the options and of the version of the renderer: results of another version are not reused."""
        return files.digest({**self.describe(), "drawing": _DRAWING})

    def images(self, indices: ArrayLike | int) -> UInt8[np.ndarray, "sample channel height width"]:
        poses = self.factors(indices)
        antialias = self.image_size % 64 != 0 if self.antialias is None else self.antialias
        # Only a window around the sprite is rendered; all other pixels are black.
        start = _window_starts(poses[:, 3:], self.image_size)
        patches = _draw(poses, start, self.image_size, antialias)
        canvas = np.zeros((len(poses), self.image_size, self.image_size), dtype=np.uint8)
        windows = np.lib.stride_tricks.sliding_window_view(
            canvas, patches.shape[1:], axis=(1, 2), writeable=True
        )
        # The view of all windows writes every patch into its image at once.
        windows[np.arange(len(poses)), start[:, 1], start[:, 0]] = patches
        return canvas[:, np.newaxis]


def _reach(image_size: int) -> int:
    """Return the distance in whole pixels from a centre to the corner of the largest square, the farthest point."""
    return math.floor(_HALF_SIDE * math.sqrt(2) * image_size / 64)


def _window_starts(positions: Int[np.ndarray, "sample 2"], image_size: int) -> Int[np.ndarray, "sample 2"]:
    """Return the first column and row of the window around each sprite; all windows lie in the image.

    A centre c lies at S/4 + S k / 62, and only pixels i with |i + ½ − c| < reach + 1½ are coloured.
    """
    reach = _reach(image_size)
    wanted = (31 * image_size + 2 * image_size * positions) // 124 - (reach + 1)
    return np.clip(wanted, 0, image_size - (2 * reach + 3))


def _draw(
    poses: Int[np.ndarray, "sample 5"],
    start: Int[np.ndarray, "sample 2"],
    image_size: int,
    antialias: bool,
) -> UInt8[np.ndarray, "sample patch patch"]:
    """Render each sprite into its window. Coordinates are in pixels of the largest sprite at 64 × 64."""
    size = 2 * _reach(image_size) + 3
    pixels = np.arange(size, dtype=np.float32)
    turns = [2 * math.pi * (k % _N_ANGLES) / _N_ANGLES for k in range(_N_ANGLES + 1)]
    cosines = np.array([math.cos(turn) for turn in turns], dtype=np.float32)
    sines = np.array([math.sin(turn) for turn in turns], dtype=np.float32)
    units = np.linspace(0.5, 1, 6, dtype=np.float32) * np.float32(image_size / 64)
    # Centre of the first pixel relative to that of the sprite, in whole 124ths of a pixel before the division.
    first = (62 + 124 * start - 31 * image_size - 2 * image_size * poses[:, 3:]) / 124
    patches = np.empty((len(poses), size, size), dtype=np.uint8)
    chunk = max(1, 2**16 // size**2)  # so temporary arrays fit the processor's cache
    for kind, outline in enumerate((_square, _ellipse, _heart)):
        members = np.flatnonzero(poses[:, 0] == kind)
        for begin in range(0, len(members), chunk):
            rows = members[begin : begin + chunk]
            _, scale, angle, _, _ = poses[rows].T[:, :, np.newaxis, np.newaxis]
            unit, cosine, sine = units[scale], cosines[angle], sines[angle]
            first_x, first_y = first[rows].T.astype(np.float32)[:, :, np.newaxis, np.newaxis]
            right = (first_x + pixels) / unit
            up = -(first_y + pixels[:, np.newaxis]) / unit
            distance = outline(cosine * right + sine * up, cosine * up - sine * right)
            if antialias:
                patches[rows] = np.rint(np.clip(np.float32(0.5) - distance * unit, 0, 1) * np.float32(255))
            else:
                patches[rows] = (distance < 0) * np.uint8(255)
    return patches


# Signed distances to the outlines. They use only operations that IEEE 754 rounds exactly, so a pixel does not depend on
# the batch in which it is rendered.


def _square(u: Float[np.ndarray, "*pixels"], v: Float[np.ndarray, "*pixels"]) -> Float[np.ndarray, "*pixels"]:
    beyond_u, beyond_v = np.abs(u) - np.float32(_HALF_SIDE), np.abs(v) - np.float32(_HALF_SIDE)
    outside = np.sqrt(np.maximum(beyond_u, 0) ** 2 + np.maximum(beyond_v, 0) ** 2)
    return outside + np.minimum(np.maximum(beyond_u, beyond_v), 0)


def _ellipse(
    u: Float[np.ndarray, "*pixels"], v: Float[np.ndarray, "*pixels"]
) -> Float[np.ndarray, "*pixels"]:
    """Return the first-order distance (k − 1) / |∇k| with k = |(u/a, v/b)|, which is exact on the axes."""
    a, b = (np.float32(axis) for axis in _SEMI_AXES)
    tiny = np.float32(1e-12)  # keeps the centre, where the gradient is undefined, well inside
    p, q = u / a, v / b
    k = np.sqrt(np.maximum(p**2 + q**2, tiny))
    first_order = (k - 1) * k / np.sqrt(np.maximum((p / a) ** 2 + (q / b) ** 2, tiny))
    # Outside, this is less than the distance, so much that tiny sprites would colour the border of the image.
    return np.maximum(first_order, np.sqrt(u**2 + v**2) - a)


def _heart(u: Float[np.ndarray, "*pixels"], v: Float[np.ndarray, "*pixels"]) -> Float[np.ndarray, "*pixels"]:
    """Interpolate in a table, since the distance to this outline has no closed form."""
    table = _heart_table()
    reach = np.float32(_TABLE_REACH * _TABLE_STEPS - 0.5)  # beyond it all pixels are black at any scale
    column = np.minimum(np.abs(u) * np.float32(_TABLE_STEPS), reach)
    row = np.clip(v * np.float32(_TABLE_STEPS), -reach, reach) + np.float32(_TABLE_REACH * _TABLE_STEPS)
    i, j = row.astype(np.int32), column.astype(np.int32)
    down, along = row - i.astype(np.float32), column - j.astype(np.float32)
    # The indices of the four corners of a cell in the flattened table.
    corner, width = i * np.int32(table.shape[1]) + j, table.shape[1]
    flat = table.reshape(-1)
    here, right = flat[corner], flat[corner + 1]
    above, across = flat[corner + width], flat[corner + width + 1]
    lower = here + along * (right - here)
    return lower + down * (above + along * (across - above) - lower)


@functools.cache
def _heart_table() -> Float[np.ndarray, "height width"]:
    """Return the signed distances to the heart at u = 0 … reach and v = −reach … reach, in steps of 1 / steps.

    The heart is symmetric, so its right half suffices. There sin t grows with x up to the widest point and then falls,
    so each x has two t, and with c = |cos t| the inside is |y − (4 − 2c² − 8c⁴)| < 19c − 8c³.
    """
    from scipy.spatial import cKDTree

    t = np.linspace(0, math.pi, 4001)
    y = 13 * np.cos(t) - 5 * np.cos(2 * t) - 2 * np.cos(3 * t) - np.cos(4 * t)
    outline = np.stack([_HEART_HALF_WIDTH * np.sin(t) ** 3, _HEART_HEIGHT * y + _HEART_LIFT], axis=1)
    n = _TABLE_REACH * _TABLE_STEPS
    v, u = np.meshgrid(np.arange(-n, n + 1) / _TABLE_STEPS, np.arange(n + 1) / _TABLE_STEPS, indexing="ij")
    points = np.stack([u, v], axis=-1).reshape(-1, 2)
    _, nearest = cKDTree(outline).query(points)
    distance = np.minimum(
        _to_segment(points, outline[np.maximum(nearest - 1, 0)], outline[nearest]),
        _to_segment(points, outline[nearest], outline[np.minimum(nearest + 1, len(outline) - 1)]),
    ).reshape(u.shape)
    c = np.sqrt(1 - np.cbrt(np.minimum(u / _HEART_HALF_WIDTH, 1)) ** 2)
    inside = np.abs((v - _HEART_LIFT) / _HEART_HEIGHT - (4 - 2 * c**2 - 8 * c**4)) < 19 * c - 8 * c**3
    return np.where(inside, -distance, distance).astype(np.float32)


def _to_segment(
    points: Float[np.ndarray, "point 2"], a: Float[np.ndarray, "point 2"], b: Float[np.ndarray, "point 2"]
) -> Float[np.ndarray, " point"]:
    """Return the distance of each point to its segment from a to b; a segment can have length 0."""
    along = b - a
    length = np.maximum((along**2).sum(axis=1), np.finfo(np.float64).tiny)
    share = np.clip(((points - a) * along).sum(axis=1) / length, 0, 1)
    return np.linalg.norm(points - a - share[:, np.newaxis] * along, axis=1)
