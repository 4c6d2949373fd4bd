"""Toy figures from all sides in six lightings: the factor grid of smallNORB, rendered from procedural bodies."""

from __future__ import annotations

import dataclasses
import functools
import math
import types
from collections.abc import Callable
from typing import Annotated

import numpy as np
from annotated_types import Ge
from jaxtyping import Float, Int, UInt8

from polariscope.data.dataset import dataset
from polariscope.data.rendered.support.scenes import AbstractScenes
from polariscope.rendering.animals import ANIMALS, animal
from polariscope.rendering.car_meshes import BODIES, Car, car
from polariscope.rendering.humans import HUMANS, human
from polariscope.rendering.mesh import Colour, Mesh
from polariscope.rendering.planes import PLANES, plane
from polariscope.rendering.raster import Camera, Visible, rasterise
from polariscope.rendering.shading import (
    SAMPLES,
    Light,
    Lighting,
    free_samples,
    pixel_of,
    pixels,
    shadow,
)
from polariscope.rendering.trucks import TRUCKS, truck

CATEGORIES = ("animals", "humans", "aeroplanes", "trucks", "cars")
_N_ELEVATIONS, _N_AZIMUTHS = 9, 18
_RADIUS, _DISTANCE, _ZOOM = 1.0, 6.0, 5.3
_MATERIAL = 0.52  # reflectance of the figures
_GROUND = 0.85  # reflectance of the ground
_SHADE = 0.6  # share of the first light that its shadow blocks; less than 1, since lamps are wide
_TOYS: Colour = (0.6, 0.6, 0.6)
_CARS = (
    Car(**BODIES["saloon"]), Car(**BODIES["hatchback"]), Car(**BODIES["estate"]), Car(**BODIES["van"]),
    Car(**BODIES["pickup"]), Car(**BODIES["coupé"]), Car(**BODIES["off-roader"], spare=True),
    Car(length=5.6, height=1.5, cabin=(0.22, 0.34, 0.8, 0.92), pillars=(0.42, 0.62)),
    Car(**{**BODIES["coupé"], "height": 1.12, "nose": 0.5, "cabin": (0.3, 0.52, 0.62, 0.9), "wing": True}),
    Car(length=3.3, width=1.62, height=1.5, cabin=(0.2, 0.36, 0.84, 0.985), axles=(0.17, 0.84), pillars=(0.6,)),
)  # fmt: skip


@dataset("norb", original="smallnorb")
@dataclasses.dataclass(frozen=True)
class NorbDataset(AbstractScenes):
    """Toy animals, humans, aeroplanes, trucks and cars: every figure, elevation, azimuth and lighting once.

    A look-alike of smallNORB, with its factors: category 5, instance 10, elevation 9 (30° … 70° above the ground),
    azimuth 18 (20° apart), lighting 6; lighting varies fastest. The figure is on a turntable; camera and lights keep
    their azimuths. Figures have one grey material, with darker glass and tyres, on a plain ground. Each is scaled to
    fit a ball of the same size. Surfaces are lit by Lambert's law. The first light casts a shadow on the ground, but
    not on the figure. The lightings are: from the left, from the right, from behind, from above, from both sides, and a
    weak one from the front. Pixels are means of 4 × 4 samples. Instances with the same number in different categories
    are unrelated.

    Up to 2,000 different images are rendered on request, in 2 to 15 ms each. If more are needed, all are rendered once
    into the cache folder: at 64 pixels about 85 s on one core, 199 MB of disk. Memory: at most 32 MB of images and 50
    figures of 0.5 MB. Distinct images: all 48,600 differ at 64 pixels.

    Reference: LeCun et al., Learning Methods for Generic Object Recognition with Invariance to Pose and Lighting
    (lecun2004; the original, photographs). Differences: other figures, one camera, and instance is an ordinary factor.

    >>> data = NorbDataset()
    >>> len(data), data.images([0, 48_599]).shape, data.factors([6]).tolist()
    (48600, (2, 1, 64, 64), [[0, 0, 0, 1, 0]])
    """

    image_size: Annotated[int, Ge(8)] = 64
    """Height and width in pixels."""

    factor_names = ("category", "instance", "elevation", "azimuth", "lighting")
    factor_sizes = (5, 10, _N_ELEVATIONS, _N_AZIMUTHS, 6)
    factor_kinds = ("categorical", "categorical", "ordinal", "cyclic", "categorical")
    factor_classes = types.MappingProxyType({"category": CATEGORIES})
    body_factors = ("category", "instance")
    drawing = 1
    citation = "lecun2004"
    note = "a look-alike of smallNORB in structure and appearance, not the original"

    @property
    def shape(self) -> tuple[int, ...]:
        return (1, self.image_size, self.image_size)

    def draw(
        self, body: tuple[int, ...], factors: Int[np.ndarray, "sample factor"]
    ) -> UInt8[np.ndarray, "sample channel height width"]:
        mesh = figure(*body)
        images = np.empty((len(factors), *self.shape), dtype=np.uint8)
        poses, which = np.unique(factors[:, 2:4], axis=0, return_inverse=True)
        for number, (elevation, azimuth) in enumerate(poses.tolist()):
            camera = camera_at(mesh, elevation, azimuth)
            visible = rasterise(mesh, camera, SAMPLES * self.image_size)  # once for all lightings
            for row in np.flatnonzero(which == number):
                images[row] = _image(mesh, camera, visible, int(factors[row, 4]), self.image_size)
        return images


