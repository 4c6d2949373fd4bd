"""CelebA: how images become square, the attributes, and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import originals
from polariscope.core.errors import InputError
from polariscope.data.published.celeba import CelebADataset


def test_padding_keeps_the_whole_image_between_black_bars(folder: Path) -> None:
    originals.celeba(folder)
    image = CelebADataset(str(folder)).images([0])[0]
    shade = int(originals.noise(4)[0])
    width = round(178 * 64 / 218)
    left = (64 - width) // 2
    assert (image[:, :, :left] == 0).all()
    assert (image[:, :, left + width :] == 0).all()
    assert abs(image[:, :, left : left + width].astype(int) - shade).max() <= 2  # JPEG


def test_the_centre_crop_has_no_bars_and_cuts_the_middle(folder: Path) -> None:
    originals.celeba(folder)
    pixels = np.zeros((218, 178, 3), np.uint8)
    pixels[35:183, 15:163] = 200
    (folder / "img_align_celeba" / "000001.jpg").write_bytes(originals.picture(pixels, "JPEG", quality=100))
    image = CelebADataset(str(folder), mode="centre-crop").images([0])[0]
    assert abs(image[:, 2:-2, 2:-2].astype(int) - 200).max() <= 3
    assert CelebADataset(str(folder)).images([0])[0][:, 32, 8].max() < 100


def test_the_archive_of_the_pictures_is_the_same_as_the_folder(folder: Path, tmp_path: Path) -> None:
    written = originals.celeba(folder)
    plain = CelebADataset(str(folder)).images([2, 0])
    other = tmp_path / "zipped"
    other.mkdir()
    originals.celeba(other, packed=True)
    zipped = CelebADataset(str(other))
    np.testing.assert_array_equal(zipped.images([2, 0]), plain)
    np.testing.assert_array_equal(zipped.factors([0, 1, 2, 3]), written.factors)
    assert zipped.ids([1]).tolist() == ["000002.jpg"]


def test_the_official_split_is_known_where_its_file_is(folder: Path) -> None:
    originals.celeba(folder)
    parts = CelebADataset(str(folder)).parts()
    assert {name: part.tolist() for name, part in parts.items()} == {
        "train": [0, 3],
        "validation": [1],
        "test": [2],
    }
    (folder / "list_eval_partition.txt").unlink()
    assert CelebADataset(str(folder)).parts() is None


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda text: text.replace("4\n", "5\n", 1), "a row for each of the 4 images, got 5"),
        (
            lambda text: text.replace("000003.jpg", "000009.jpg"),
            "2 without a counterpart, such as 000003.jpg",
        ),
        (lambda text: text.replace(" -1", " 0", 1), "40 numbers −1 or 1 for each file"),
        (lambda text: text.replace(" -1", " x", 1), "40 numbers −1 or 1 for each file"),
        (lambda text: text.replace(" -1", "", 1), "40 numbers −1 or 1 for each file"),
        (lambda text: "", "begin with the number of images"),
        (lambda text: text + text.splitlines()[-1] + "\n", "one line for each file"),
    ],
)
def test_a_list_of_attributes_that_does_not_match_is_refused(folder: Path, change, words: str) -> None:
    originals.celeba(folder)
    file = folder / "list_attr_celeba.txt"
    file.write_text(change(file.read_text()))
    with pytest.raises(InputError, match=words):
        CelebADataset(str(folder)).factors([0])


def test_a_picture_that_is_none_is_named(folder: Path) -> None:
    originals.celeba(folder)
    (folder / "img_align_celeba" / "000002.jpg").write_bytes(originals.picture(originals.noise(8, 8), "PNG"))
    with pytest.raises(InputError, match=r"'000002\.jpg' cannot be read as an image"):
        CelebADataset(str(folder)).images([0])


def test_a_link_out_of_the_folder_is_refused(folder: Path, tmp_path: Path) -> None:
    originals.celeba(folder)
    file = folder / "img_align_celeba" / "000002.jpg"
    file.rename(tmp_path / "outside.jpg")
    file.symlink_to(tmp_path / "outside.jpg")
    with pytest.raises(InputError, match="is a link to a file outside"):
        CelebADataset(str(folder)).images([0])
