"""CelebA: how images become square, the attributes, and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import originals
from polariscope.core import files
from polariscope.core.errors import InputError, PolariscopeError
from polariscope.data.chain import apply_variants
from polariscope.data.published.celeba import CelebADataset
from polariscope.data.sources import load_recorded


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


def test_a_changed_picture_of_the_same_size_changes_the_fingerprint_and_the_cached_images(
    folder: Path,
) -> None:
    originals.celeba(folder)
    before = CelebADataset(str(folder))
    images, fingerprints = before.images([0, 1]), {before.fingerprint}
    first, second = sorted((folder / "img_align_celeba").glob("*.jpg"))[:2]
    content = first.read_bytes()
    length = max(len(content), second.stat().st_size)
    # Bytes after the end of a JPEG are ignored.
    first.write_bytes(second.read_bytes().ljust(length, b"\0"))
    second.write_bytes(content.ljust(length, b"\0"))
    padded = CelebADataset(str(folder))
    np.testing.assert_array_equal(padded.images([1, 0]), images)
    fingerprints.add(padded.fingerprint)
    swapped = (first.read_bytes(), second.read_bytes())
    first.write_bytes(swapped[1])
    second.write_bytes(swapped[0])
    after = CelebADataset(str(folder))
    assert len({*fingerprints, after.fingerprint}) == 3
    np.testing.assert_array_equal(after.images([0, 1]), images)


def test_the_digest_of_a_folder_is_computed_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    originals.celeba(folder)
    fingerprint = CelebADataset(str(folder)).fingerprint

    def fail(path: Path) -> str:
        assert path.suffix != ".jpg", "a picture was read again"
        return digest_file(path)

    digest_file = files.digest_file
    monkeypatch.setattr(files, "digest_file", fail)
    assert CelebADataset(str(folder)).fingerprint == fingerprint


@pytest.mark.parametrize("variants", [(), ["grey"]])
def test_a_record_of_0_2_0_is_loaded_with_a_warning(
    folder: Path, variants: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    originals.celeba(folder)
    data = CelebADataset(str(folder))
    before = data.as_recorded_before()
    assert before is not None
    record = apply_variants(before, variants).describe() if variants else before.describe()
    record["fingerprint"] = (apply_variants(before, variants) if variants else before).fingerprint
    loaded = load_recorded(record)
    assert "recorded by version 0.2.0 with names and sizes" in caplog.text
    assert loaded.fingerprint == record["fingerprint"]
    next((folder / "img_align_celeba").glob("*.jpg")).write_bytes(b"x")
    with pytest.raises(PolariscopeError, match="has changed since it was recorded"):
        load_recorded(record)