@functools.lru_cache(maxsize=50)
def figure(category: int, instance: int) -> Mesh:
    """Return a toy on the ground, in greys.

    :param category: 0 … 4, as in ``CATEGORIES``.
    :param instance: 0 … 9.
    """
    makers: tuple[Callable[[], Mesh], ...] = (
        lambda: animal(ANIMALS[instance]),
        lambda: human(HUMANS[instance]),
        lambda: plane(PLANES[instance]),
        lambda: truck(TRUCKS[instance]),
        lambda: car(dataclasses.replace(_CARS[instance], paint=_TOYS, trim=_TOYS, rim=_TOYS)),
    )
    mesh = makers[category]().fitted(_RADIUS)
    grey = mesh.colours.mean(axis=1, keepdims=True)
    # Glass and tyres stay darker. All other colours become one material.
    dark = grey < 0.4
    colours = np.repeat(np.where(dark, 0.5 * _MATERIAL, _MATERIAL), 3, axis=1)
    return dataclasses.replace(mesh, colours=colours, gloss=np.zeros_like(mesh.gloss))


def camera_at(mesh: Mesh, elevation: int, azimuth: int) -> Camera:
    """Return the camera, aimed at the centre of a figure.

    :param mesh: the figure.
    :param elevation: 0 … 8: 30° … 70°.
    :param azimuth: 0 … 17: steps of 20°.
    """
    turn = 2 * math.pi * azimuth / _N_AZIMUTHS
    return Camera(turn, math.radians(30 + 5 * elevation), _DISTANCE, _ZOOM, (0.0, 0.0, mesh.height / 2))


def lighting_at(number: int, turn: float) -> Lighting:
    """Return one of the six lightings.

    :param number: 0 … 5.
    :param turn: azimuth of the camera in radians.
    """

    def light(azimuth: int, elevation: int, strength: float) -> Light:
        return Light.from_angles(turn + math.radians(azimuth), math.radians(elevation), strength)

    lights, ambient = (
        ((light(-75, 50, 0.72),), 0.3),
        ((light(75, 45, 0.76),), 0.28),
        ((light(160, 55, 0.74),), 0.26),
        ((light(0, 85, 0.62),), 0.26),
        ((light(-60, 35, 0.55), light(70, 35, 0.5)), 0.24),
        ((light(-10, 45, 0.45),), 0.36),
    )[number]
    return Lighting(lights, ambient, sky=0.3)


def _image(
    mesh: Mesh, camera: Camera, visible: Visible, lighting: int, size: int
) -> UInt8[np.ndarray, "1 height width"]:
    light = lighting_at(lighting, camera.azimuth)
    sent = light.on(mesh, visible, camera.towards)[:, :1]
    return pixels(visible, sent, _ground(mesh, camera, visible, light, size), size)


def _ground(
    mesh: Mesh, camera: Camera, visible: Visible, lighting: Lighting, size: int
) -> Float[np.ndarray, "1 pixel"]:
    """Return the light from the ground, summed over the samples of each pixel in which it is visible."""
    main = lighting.lights[0]
    lit = lighting.ambient * (1 + lighting.sky) + sum(
        light.strength * light.direction[2] for light in lighting.lights
    )
    dark = lit - _SHADE * main.strength * main.direction[2]
    shaded = shadow(mesh, main, camera, SAMPLES * size)
    # The figure hides the ground behind it.
    shaded[visible.where] = False
    n_shaded = np.bincount(pixel_of(np.flatnonzero(shaded), size), minlength=size * size)
    free = free_samples(visible, size)
    return _GROUND * ((free - n_shaded) * lit + n_shaded * dark)[np.newaxis]
