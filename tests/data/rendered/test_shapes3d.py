"""Shapes3D's look-alike: index order, hues, what each factor changes, and pixels that are fair means."""

from __future__ import annotations

import colorsys
import itertools
import math
import tracemalloc

import numpy as np
import pytest

from polariscope.core import files
from polariscope.core.errors import InputError
from polariscope.core.seeds import generator
from polariscope.data.dataset import family
from polariscope.data.rendered import shapes3d
from polariscope.data.rendered.shapes3d import Shapes3DDataset, hue
from polariscope.rendering import room

SIZES = np.array([10, 10, 10, 8, 4, 15])
SMALL = Shapes3DDataset(image_size=16)


def image(*factors: int, data: Shapes3DDataset = SMALL) -> np.ndarray:
    return data.images(data.index_of([factors]))[0].astype(int)


def test_indices_follow_the_order_of_the_original():
    data = Shapes3DDataset()
    assert len(data) == 480_000
    bases = SIZES.prod() // SIZES.cumprod()
    factors = generator(0, "factors").integers(0, SIZES, size=(1000, 6))
    assert (data.index_of(factors) == factors @ bases).all()
    assert data.factors([1]).tolist() == [[0, 0, 0, 0, 0, 1]], "orientation varies fastest"


def test_hues_are_ten_steps_around_the_circle_of_saturated_colours():
    for step in range(10):
        np.testing.assert_allclose(np.array(hue(step)) / 5, colorsys.hsv_to_rgb(step / 10, 1, 1), atol=1e-12)


def test_each_hue_colours_its_own_surface():
    data = Shapes3DDataset(image_size=32)
    factors = [0, 0, 0, 6, 1, 2]
    view = room.cast_rays("cylinder", 0.75 + 0.5 * 6 / 7, math.radians(30 - 60 * 2 / 14), 32 * 4)
    surfaces = view.surface.reshape(32, 4, 32, 4)
    for column, surface in enumerate((room.FLOOR, room.WALL, room.OBJECT)):
        other = factors.copy()
        other[column] = 5
        changed = (image(*factors, data=data) != image(*other, data=data)).any(axis=0)
        assert (changed == (surfaces == surface).any(axis=(1, 3))).all()


def test_the_sky_has_the_colour_of_the_original_and_nothing_else_in_it():
    pixels = SMALL.images(generator(0, "sky").integers(len(SMALL), size=40))
    assert (pixels[:, :, 0, :] == np.array([153, 226, 249])[:, np.newaxis]).all()


@pytest.mark.parametrize("image_size", [8, 16, 33])
def test_antialiased_edges_have_no_dark_seams(monkeypatch, image_size):
    """On surfaces of one colour and full brightness every pixel is a mix of it and the sky, nothing else."""
    real = room.cast_rays

    def bright(*arguments):
        view = real(*arguments)
        return room.View(view.surface, np.ones_like(view.brightness), np.zeros_like(view.highlight))

    monkeypatch.setattr(room, "cast_rays", bright)
    shapes3d._layer_cache.cache_clear()
    data = Shapes3DDataset(image_size=image_size)
    geometries = list(itertools.product((0, 7), range(4), (0, 7, 12)))
    red, green, blue = np.moveaxis(data.images(data.index_of([[0, 0, 0, *g] for g in geometries])), 1, 0)
    share = green / 226
    assert share.min() == 0
    np.testing.assert_allclose(red, 255 - (255 - 153) * share, atol=1)
    np.testing.assert_allclose(blue, 249 * share, atol=1)
    shapes3d._layer_cache.cache_clear()


def test_layers_are_the_formula_for_every_colour():
    """A channel is the mean of min(1, c b + w) over the rays of its pixel, also where surfaces meet."""
    view = room.cast_rays("sphere", 0.75 + 0.5 * 5 / 7, math.radians(30 - 60 * 11 / 14), 16 * 8)
    for hues in ((0, 5, 1), (2, 3, 8), (9, 7, 4), (6, 6, 2)):
        expected = np.empty((3, 16, 16))
        for channel in range(3):
            levels = np.array([0, *(hue(step)[channel] / 5 for step in hues)])[view.surface]
            values = np.minimum(1, levels * view.brightness + view.highlight)
            values = np.where(view.surface == room.SKY, shapes3d._SKY[channel] / 255, values)
            expected[channel] = values.reshape(16, 8, 16, 8).mean(axis=(1, 3)) * 255
        # half a level by the last rounding, and eight layers are rounded to 1/64 of a level, some taken four times
        assert abs(image(*hues, 5, 2, 11) - expected).max() <= 0.5 + 0.25


