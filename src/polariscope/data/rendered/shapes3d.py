"""A room with a cube, cylinder, sphere or capsule: the factor grid of Shapes3D, rendered from the factors."""

from __future__ import annotations

import dataclasses
import functools
import math
import types
from collections.abc import Callable
from typing import Annotated

import numpy as np
from annotated_types import Ge
from jaxtyping import Float, Int, UInt8, UInt16
from numpy.typing import ArrayLike

from polariscope.core import files
from polariscope.data.dataset import AbstractGridDataset, dataset
from polariscope.data.footprint import Footprint, batch_bytes
from polariscope.rendering import room

_DRAWING = 1  # part of the fingerprint; increase it whenever an image changes
_SKY = (153, 226, 249)
_SKY_UNIT = 2**13  # units in a pixel that shows only sky
# Units in one of 255 levels in the cached layers. All sums are integers below 2²⁴, so float32 computes them exactly.
_UNIT = 64
_CACHE_BYTES = 2**28
_RAY_BYTES = 208  # memory per ray while a geometry is rendered
_LAYERS = 8  # full and a fifth of the colour of floor, wall and object; white on the object; sky


@dataset("shapes3d", original="shapes3d-original")
@dataclasses.dataclass(frozen=True)
class Shapes3DDataset(AbstractGridDataset):
    r"""One object in a room: every combination of three hues, scale, shape and camera angle once.

    A look-alike of Shapes3D, not the original. The factor grid and the index order are the original's: floor hue 10,
    wall hue 10, object hue 10, scale 8 (0.75 … 1.25), shape 4 (cube, cylinder, sphere, capsule), orientation 15;
    orientation varies fastest. The camera moves around the object in steps of 60°/14, and the corner of the room moves
    from right to left. Measures, colours and light were fitted to 50 published pictures of the original. Hue k is
    the fully saturated colour at k · 36°, so its channels are multiples of 1/5.

    With brightness b of a surface and white w that the lamp adds to it, a channel c of its colour is

    .. math:: \min(1,\; c\, b + w)

    and a pixel is the mean over at least 9 rays, each of which meets one surface, so there are no dark seams. Only 480
    geometries (scale, shape, orientation) differ. The shares of the surfaces in every pixel are rendered once for each
    geometry, for c = 1 and c = 1/5, and cached. An image is a sum of these layers. They take 64 kB at 64 pixels, 31 MB
    for all geometries. For each image size at most 256 MB are cached: all layers up to 186 pixels, and beyond that the
    most recently used ones.

    Distinct images: all 480,000 differ at 64 pixels. Cylinders, spheres and capsules do not turn with the camera, but
    the room behind them does.

    Reference: Kim and Mnih, Disentangling by Factorising (kim2018), which introduced Shapes3D.

    >>> data = Shapes3DDataset()
    >>> len(data), data.images([0, 479_999]).shape, data.factors([61]).tolist()
    (480000, (2, 3, 64, 64), [[0, 0, 0, 1, 0, 1]])
    """

    image_size: Annotated[int, Ge(8)] = 64
    """Height and width in pixels, at least 8."""

    factor_names = ("floor_hue", "wall_hue", "object_hue", "scale", "shape", "orientation")
    factor_sizes = (10, 10, 10, 8, 4, 15)
    factor_kinds = ("cyclic", "cyclic", "cyclic", "ordinal", "categorical", "ordinal")
    factor_classes = types.MappingProxyType({"shape": room.SOLIDS})
    citation = "kim2018"
    note = "a look-alike of Shapes3D on its factor grid, not the original"

    @property
    def shape(self) -> tuple[int, ...]:
        return (3, self.image_size, self.image_size)

    @property
    def fingerprint(self) -> str:
        """Hash of the options and of the version of the renderer: results of another version are not reused."""
        return files.digest({**self.describe(), "drawing": _DRAWING})

    def footprint(self) -> Footprint:
        """Return the memory of the layers of all geometries, of rendering one of them, and of a batch."""
        n_geometries = math.prod(self.factor_sizes[3:])
        cached = min(n_geometries * _layers_bytes(self.image_size), _CACHE_BYTES)
        drawing = _RAY_BYTES * (_n_rays(self.image_size) * self.image_size) ** 2
        note = "The layers of a geometry are cached once rendered; images are composed from them on request."
        return Footprint(cached + drawing + batch_bytes(self.n_features), 0, note)

    def images(self, indices: ArrayLike | int) -> UInt8[np.ndarray, "sample channel height width"]:
        factors = self.factors(indices)
        weights = _weights(factors[:, :3])
        layers_of = _layer_cache(self.image_size)
        images = np.empty((len(factors), 3, self.image_size**2), dtype=np.uint8)
        layers = np.empty((_LAYERS, self.image_size**2), dtype=np.float32)
        sums = np.empty((3, self.image_size**2), dtype=np.float32)
        for image, weight, geometry in zip(images, weights, factors[:, 3:].tolist(), strict=True):
            layers[:] = layers_of(*geometry)
            np.matmul(weight, layers, out=sums)
            sums *= np.float32(1 / _UNIT)
            # Conversion to bytes truncates, so one half rounds.
            sums += np.float32(0.5)
            image[:] = sums
        return images.reshape(-1, *self.shape)


