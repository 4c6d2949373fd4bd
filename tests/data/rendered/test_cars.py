"""Cars: the original's grid, turned as the azimuth says, all different, all within the image."""

from __future__ import annotations

import functools
import itertools
import math
from pathlib import Path

import numpy as np
import pytest

from polariscope.core.errors import InputError
from polariscope.core.seeds import generator
from polariscope.data import cache
from polariscope.data.cached_array import CachedArray
from polariscope.data.dataset import family
from polariscope.data.rendered import cars
from polariscope.data.rendered.cars import CarsDataset
from polariscope.rendering.car_meshes import BODIES, car, design
from polariscope.rendering.mesh import Mesh

SIZES = np.array([4, 24, 183])


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path))


def views(data: CarsDataset, poses) -> np.ndarray:
    return data.images(data.index_of(np.array(poses)))


def test_indices_are_those_of_the_original():
    data = CarsDataset()
    assert len(data) == 17_568
    factors = generator(0, "factors").integers(0, SIZES, size=(500, 3))
    np.testing.assert_array_equal(data.index_of(factors), factors @ [24 * 183, 183, 1])
    assert family.traits("cars")["original"] == "cars3d"
    assert "not the original" in data.note


@functools.cache
def every_car() -> list[Mesh]:
    return [car(design(identity)) for identity in range(183)]


@pytest.mark.usefixtures("unannotated")  # checking the types takes longer than making the cars
def test_identities_differ_pairwise():
    images = np.array([cars._image(mesh, 1, 4, 16) for mesh in every_car()]).reshape(183, -1).astype(float)
    squares = (images**2).sum(axis=1)
    distances = squares[:, None] + squares - 2 * images @ images.T + 1e12 * np.eye(183)
    # at least as far apart as when 1.5 % of the values differ by 40 levels
    assert distances.min() > 0.015 * images.shape[1] * 40**2


@pytest.mark.usefixtures("unannotated")
def test_every_car_lies_within_the_image_and_the_longest_spans_it():
    reach = max(
        np.abs(cars._camera(elevation, azimuth).project(mesh.vertices, 2)[:, :2] - 1).max()
        for mesh in every_car()
        for elevation, azimuth in itertools.product(range(4), (0, 3, 4, 6, 20))
    )
    assert 0.93 < reach < 0.98


def test_neighbours_in_number_are_of_different_types():
    measures = [design(identity) for identity in range(14)]
    assert len({(round(one.height, 3), round(one.length, 3)) for one in measures}) == 14
    assert design(4).bed
    assert design(11).bed
    assert len(BODIES) == 7


@pytest.mark.parametrize("azimuth", [1, 6, 17])
def test_the_azimuth_turns_the_car(azimuth):
    mesh, turn = car(design(9)), 2 * math.pi * azimuth / 24
    turned = cars._image(mesh.turned(2, -turn), 2, 0, 64).astype(int)
    moved = cars._image(mesh, 2, azimuth, 64).astype(int)
    assert (np.abs(turned - moved) > 1).mean() < 0.002  # a sample on an outline may round the other way


def test_left_and_right_are_mirror_images():
    data = CarsDataset()
    for azimuth in (3, 8):
        one, other = views(data, [(2, azimuth, 30), (2, 24 - azimuth, 30)])
        outlines = (one != 255).any(axis=0), (other != 255).any(axis=0)[:, ::-1]
        assert outlines[0].sum() > 300
        assert (outlines[0] != outlines[1]).sum() <= 4


def test_a_car_shows_its_front_first_and_its_left_side_six_steps_later():
    front, side, back = views(
        CarsDataset(), [(0, 0, 4), (0, 6, 4), (0, 12, 4)]
    )  # a pickup: its cabin is ahead
    widths = [(image != 255).any(axis=(0, 1)).sum() for image in (front, side, back)]
    assert widths[1] > 1.8 * widths[0]
    assert abs(widths[0] - widths[2]) <= 2
    rows, columns = np.nonzero((side != 255).any(axis=0))
    assert columns[rows == rows.min()].mean() < 32  # so is the highest part: on the left


@pytest.mark.parametrize("column", range(3))
def test_every_factor_changes_at_least_a_hundredth_of_the_pixels(column):
    data = CarsDataset(32)
    start = generator(0, "start").integers(0, (4, 24, 5), size=(12, 3))
    end = start.copy()
    end[:, column] = (end[:, column] + 1) % SIZES[column]
    difference = np.abs(views(data, start).astype(int) - views(data, end)).max(axis=1)
    assert (difference > 4).mean(axis=(1, 2)).min() > 0.01


def test_other_sizes_show_the_same_picture():
    indices = generator(0, "sizes").integers(17_568, size=5)
    large = CarsDataset(64).images(indices).astype(float)
    small = CarsDataset(16).images(indices).astype(float)
    means = large.reshape(5, 3, 16, 4, 16, 4).mean(axis=(3, 5))
    # 16 samples a pixel instead of 256: an outline is off by a fraction of a sample
    assert np.abs(means - small).mean() < 2
    assert CarsDataset(9).images(indices).shape == (5, 3, 9, 9)
    with pytest.raises(InputError, match="image_size must be at least 8"):
        CarsDataset(7)


def test_the_file_holds_the_same_bytes_as_images_drawn_alone(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(CarsDataset, "factor_sizes", (2, 24, 2))
    data = CarsDataset(16)
    some = generator(0, "some").integers(len(data), size=12)
    drawn = data.images(some)
    alone = np.concatenate([data._render(np.array([index])) for index in some])
    np.testing.assert_array_equal(drawn, alone)
    data.prepare()
    assert isinstance(data._memory.mapped, CachedArray)
    np.testing.assert_array_equal(data.images(some), drawn)


def test_the_drawing_is_the_edition_that_its_number_says():
    """Raise ``drawing`` when this fails: files of the old edition must not be used."""
    means = CarsDataset().images([0, 5_000, 10_000, 17_567]).mean(axis=(1, 2, 3))
    assert CarsDataset.drawing == 1
    np.testing.assert_allclose(means, [239.084, 208.436, 217.249, 228.936], atol=0.02)