def test_objects_grow_by_five_thirds():
    data = Shapes3DDataset(image_size=64)
    widths, areas = [], []
    for scale in range(8):
        changed = image(3, 6, 0, scale, 2, 7, data=data) != image(3, 6, 5, scale, 2, 7, data=data)
        widths.append(changed.any(axis=(0, 1)).sum())
        areas.append(changed.any(axis=0).sum())
    assert (np.diff(areas) > 0).all()

    # half the width is r / √(1 − r²); counted to the pixel at both ends, at each of the two scales
    def width(scale: float) -> float:
        radius = scale * room.SPHERE_RADIUS
        return 128 * radius / math.sqrt(1 - radius**2)

    assert abs(widths[0] - width(0.75)) < 2
    assert abs(widths[7] - width(1.25)) < 2


def test_neighbouring_geometries_differ_even_in_small_images():
    geometries = list(itertools.product((0, 1, 6, 7), range(4), (0, 1, 6, 7, 8, 13, 14)))
    images = SMALL.images(SMALL.index_of([[1, 4, 7, *geometry] for geometry in geometries]))
    assert len({each.tobytes() for each in images}) == len(geometries)


def test_every_hue_differs_in_every_geometry():
    random = generator(0, "hues")
    for geometry in random.integers(0, [8, 4, 15], size=(10, 3)):
        factors = [[*hues, *geometry] for hues in itertools.product(range(10), range(10), range(10))]
        assert len({each.tobytes() for each in SMALL.images(SMALL.index_of(factors))}) == 1000


def test_images_of_half_the_size_show_the_same():
    indices = generator(0, "halves").integers(len(SMALL), size=12)
    small, large = (Shapes3DDataset(image_size=size).images(indices).astype(float) for size in (32, 64))
    pooled = large.reshape(12, 3, 32, 2, 32, 2).mean(axis=(3, 5))
    assert abs(pooled - small).mean() < 1
    assert np.percentile(abs(pooled - small), 99) < 20  # pixels on edges, of which rays take samples


@pytest.mark.parametrize("image_size", [8, 64, 256])
def test_kept_layers_stay_within_the_stated_memory(image_size):
    layers_of = shapes3d._layer_cache(image_size)
    kept = layers_of.cache_parameters()["maxsize"]
    assert kept * layers_of(0, 0, 0).nbytes <= 2**28
    assert kept >= 480 or image_size > 186
    if image_size == 64:
        assert 480 * layers_of(0, 0, 0).nbytes < 32e6


@pytest.mark.parametrize("image_size", [8, 64])
def test_drawing_takes_no_more_memory_than_is_stated(image_size):
    data = Shapes3DDataset(image_size=image_size)
    shapes3d._layer_cache.cache_clear()
    stated = data.footprint().memory_bytes
    kept = 480 * shapes3d._layer_cache(image_size)(0, 0, 0).nbytes
    indices = np.arange(64) * 480 + 100 + np.arange(64) % 3  # of three geometries
    tracemalloc.start()
    data.values(indices)
    held, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert stated >= kept
    assert stated >= kept + peak - held, "all geometries, and what a batch takes beyond those it keeps"


def test_results_on_another_drawing_are_not_taken_over():
    assert SMALL.fingerprint != files.digest(SMALL.describe())


def test_the_look_alike_says_what_it_is():
    assert "not the original" in SMALL.note
    assert SMALL.factor_classes["shape"] == ("cube", "cylinder", "sphere", "capsule")
    assert family.traits("shapes3d")["original"] == "shapes3d-original"


def test_a_size_too_small_for_the_room_is_refused():
    with pytest.raises(InputError, match="image_size must be at least 8"):
        Shapes3DDataset(7)