def hue(step: int) -> tuple[int, int, int]:
    """Return fifths of full red, green and blue of the saturated colour at ``step`` · 36°.

    >>> [hue(step) for step in (0, 1, 5)]
    [(5, 0, 0), (5, 3, 0), (0, 5, 5)]

    :param step: 0 … 9.
    """
    # A channel is full within 60° of its own hue and falls to 0 at 120°; 60° are 5/3 steps.
    away = [abs((step - 10 * channel / 3 + 5) % 10 - 5) for channel in range(3)]
    red, green, blue = (round(5 * min(1, max(0, 2 - distance * 3 / 5))) for distance in away)
    return red, green, blue


def _weights(hues: Int[np.ndarray, "sample 3"]) -> Float[np.ndarray, "sample channel layer"]:
    """Return the weight of each layer in each channel: 1 for a full colour, 1 … 4 for so many fifths."""
    fifths = np.array([hue(step) for step in range(10)])[hues].transpose(0, 2, 1)
    weights = np.empty((len(hues), 3, _LAYERS), dtype=np.float32)
    weights[:, :, 0:3] = fifths == 5
    weights[:, :, 3:6] = np.where(fifths == 5, 0, fifths)
    # On a full channel the layer itself includes the highlight of the object, since the sum is clipped at white.
    weights[:, :, 6] = fifths[:, :, 2] != 5
    weights[:, :, 7] = np.array(_SKY) * _UNIT / _SKY_UNIT
    return weights


@functools.cache
def _layer_cache(image_size: int) -> Callable[[int, int, int], UInt16[np.ndarray, "layer pixel"]]:
    """Return a function that renders the layers of a geometry, with a cache of limited memory."""

    @functools.lru_cache(maxsize=max(1, _CACHE_BYTES // _layers_bytes(image_size)))
    def layers_of(scale: int, shape: int, orientation: int) -> UInt16[np.ndarray, "layer pixel"]:
        return _draw(scale, shape, orientation, image_size)

    return layers_of


def _layers_bytes(image_size: int) -> int:
    return _LAYERS * 2 * image_size**2


def _n_rays(image_size: int) -> int:
    """Return the number of rays along a side of a pixel."""
    return max(3, math.ceil(128 / image_size))


def _draw(scale: int, shape: int, orientation: int, image_size: int) -> UInt16[np.ndarray, "layer pixel"]:
    """Render the layers: the share of each surface times its brightness, averaged over the rays of each pixel."""
    n_rays = _n_rays(image_size)
    angle = math.radians(30 - 60 * orientation / 14)
    view = room.cast_rays(room.SOLIDS[shape], 0.75 + 0.5 * scale / 7, angle, n_rays * image_size)

    def mean(values: Float[np.ndarray, "height width"]) -> Float[np.ndarray, " pixel"]:
        return values.reshape(image_size, n_rays, image_size, n_rays).mean(axis=(1, 3)).reshape(-1)

    layers = np.empty((_LAYERS, image_size**2))
    for index, surface in enumerate((room.FLOOR, room.WALL, room.OBJECT)):
        is_met = view.surface == surface
        layers[index] = mean(is_met * np.minimum(view.brightness + view.highlight, 1))
        layers[3 + index] = mean(is_met * view.brightness) / 5
    layers[6] = mean(view.highlight)
    layers[:7] *= 255 * _UNIT
    layers[7] = mean((view.surface == room.SKY).astype(np.float64)) * _SKY_UNIT
    return np.rint(layers).astype(np.uint16)
