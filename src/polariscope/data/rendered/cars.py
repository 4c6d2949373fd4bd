"""Cars from all sides on white: the factor grid of Cars3D, rendered from procedural cars."""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import Annotated

import numpy as np
from annotated_types import Ge
from jaxtyping import Int, UInt8

from polariscope.data.dataset import dataset
from polariscope.data.rendered.support.scenes import AbstractScenes
from polariscope.rendering.car_meshes import car, design
from polariscope.rendering.mesh import Mesh
from polariscope.rendering.raster import Camera, rasterise
from polariscope.rendering.shading import SAMPLES, Light, Lighting, free_samples, pixels

_ELEVATIONS = (5, 15, 25, 35)  # degrees
_N_AZIMUTHS = 24
_DISTANCE = 14.0  # metres
_ZOOM = 4.6
_AIM = 0.65  # height of the point at the centre of the image


@dataset("cars", original="cars3d")
@dataclasses.dataclass(frozen=True)
class CarsDataset(AbstractScenes):
    """Cars of seven types on a turntable: every elevation, azimuth and car once.

    A look-alike of Cars3D, with its factor grid and index order: elevation 4, azimuth 24, identity 183; identity varies
    fastest. Identity i is a saloon, hatchback, estate, van, pickup, coupé or off-roader (i mod 7) with individual
    measures, paint and details. Azimuth k turns the car by 15° k; at 0 it faces the camera, at 6 it shows its left
    side. The camera is 5°, 15°, 25° or 35° above the ground. The camera and two lights do not move, so brightness
    depends on how surfaces face the camera, not on the side of the car. All cars are drawn to one scale, at which the
    longest spans the image. Pixels are means of 4 × 4 samples.

    Up to 2,000 different images are rendered on request, in 4 to 15 ms each. If more are needed, all are rendered once
    into the cache folder: at 64 pixels about 70 s on one core, 216 MB of disk. Memory: at most 32 MB of images and 64
    cars of 0.5 MB. Distinct images: all 17,568 differ at 64 pixels.

    Reference: Reed et al., Deep Visual Analogy-Making (reed2015; the original, from CAD models). Differences: other
    cars, other elevations, and no texture.

    >>> data = CarsDataset()
    >>> len(data), data.images([0, 17_567]).shape, data.factors([184]).tolist()
    (17568, (2, 3, 64, 64), [[0, 1, 1]])
    """

    image_size: Annotated[int, Ge(8)] = 64
    """Height and width in pixels."""

    factor_names = ("elevation", "azimuth", "identity")
    factor_sizes = (len(_ELEVATIONS), _N_AZIMUTHS, 183)
    factor_kinds = ("ordinal", "cyclic", "categorical")
    body_factors = ("identity",)
    drawing = 1
    citation = "reed2015"
    note = "a look-alike of Cars3D in structure and appearance, not the original"

    @property
    def shape(self) -> tuple[int, ...]:
        return (3, self.image_size, self.image_size)

    def draw(
        self, body: tuple[int, ...], factors: Int[np.ndarray, "sample factor"]
    ) -> UInt8[np.ndarray, "sample channel height width"]:
        mesh = _mesh(*body)
        return np.array(
            [_image(mesh, elevation, azimuth, self.image_size) for elevation, azimuth, _ in factors.tolist()]
        )


@functools.lru_cache(maxsize=64)
def _mesh(identity: int) -> Mesh:
    return car(design(identity))


def _camera(elevation: int, azimuth: int) -> Camera:
    turn = 2 * math.pi * azimuth / _N_AZIMUTHS
    return Camera(turn, math.radians(_ELEVATIONS[elevation]), _DISTANCE, _ZOOM, (0.0, 0.0, _AIM))


def _image(mesh: Mesh, elevation: int, azimuth: int, size: int) -> UInt8[np.ndarray, "3 height width"]:
    camera = _camera(elevation, azimuth)
    visible = rasterise(mesh, camera, SAMPLES * size)
    sent = _lighting(camera.azimuth).on(mesh, visible, camera.towards)
    # Samples without a car are white, 1 in every channel.
    white = np.tile(free_samples(visible, size).astype(float), (3, 1))
    return pixels(visible, sent, white, size)


def _lighting(turn: float) -> Lighting:
    """Return a strong light from the upper right and a weak one from the left, as seen from the camera."""
    main = Light.from_angles(turn + math.radians(40), math.radians(55), 0.52)
    fill = Light.from_angles(turn - math.radians(60), math.radians(25), 0.2)
    return Lighting((main, fill), ambient=0.33, sky=0.25)
