"""White squares, ellipses and hearts on black: dSprites' factor grid, drawn from the factors."""

from __future__ import annotations

import dataclasses
import functools
import math

import numpy as np
from jaxtyping import Float, Int, UInt8
from numpy.typing import ArrayLike

from polariscope.core.errors import InputError
from polariscope.data.dataset import AbstractGridDataset, dataset

_N_ANGLES = 39  # 40 orientations, of which the last is the first
_CENTRE_OFFSET = 0.25
_BANK_BYTES = 2**25


@dataset("sprites")
@dataclasses.dataclass(frozen=True)
class SpritesDataset(AbstractGridDataset):
    r"""One white sprite on black: every shape, scale, orientation and position once.

    The factor grid and the index order are those of dSprites: shape 3 (square, ellipse, heart), scale 6
    (0.5 … 1), orientation 40 (0 … 2π, both ends included), x 32 (to the right), y 32 (downwards); y varies
    fastest. The images are our own drawing, not the original's bytes: a pixel is white when its centre lies
    in the shape, or, antialiased, as white as

    .. math:: c = \mathrm{clip}(1/2 - d, 0, 1)

    with d the signed distance in pixels from its centre to the shape's outline. The orientation turns
    anticlockwise. Positions are S/64 pixels apart in an image of S pixels, and the largest sprite is as large
    as leaves the outermost ring of pixels black in every image.

    Distinct images: orientation 39 is orientation 0 (the original's endpoint), so 737,280 indices hold at
    most 718,848 images. Squares and ellipses add no other duplicates: they repeat every quarter or half turn,
    and 4(k − l)/39 is whole only where (k − l)/39 is. With ``antialias=None`` all 718,848 differ at image
    sizes 64 and 128 (binary) and 16, 32, 48 and 96 (antialiased), as the tests enumerate; below 16 pixels
    some poses may share an image, and so they do in binary images of sizes that are not multiples of 64.

    Reference: Matthey et al., dSprites, 2017, https://github.com/google-deepmind/dsprites-dataset. Ours: no
    constant colour factor.

    >>> data = SpritesDataset()
    >>> len(data), data.images([0, 737_279]).shape, data.factors([33]).tolist()
    (737280, (2, 1, 64, 64), [[0, 0, 0, 1, 1]])
    """

    image_size: int = 64
    """Height and width in pixels, at least 8."""
    antialias: bool | None = None
    """Grey outlines instead of binary pixels; none: binary where positions are whole pixels (64, 128, …), and
    grey elsewhere, where a binary image could not tell neighbouring poses apart."""

    factor_names = ("shape", "scale", "orientation", "x", "y")
    factor_sizes = (3, 6, 40, 32, 32)
    factor_kinds = ("categorical", "ordinal", "cyclic", "ordinal", "ordinal")

    def __post_init__(self) -> None:
        if self.image_size < 8:
            raise InputError(f"image_size must be at least 8 pixels to hold a sprite, got {self.image_size}.")

    @property
    def shape(self) -> tuple[int, ...]:
        return (1, self.image_size, self.image_size)

    def images(self, indices: ArrayLike) -> UInt8[np.ndarray, "sample channel height width"]:
        shape, scale, orientation, x, y = self.factors(indices).T
        column, x_phase = np.divmod(x * self.image_size, 64)
        row, y_phase = np.divmod(y * self.image_size, 64)
        poses = np.stack([shape, scale, orientation % _N_ANGLES, x_phase, y_phase], axis=1)
        antialias = self.image_size % 64 != 0 if self.antialias is None else self.antialias
        patches = _patches(poses, self.image_size, antialias)
        canvas = np.zeros((len(poses), self.image_size, self.image_size), dtype=np.uint8)
        windows = np.lib.stride_tricks.sliding_window_view(
            canvas, patches.shape[1:], axis=(1, 2), writeable=True
        )
        windows[np.arange(len(poses)), row + 1, column + 1] = patches
        return canvas[:, np.newaxis]


