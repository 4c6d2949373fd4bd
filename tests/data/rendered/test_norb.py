"""Toy figures: the grid, the light on the ground in closed form, figures that stand, fit and differ."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from polariscope.core.errors import InputError
from polariscope.core.seeds import generator
from polariscope.data import cache
from polariscope.data.cached_array import CachedArray
from polariscope.data.dataset import family
from polariscope.data.rendered.norb import CATEGORIES, NorbDataset, camera_at, figure, lighting_at
from polariscope.rendering.raster import rasterise
from polariscope.rendering.shading import SAMPLES, shadow

SIZES = np.array([5, 10, 9, 18, 6])
FIGURES = [(category, instance) for category in range(5) for instance in range(10)]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path))


def views(data: NorbDataset, poses) -> np.ndarray:
    return data.images(data.index_of(np.array(poses)))


def test_the_grid_is_that_of_the_original():
    data = NorbDataset()
    assert len(data) == 48_600
    factors = generator(0, "factors").integers(0, SIZES, size=(500, 5))
    np.testing.assert_array_equal(data.index_of(factors), factors @ [9720, 972, 108, 6, 1])
    assert len(CATEGORIES) == 5
    assert family.traits("norb")["original"] == "smallnorb"
    assert "not the original" in data.note
    assert data.factor_classes["category"] == ("animals", "humans", "aeroplanes", "trucks", "cars")


@pytest.mark.usefixtures("unannotated")  # checking the types takes longer than making the figures
def test_figures_stand_on_the_ground_and_are_alike_in_size():
    for category, instance in FIGURES:
        vertices = figure(category, instance).vertices
        low, high = vertices.min(axis=0), vertices.max(axis=0)
        assert low[2] == pytest.approx(0, abs=1e-12)
        assert np.linalg.norm(high - low) == pytest.approx(2)


@pytest.mark.usefixtures("unannotated")
def test_figures_differ_pairwise_and_lie_within_the_image():
    for elevation, azimuth in ((0, 4), (8, 10)):
        images = views(NorbDataset(32), [(*which, elevation, azimuth, 3) for which in FIGURES])[:, 0].astype(
            float
        )
        rows = images.reshape(50, -1)
        squares = (rows**2).sum(axis=1)
        distances = squares[:, None] + squares - 2 * rows @ rows.T + 1e12 * np.eye(50)
        assert distances.min() > 0.01 * rows.shape[1] * 40**2  # as when 1 % of the pixels differ by 40 levels
        ground = images[:, :1, :1]
        figures = images < 0.75 * ground  # shadows are lighter
        assert not figures[:, [0, -1]].any()
        assert not figures[:, :, [0, -1]].any()
        assert (images != ground).mean(axis=(1, 2)).min() > 0.03


@pytest.mark.parametrize("lighting", range(6))
def test_the_ground_sends_what_lamberts_law_says_in_light_and_shadow(lighting):
    pose = (0, 2, 1, 5)
    mesh, size = figure(0, 2), 64
    camera = camera_at(mesh, *pose[2:])
    light = lighting_at(lighting, camera.azimuth)
    body = np.zeros((SAMPLES * size) ** 2, dtype=bool)
    body[rasterise(mesh, camera, SAMPLES * size).where] = True
    shaded = shadow(mesh, light.lights[0], camera, SAMPLES * size) & ~body
    body, shaded = (
        flags.reshape(size, SAMPLES, size, SAMPLES).sum(axis=(1, 3)) / SAMPLES**2 for flags in (body, shaded)
    )
    image = views(NorbDataset(), [(*pose, lighting)])[0, 0]
    above = [source.strength * source.direction[2] for source in light.lights]
    lit = light.ambient * (1 + light.sky) + sum(above)
    assert (image[(body == 0) & (shaded == 0)] == np.rint(255 * 0.85 * lit)).all()
    assert (image[(body == 0) & (shaded == 1)] == np.rint(255 * 0.85 * (lit - 0.6 * above[0]))).all()
    assert (shaded == 1).any()
    assert math.hypot(*light.lights[0].direction) == pytest.approx(1)


def test_lightings_change_the_shading_and_not_the_outline():
    data = NorbDataset()
    images = views(data, [(4, 0, 4, 3, lighting) for lighting in range(6)])[:, 0].astype(int)
    mesh = figure(4, 0)
    seen = rasterise(mesh, camera_at(mesh, 4, 3), SAMPLES * 64).where
    inside = np.bincount(
        seen // (SAMPLES * 64) // SAMPLES * 64 + seen % (SAMPLES * 64) // SAMPLES, minlength=64**2
    )
    body = (inside == SAMPLES**2).reshape(64, 64)
    for one in range(6):
        for other in range(one):
            assert (np.abs(images[one] - images[other])[body] > 4).mean() > 0.5
        assert np.ptp(images[one][body]) > 30  # lit and dark faces


def test_the_camera_rises_from_30_to_70_degrees_and_turns_by_20():
    mesh = figure(3, 0)
    assert math.degrees(camera_at(mesh, 0, 0).elevation) == pytest.approx(30)
    assert math.degrees(camera_at(mesh, 8, 0).elevation) == pytest.approx(70)
    assert math.degrees(camera_at(mesh, 0, 1).azimuth) == pytest.approx(20)
    assert camera_at(mesh, 0, 17).azimuth == pytest.approx(2 * math.pi * 17 / 18)


def test_light_comes_from_where_the_camera_sees_it_at_every_azimuth():
    """A figure that looks the same from all sides would look the same at all azimuths."""
    base = lighting_at(2, 0.0)
    turned = lighting_at(2, 1.0)
    x, y, z = base.lights[0].direction
    cos, sin = math.cos(1.0), math.sin(1.0)
    np.testing.assert_allclose(turned.lights[0].direction, (cos * x - sin * y, sin * x + cos * y, z))


@pytest.mark.parametrize("column", range(5))
def test_every_factor_changes_at_least_a_hundredth_of_the_pixels(column):
    data = NorbDataset(32)
    start = generator(0, "start").integers(0, (5, 2, 9, 18, 6), size=(12, 5))
    end = start.copy()
    end[:, column] = (end[:, column] + 1) % SIZES[column]
    difference = np.abs(views(data, start).astype(int) - views(data, end)).max(axis=1)
    assert (difference > 4).mean(axis=(1, 2)).min() > 0.01


def test_other_sizes_show_the_same_picture():
    indices = generator(0, "sizes").integers(48_600, size=5)
    large = NorbDataset(64).images(indices).astype(float)
    small = NorbDataset(16).images(indices).astype(float)
    means = large.reshape(5, 16, 4, 16, 4).mean(axis=(2, 4))
    assert np.abs(means - small[:, 0]).mean() < 2
    with pytest.raises(InputError, match="image_size must be at least 8"):
        NorbDataset(7)


def test_the_file_holds_the_same_bytes_as_images_drawn_alone(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(NorbDataset, "factor_sizes", (2, 2, 2, 3, 6))
    data = NorbDataset(16)
    some = generator(0, "some").integers(len(data), size=20)
    drawn = data.images(some)
    np.testing.assert_array_equal(drawn, np.concatenate([data._render(np.array([index])) for index in some]))
    data.prepare()
    assert isinstance(data._memory.mapped, CachedArray)
    np.testing.assert_array_equal(data.images(some), drawn)


def test_the_drawing_is_the_edition_that_its_number_says():
    """Raise ``drawing`` when this fails: files of the old edition must not be used."""
    means = NorbDataset().images([0, 11_111, 22_222, 33_333, 48_599]).mean(axis=(1, 2, 3))
    assert NorbDataset.drawing == 1
    np.testing.assert_allclose(means, [191.928, 161.352, 183.919, 183.136, 148.542], atol=0.02)
