"""Pages on datasets, for data with known answers."""

from __future__ import annotations

import dataclasses
import importlib.util
import math
import sys
from pathlib import Path

import numpy as np
import pytest

from polariscope.core.seeds import generator
from polariscope.data.dataset import AbstractGridDataset
from polariscope.data.rendered.solids import SolidsDataset


@pytest.fixture(scope="module")
def docs():
    path = Path(__file__).parents[1] / "docs" / "datasets.py"
    spec = importlib.util.spec_from_file_location("docs_datasets", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


@dataclasses.dataclass(frozen=True)
class LinearGrid(AbstractGridDataset):
    """Images whose first row of pixels is 3 w₁ and second row 1 w₂ of 255 levels; the third row is constant."""

    factor_names = ("first", "second", "third")
    factor_sizes = (8, 12, 40)
    factor_kinds = ("ordinal", "ordinal", "categorical")
    name = "linear-grid"

    @property
    def shape(self) -> tuple[int, ...]:
        return (1, 4, 5)

    def images(self, indices):
        first, second, _ = self.factors(indices).T
        images = np.zeros((len(first), 1, 4, 5), dtype=np.uint8)
        images[:, 0, 0] = 3 * first[:, np.newaxis]
        images[:, 0, 1] = second[:, np.newaxis]
        return images


def test_local_and_global_variances_of_linear_images_are_those_of_their_factors(docs):
    lines = docs.Table(LinearGrid(), n_images=1000).lines()
    expected = np.array([9 * (8**2 - 1), 12**2 - 1, 0]) / 12
    np.testing.assert_allclose([line.local_variance for line in lines], expected / expected.sum(), atol=1e-6)
    # the mean of 83 images of a value of the second factor strays by √(0.8/83) = 0.1 of the first's spread
    shares = [line.global_variance for line in lines]
    np.testing.assert_allclose(shares, expected / expected.sum(), atol=0.03)
    first, second, third = lines
    assert first.probe > 0.999
    assert second.probe > 0.999
    assert third.probe < 0.1
    assert third.chance == 1 / 40
    assert math.isnan(first.chance)
    # another value changes the row's 5 of 20 pixels, by 3 levels a step: visibly if it is 2 steps or more away
    assert first.pixels == pytest.approx(0.25 * (1 - 2 * 7 / 56), abs=0.03)
    assert third.pixels == 0


def test_equal_images_are_counted_and_named(docs):
    images = docs.distinct(LinearGrid(), batch=50)
    assert images.n_images == 3840
    assert images.n_distinct == 96
    assert images.causes == (("third", 3744, "(0, 0, 0) and (0, 0, 1)"),)


def test_variance_between_values_is_not_raised_by_noise(docs):
    """The estimate for pure noise is about 0, not the noise divided by the number of images per value."""
    random = generator(0, "noise")
    labels = np.arange(2000) % 40
    noise = random.normal(size=(2000, 30))
    assert abs(docs.variance_between(noise, labels)) < 0.1
    assert docs.variance_between(noise + 2 * (labels[:, np.newaxis] % 2), labels) == pytest.approx(30, abs=1)


def test_pairs_without_a_grid_differ_in_what_they_should(docs):
    data = SolidsDataset(image_size=8, n_rotations=50)
    table = docs.Table(data, n_images=100, n_pairs=60)
    assert table.groups == [(0,), (1, 2, 3, 4)]
    for is_step in (True, False):
        start, end = (data.factors(indices) for indices in table.pairs((0,), is_step))
        assert (start[:, 0] != end[:, 0]).all()
        start, end = (data.factors(indices) for indices in table.pairs((1, 2, 3, 4), is_step))
        assert (start[:, 0] == end[:, 0]).all()
    start, end = (data.factors(indices) for indices in table.pairs((1, 2, 3, 4), is_step=True))
    for one, other in zip(start, end, strict=True):
        alike = data.factors(np.arange(len(data)))
        alike = alike[alike[:, 0] == one[0]]
        distances = np.sort(np.linalg.norm(alike - one, axis=1))
        assert np.linalg.norm(other - one) == pytest.approx(distances[1])


def test_the_page_shows_every_factor_and_the_sheets_every_image(docs):
    data = LinearGrid()
    page = docs.page(data, docs.Table(data, n_images=100).lines(), docs.distinct(data))
    for name in data.factor_names:
        assert f"| {name} |" in page
    assert "96 of 3,840 images are distinct." in page
    rows = docs.factor_rows(data)
    assert [name for name, _ in rows] == list(data.factor_names)
    for column, (_, indices) in enumerate(rows):
        moved = (data.factors(indices) != data.factors(indices)[0]).any(axis=0)
        assert np.flatnonzero(moved).tolist() == [column]
    picture = docs.sheet(data, rows)
    assert picture.mode == "L"
    assert picture.size[1] == 2 + 3 * (4 + 2)
