"""Lighting of surfaces, and conversion of samples to pixels."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
from jaxtyping import Bool, Float, Int, UInt8

from polariscope.rendering.mesh import Mesh, Point
from polariscope.rendering.raster import Camera, Visible, cover

SAMPLES = 4
"""Number of samples per side of every pixel."""


@dataclasses.dataclass(frozen=True)
class Light:
    """Parallel light from one direction."""

    direction: Point
    """Direction towards the light, a unit vector."""
    strength: float
    """Light that a white surface facing it reflects."""

    @classmethod
    def from_angles(cls, azimuth: float, elevation: float, strength: float) -> Light:
        """Create a light from a direction in angles.

        :param azimuth: angle in radians, anticlockwise from the x-axis.
        :param elevation: angle in radians above the ground.
        :param strength: light that a white surface facing it reflects.
        """
        flat = math.cos(elevation)
        return cls((flat * math.cos(azimuth), flat * math.sin(azimuth), math.sin(elevation)), strength)


@dataclasses.dataclass(frozen=True)
class Lighting:
    r"""Lights and ambient light, which is stronger from above.

    A surface with normal n and colour c reflects

    .. math:: c \, (a\,(1 + k n_z) + \textstyle\sum_l s_l \max(0, n \cdot l)) + g \max_l(0, n \cdot h_l)^{24}

    with strength s of the light from direction l, the direction h half-way between l and the camera, and gloss g.
    """

    lights: tuple[Light, ...]
    """The lights; the first one casts the shadow."""
    ambient: float
    """a: light that a white vertical surface reflects without lights."""
    sky: float = 0.0
    """k: increase of the ambient light from above, relative to the side."""

    def on(
        self, mesh: Mesh, visible: Visible, towards: Float[np.ndarray, "3"]
    ) -> Float[np.ndarray, "seen 3"]:
        """Return red, green and blue that the surfaces of a body reflect to the camera.

        :param mesh: the body.
        :param visible: its visible surface.
        :param towards: direction of the camera, a unit vector.
        """
        x, y, z = visible.normals.T
        gloss = mesh.gloss[visible.faces]
        bright = self.ambient * (1 + self.sky * z)
        shine = np.zeros(len(x))
        glossy = bool(gloss.any())
        for light in self.lights:
            l0, l1, l2 = light.direction
            bright = bright + light.strength * np.maximum(x * l0 + y * l1 + z * l2, 0)
            if glossy:
                half = np.array(light.direction) + towards
                h0, h1, h2 = half / math.sqrt(float((half**2).sum()))
                cosine = np.maximum(x * h0 + y * h1 + z * h2, 0)
                # The power 24 of the equation, as the cube of the eighth power.
                eighth = (cosine**2) ** 2 * (cosine**2) ** 2
                shine = np.maximum(shine, light.strength * eighth * eighth * eighth)
        sent = mesh.colours[visible.faces] * bright[:, None]
        return sent + (gloss * shine)[:, None] if glossy else sent


def shadow(mesh: Mesh, light: Light, camera: Camera, size: int) -> Bool[np.ndarray, " sample"]:
    """Return the samples of the ground, z = 0, that lie in the shadow of a body.

    :param mesh: a closed body on the ground.
    :param light: the light, from above.
    :param camera: the camera.
    :param size: samples per side.
    """
    x, y, z = light.direction
    height = mesh.vertices[:, 2:]
    # Each vertex is moved along the light to the ground.
    projected = mesh.vertices - height / z * np.array([x, y, z])
    return cover(camera.project(projected, size), mesh.faces, size)


def pixels(
    visible: Visible,
    sent: Float[np.ndarray, "seen channel"],
    backdrop: Float[np.ndarray, "channel pixel"],
    size: int,
) -> UInt8[np.ndarray, "channel height width"]:
    """Return pixels as means of their samples, in bytes.

    :param visible: samples in which the body is visible.
    :param sent: light in these samples.
    :param backdrop: sum of the light in the other samples of every pixel.
    :param size: pixels per side.
    """
    pixel = pixel_of(visible.where, size)
    # Each sample is limited on its own, so a highlight does not lighten the other samples of its pixel.
    light = np.clip(sent, 0, 1)
    sums = [np.bincount(pixel, weights=channel, minlength=size * size) for channel in light.T]
    mean = (np.array(sums) + backdrop) / SAMPLES**2
    return np.rint(255 * mean).astype(np.uint8).reshape(-1, size, size)


def pixel_of(samples: Int[np.ndarray, " sample"], size: int) -> Int[np.ndarray, " sample"]:
    """Return the pixel of each sample, both counted row by row.

    :param samples: numbers of samples.
    :param size: pixels per side.
    """
    row, column = np.divmod(samples, size * SAMPLES)
    return (row // SAMPLES) * size + column // SAMPLES


def free_samples(visible: Visible, size: int) -> Int[np.ndarray, " pixel"]:
    """Count the samples of every pixel in which the body is not visible.

    :param visible: the other samples.
    :param size: pixels per side.
    """
    return SAMPLES**2 - np.bincount(pixel_of(visible.where, size), minlength=size * size)