def _patches(
    poses: Int[np.ndarray, "sample 5"], image_size: int, antialias: bool
) -> UInt8[np.ndarray, "sample patch patch"]:
    """Windows around the sprites: taken from a bank where few differ, drawn where that would be a large one.

    Poses are shape, scale, angle and the position's fraction of a pixel in x and y, in 64ths. Images that
    differ by whole pixels share a window: at 64 pixels there are only 702.
    """
    step = math.gcd(image_size, 64)
    sizes = (3, 6, _N_ANGLES, min(64 // step, 32), min(64 // step, 32))
    if step == 1 or math.prod(sizes) * _patch_size(image_size) ** 2 > _BANK_BYTES:
        return _draw(poses, image_size, antialias)
    keys = np.ravel_multi_index((*poses[:, :3].T, *poses[:, 3:].T // step), sizes)
    return _bank(image_size, antialias, sizes, step)[keys]


@functools.lru_cache(maxsize=4)
def _bank(
    image_size: int, antialias: bool, sizes: tuple[int, ...], step: int
) -> UInt8[np.ndarray, "template patch patch"]:
    poses = np.stack(np.unravel_index(np.arange(math.prod(sizes)), sizes), axis=1)
    return _draw(poses * np.array([1, 1, 1, step, step]), image_size, antialias)


def _patch_size(image_size: int) -> int:
    """Smallest window that holds the largest sprite; at the last position it ends where the image does."""
    return -(-33 * image_size // 64) - 1


def _draw(
    poses: Int[np.ndarray, "sample 5"], image_size: int, antialias: bool
) -> UInt8[np.ndarray, "sample patch patch"]:
    """Render sprites, each into the window that starts at the whole pixel (row + 1, column + 1).

    Centres span 31/64 of the image, which leaves 33/128 on either side. The radius stops one pixel short of
    that, and short of the offset: centres lie a quarter of a pixel beside the lattice's points of symmetry,
    where a square would flip four pixels at a time and binary images of near angles would coincide.
    """
    size = _patch_size(image_size)
    middle = 33 * image_size / 128 - 1
    pixels = np.arange(size, dtype=np.float32) + np.float32(0.5 - middle - _CENTRE_OFFSET)
    turns = [2 * math.pi * k / _N_ANGLES for k in range(_N_ANGLES)]
    cosines = np.array([math.cos(turn) for turn in turns], dtype=np.float32)
    sines = np.array([math.sin(turn) for turn in turns], dtype=np.float32)
    radii = np.linspace(0.5, 1, 6, dtype=np.float32) * np.float32(middle - _CENTRE_OFFSET)
    patches = np.empty((len(poses), size, size), dtype=np.uint8)
    chunk = max(1, 2**16 // size**2)  # temporaries stay in the processor's cache
    for kind, outline in enumerate((_square, _ellipse, _heart)):
        members = np.flatnonzero(poses[:, 0] == kind)
        for start in range(0, len(members), chunk):
            rows = members[start : start + chunk]
            _, scale, angle, x_phase, y_phase = poses[rows].T[:, :, np.newaxis, np.newaxis]
            radius, cosine, sine = radii[scale], cosines[angle], sines[angle]
            right = (pixels - x_phase.astype(np.float32) / 64) / radius
            up = (y_phase.astype(np.float32) / 64 - pixels[:, np.newaxis]) / radius
            distance = outline(cosine * right + sine * up, cosine * up - sine * right) * radius
            coverage = np.clip(np.float32(0.5) - distance, 0, 1) if antialias else distance < 0
            patches[rows] = np.rint(coverage * np.float32(255))
    return patches


# Signed distances to outlines whose smallest enclosing circle is the unit circle. Only operations that
# IEEE 754 rounds exactly, so that a pixel is the same whatever batch it is drawn in.


def _box(
    u: Float[np.ndarray, "*pixels"], v: Float[np.ndarray, "*pixels"], half: float
) -> Float[np.ndarray, "*pixels"]:
    beyond_u, beyond_v = np.abs(u) - np.float32(half), np.abs(v) - np.float32(half)
    outside = np.sqrt(np.maximum(beyond_u, 0) ** 2 + np.maximum(beyond_v, 0) ** 2)
    return outside + np.minimum(np.maximum(beyond_u, beyond_v), 0)


def _square(u: Float[np.ndarray, "*pixels"], v: Float[np.ndarray, "*pixels"]) -> Float[np.ndarray, "*pixels"]:
    return _box(u, v, math.sqrt(0.5))


def _ellipse(
    u: Float[np.ndarray, "*pixels"], v: Float[np.ndarray, "*pixels"]
) -> Float[np.ndarray, "*pixels"]:
    """Half as high as wide. With k = |(u, 2v)|: first-order distance (k − 1) / |∇k|, exact on the axes."""
    tiny = np.float32(1e-12)  # keeps the middle, where the gradient is undefined, well inside
    k = np.sqrt(np.maximum(u**2 + (2 * v) ** 2, tiny))
    first_order = (k - 1) * k / np.sqrt(np.maximum(u**2 + (4 * v) ** 2, tiny))
    # which falls short of the distance outside, so much that tiny sprites would colour the image's border
    return np.maximum(first_order, np.sqrt(u**2 + v**2) - 1)


def _heart(u: Float[np.ndarray, "*pixels"], v: Float[np.ndarray, "*pixels"]) -> Float[np.ndarray, "*pixels"]:
    r"""A square of side a on its corner with a disc of diameter a on each upper side.

    The enclosing circle touches the tip and both discs. With its centre t above the square's,
    √½ a + t = a/2 + |(a/√8, a/√8 − t)| gives t = a (√2 − 1) / (3√2 − 2).
    """
    t = (math.sqrt(2) - 1) / (3 * math.sqrt(2) - 2)
    a = 1 / (math.sqrt(0.5) + t)
    u, v = np.abs(u), v + np.float32(t * a)
    diagonal = np.float32(math.sqrt(0.5))
    centre = np.float32(a / math.sqrt(8))
    disc = np.sqrt((u - centre) ** 2 + (v - centre) ** 2) - np.float32(a / 2)
    return np.minimum(disc, _box((u + v) * diagonal, (u - v) * diagonal, a / 2))
