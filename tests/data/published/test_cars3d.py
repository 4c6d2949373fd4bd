"""Cars3D: order, resizing, and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import scipy.io
from PIL import Image

import originals
from polariscope.core.errors import InputError
from polariscope.data.published.cars3d import Cars3DDataset


def test_a_folder_of_the_unpacked_files_is_the_same_as_the_archive(folder: Path) -> None:
    written = originals.cars3d(folder, unpacked=True)
    for place in (folder, folder / "data", folder / "data" / "cars"):
        data = Cars3DDataset(str(place))
        np.testing.assert_array_equal(data.factors(np.arange(len(data))), written.factors)
        np.testing.assert_array_equal(data.images(np.arange(len(data))), written.images)


def test_elevation_is_slowest_and_the_car_fastest(folder: Path) -> None:
    originals.cars3d(folder)
    data = Cars3DDataset(str(folder))
    assert data.factor_sizes == (4, 24, 3)
    assert data.factor_kinds == ("ordinal", "cyclic", "categorical")
    assert data.index_of([[1, 2, 0]]).tolist() == [1 * 72 + 2 * 3]
    assert int(np.prod(data.original_sizes)) == 17_568


def test_images_are_resized_with_antialiasing(folder: Path) -> None:
    """Stripes of one pixel become grey, and every image is what Pillow's Lanczos filter makes of it."""
    images = np.zeros((128, 128, 3, 1, 1), np.uint8)
    images[::2] = 255
    (folder / "car_000.mat").write_bytes(originals.mat(images))
    made = Cars3DDataset(str(folder), image_size=32).images([0])[0]
    assert abs(made[:, 4:-4].astype(int) - 127).max() <= 1
    expected = Image.fromarray(images[..., 0, 0]).resize((32, 32), Image.Resampling.LANCZOS)
    np.testing.assert_array_equal(made.transpose(1, 2, 0), np.asarray(expected))


@pytest.mark.parametrize(
    ("im", "words"),
    [
        (np.zeros((16, 16, 3, 24), np.uint8), "bytes 'im' of shape"),
        (np.zeros((16, 16, 3, 24, 4)), "got double of shape"),
        (np.array([originals.mat, 1], dtype=object), "got cell of shape"),
        (np.zeros((16, 16, 3, 2, 4), np.uint8), "cars of one shape"),
        (np.zeros((16, 16, 3, 25, 4), np.uint8), "cars of one shape"),
    ],
)
def test_a_file_that_is_no_car_is_refused(folder: Path, im: np.ndarray, words: str) -> None:
    originals.cars3d(folder, n_cars=1, unpacked=True)
    if im.dtype == object:
        im = np.array([1, "a"], dtype=object)
    scipy.io.savemat(folder / "data" / "cars" / "z.mat", {"im": im})
    with pytest.raises(InputError, match=words):
        Cars3DDataset(str(folder))


def test_an_archive_without_cars_is_refused(folder: Path) -> None:
    originals.cars3d(folder, n_cars=0)
    with pytest.raises(InputError, match=r"must contain files of cars, data/cars/\*\.mat"):
        Cars3DDataset(str(folder))
