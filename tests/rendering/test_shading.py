"""Light on planes in closed form, pixels as means of samples, and the length of a shadow."""

from __future__ import annotations

import math

import numpy as np
import pytest

from polariscope.core.seeds import generator
from polariscope.rendering.mesh import Mesh, box, join, panel
from polariscope.rendering.raster import Camera, Visible, rasterise
from polariscope.rendering.shading import (
    SAMPLES,
    Light,
    Lighting,
    free_samples,
    pixels,
    shadow,
)

FROM_ABOVE = Camera(0.0, math.pi / 2, 10.0, 5.0)
"""Two metres each way from the middle: S pixels show 4 m of the ground."""


def floor(colour=(0.5, 0.4, 0.3), gloss: float = 0.0, half: float = 9.0) -> Mesh:
    outline = [(-half, -half, 0.0), (half, -half, 0.0), (half, half, 0.0), (-half, half, 0.0)]
    return panel(outline, 0.0).painted(colour, gloss)


def image(mesh: Mesh, lighting: Lighting, size: int = 16, backdrop: float = 0.0, camera: Camera = FROM_ABOVE):
    visible = rasterise(mesh, camera, SAMPLES * size)
    behind = backdrop * np.tile(free_samples(visible, size).astype(float), (3, 1))
    return pixels(visible, lighting.on(mesh, visible, camera.towards), behind, size)


@pytest.mark.parametrize("elevation", [0.2, 0.8, math.pi / 2])
def test_a_plane_sends_what_lamberts_law_says(elevation):
    lighting = Lighting((Light.from_angles(1.0, elevation, 0.6),), ambient=0.2, sky=0.5)
    bright = 0.2 * 1.5 + 0.6 * math.sin(elevation)
    expected = np.rint(255 * np.array([0.5, 0.4, 0.3]) * bright)
    np.testing.assert_array_equal(
        image(floor(), lighting), np.broadcast_to(expected[:, None, None], (3, 16, 16))
    )


def test_surfaces_are_lit_by_the_angle_between_their_normal_and_the_light():
    normals = generator(0, "normals").normal(size=(50, 3))
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    visible = Visible(np.arange(50), np.zeros(50, dtype=np.int64), normals)
    light = Light.from_angles(2.2, 0.4, 0.7)
    assert light.direction[1] > 0.5
    sent = Lighting((light,), ambient=0.0).on(floor(colour=(1.0, 0.5, 0.0)), visible, FROM_ABOVE.towards)
    lit = 0.7 * np.maximum(normals @ np.array(light.direction), 0)
    assert (lit == 0).any()
    np.testing.assert_allclose(sent, lit[:, np.newaxis] * [1.0, 0.5, 0.0], atol=1e-12)


def test_lights_add_and_those_behind_a_surface_do_not_count():
    one, other = Light.from_angles(0.0, 0.5, 0.3), Light.from_angles(2.0, 0.9, 0.25)
    below = Light.from_angles(0.0, -0.5, 5.0)
    got = image(floor(), Lighting((one, other, below), 0.1))
    expected = np.rint(255 * 0.5 * (0.1 + 0.3 * math.sin(0.5) + 0.25 * math.sin(0.9)))
    assert (got[0] == expected).all()


def test_a_highlight_is_full_where_the_surface_mirrors_the_light_to_the_camera():
    light = Light.from_angles(
        0.0, math.pi / 2, 0.5
    )  # beside the camera, so the half-way direction is the normal
    assert (
        image(floor((0.0, 0.0, 0.0), gloss=0.6), Lighting((light,), 0.2)) == np.rint(255 * 0.6 * 0.5)
    ).all()
    angle = 0.4
    slanted = Light.from_angles(0.0, math.pi / 2 - 2 * angle, 0.5)
    expected = np.rint(255 * 0.6 * 0.5 * math.cos(angle) ** 24)
    assert (image(floor((0.0, 0.0, 0.0), gloss=0.6), Lighting((slanted,), 0.2)) == expected).all()


def test_a_pixel_is_the_mean_of_what_its_samples_see():
    # 16 pixels show 4 m, so a square of half side 1 + 1/16 m covers 8 pixels and a quarter of one on each side
    mesh, white = floor((1.0, 1.0, 1.0), half=1 + 1 / 16), Lighting((), ambient=1.0)
    got = image(mesh, white, backdrop=0.5)[0] / 255
    edge = [0.5] * 3 + [0.625] + [1] * 8 + [0.625] + [0.5] * 3
    np.testing.assert_allclose(got[8], edge, atol=0.5 / 255)
    np.testing.assert_allclose(got[:, 8], edge, atol=0.5 / 255)
    assert got[3, 3] == pytest.approx(0.5 + 0.5 / 16, abs=0.5 / 255)  # the corner


def test_faces_that_meet_have_no_seam_between_them():
    light = Lighting((Light.from_angles(0.4, 1.0, 0.5),), 0.3)
    tiles = [
        panel([(x, y, 0.0), (x + 0.31, y, 0.0), (x + 0.31, y + 0.37, 0.0), (x, y + 0.37, 0.0)], 0.0).turned(
            2, 0.5
        )
        for x in np.arange(-10, 10) * 0.31
        for y in np.arange(-9, 9) * 0.37
    ]
    got = image(join(*tiles), light, size=32, backdrop=0.0)
    assert (got == got[:, :1, :1]).all()


def test_light_leaves_the_outline_alone():
    mesh = box(1, 1, 1).turned(2, 0.6).painted((0.5, 0.5, 0.5))
    camera = Camera(0.0, 0.5, 10.0, 5.0)
    first, second = (
        image(mesh, Lighting((Light.from_angles(azimuth, 0.6, 0.4),), 0.1), 32, 1.0, camera)
        for azimuth in (-1.0, 1.5)
    )
    assert (first != second).any()
    np.testing.assert_array_equal(first == 255, second == 255)


@pytest.mark.parametrize("elevation", [0.5, 1.0])
def test_a_shadow_is_as_long_as_the_height_over_the_tangent(elevation):
    size, height = 400, 0.5
    post = box(0.1, 0.1, height).moved(0, 0, height / 2)
    dark = shadow(post, Light.from_angles(0.0, elevation, 1.0), FROM_ABOVE, size).reshape(size, size)
    rows, columns = np.nonzero(dark)
    # light from ahead: the shadow falls behind, which is up in the image; 100 samples a metre
    length = height / math.tan(elevation)
    assert rows.min() == pytest.approx(200 - 100 * (length + 0.05), abs=1)
    assert rows.max() + 1 == pytest.approx(200 + 5, abs=1)
    assert columns.max() + 1 - columns.min() == pytest.approx(10, abs=1)
    assert dark.sum() == pytest.approx(100**2 * 0.1 * (length + 0.1), rel=0.03)
