"""Folders of images: order, resizing, classes, memory, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from polariscope.core.errors import InputError, PolariscopeError
from polariscope.data.own.images import FolderDataset, from_folder


def write(path, array) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.asarray(array, dtype=np.uint8)).save(path)


def plain(colour, height=8, width=8) -> np.ndarray:
    return np.broadcast_to(np.array(colour, dtype=np.uint8), (height, width, 3))


@pytest.fixture
def folder(tmp_path):
    write(tmp_path / "b.png", plain((255, 0, 0)))
    write(tmp_path / "a" / "z.PNG", plain((0, 255, 0)))
    write(tmp_path / "c.jpeg", plain((128, 128, 128)))
    (tmp_path / "notes.txt").write_text("not an image")
    write(tmp_path / ".hidden" / "x.png", plain((1, 2, 3)))
    (tmp_path / "._b.png").write_bytes(b"resource fork")
    return tmp_path


def test_files_are_found_in_the_order_of_their_names(folder):
    data = from_folder(folder, image_size=4)
    assert data.file_names == ("a/z.PNG", "b.png", "c.jpeg")
    assert data.shape == (3, 4, 4)
    images = data.images([1, 0, 1])
    assert (images[0] == np.array([255, 0, 0])[:, None, None]).all()
    assert (images[1] == np.array([0, 255, 0])[:, None, None]).all()
    assert (images[2] == images[0]).all()
    assert np.abs(data.images([2]).astype(int) - 128).max() <= 2  # JPEG
    assert data.factor_names == ()


def test_unequal_sides_are_padded_with_black_or_cropped(tmp_path):
    wide = np.zeros((8, 16, 3))
    wide[:, 4:12] = 200
    write(tmp_path / "wide.png", wide)
    padded = from_folder(tmp_path, image_size=8, mode="pad", grey=True).images([0])[0, 0]
    assert (padded[:2] == 0).all()
    assert (padded[6:] == 0).all()
    assert (padded[2:6, 3:5] >= 195).all()
    cropped = from_folder(tmp_path, image_size=8, mode="crop", grey=True).images([0])[0, 0]
    assert (cropped == 200).all()


def test_resizing_averages_instead_of_dropping_pixels(tmp_path):
    checkerboard = np.indices((64, 64)).sum(axis=0) % 2 * 255
    write(tmp_path / "board.png", np.repeat(checkerboard[..., None], 3, axis=2))
    image = from_folder(tmp_path, image_size=8).images([0])
    assert np.abs(image.astype(int) - 127).max() <= 3


def test_transparent_and_palette_and_turned_images_are_drawn_as_seen(tmp_path):
    clear = np.full((4, 4, 4), 255, dtype=np.uint8)
    clear[:, :2, 3] = 0
    Image.fromarray(clear).save(tmp_path / "a.png")
    Image.fromarray(plain((0, 0, 255), 4, 4)).convert("P").save(tmp_path / "b.png")
    turned = Image.fromarray(np.concatenate([plain((255, 255, 255), 8, 16), plain((0, 0, 0), 8, 16)]))
    exif = Image.Exif()
    exif[0x0112] = 3  # upside down
    turned.save(tmp_path / "c.jpg", exif=exif, quality=95)
    images = from_folder(tmp_path, image_size=4).images(range(3))
    assert (images[0, :, :, 0] == 0).all()
    assert (images[0, :, :, 3] == 255).all()
    assert (images[1] == np.array([0, 0, 255])[:, None, None]).all()
    assert images[2, :, 1].max() < 60
    assert images[2, :, 2].min() > 195


def test_subfolders_are_classes_when_every_file_lies_in_one(tmp_path):
    for name in ("cats/1.png", "dogs/x/2.png", "cats/3.png"):
        write(tmp_path / name, plain((9, 9, 9)))
    data = from_folder(tmp_path)
    assert data.class_names == ("cats", "dogs")
    assert (data.factor_names, data.factor_sizes, data.factor_kinds) == (("class",), (2,), ("categorical",))
    assert data.factors([0, 1, 2]).tolist() == [[0], [0], [1]]
    write(tmp_path / "loose.png", plain((9, 9, 9)))
    with pytest.raises(InputError, match="no known factors"):
        from_folder(tmp_path).factors([0])


def test_small_folders_are_decoded_once_and_large_ones_each_time(folder):
    kept, streamed = from_folder(folder, image_size=4), from_folder(folder, image_size=4, cache_megabytes=0)
    before = kept.images([0, 1, 2])
    np.testing.assert_array_equal(streamed.images([0, 1, 2]), before)
    write(folder / "b.png", plain((0, 0, 0)))
    np.testing.assert_array_equal(kept.images([0, 1, 2]), before)
    assert (streamed.images([1]) == 0).all()


def test_fingerprint_follows_contents_names_and_options_not_the_place_or_the_cache(folder, tmp_path_factory):
    first = from_folder(folder)
    copy = tmp_path_factory.mktemp("copy")
    for name in first.file_names:
        (copy / name).parent.mkdir(exist_ok=True)
        (copy / name).write_bytes((folder / name).read_bytes())
    assert from_folder(copy, cache_megabytes=0).fingerprint == first.fingerprint
    assert from_folder(copy, grey=True).fingerprint != first.fingerprint
    assert from_folder(copy, image_size=32).fingerprint != first.fingerprint
    (copy / "b.png").rename(copy / "d.png")
    assert from_folder(copy).fingerprint != first.fingerprint
    write(folder / "b.png", plain((254, 0, 0)))
    assert from_folder(folder).fingerprint != first.fingerprint


def test_unreadable_files_are_named(folder):
    (folder / "broken.png").write_bytes(b"not an image")
    whole = (folder / "c.jpeg").read_bytes()
    (folder / "cut.jpg").write_bytes(whole[: len(whole) // 2])
    Image.fromarray(np.zeros((4, 4), dtype=np.uint16)).save(folder / "deep.png")
    data = from_folder(folder)
    for name, words in (
        ("broken.png", "cannot be read"),
        ("cut.jpg", "cannot be read"),
        ("deep.png", "8 bits"),
    ):
        with pytest.raises(PolariscopeError, match=f"{name}.*{words}"):
            data.images([data.file_names.index(name)])


def test_decompression_bombs_are_refused(folder, monkeypatch):
    for limit in (40, 10):  # a file of 64 pixels: pillow's warning, and its error beyond twice the limit
        monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", limit)
        with pytest.raises(PolariscopeError, match=r"b\.png cannot be read.*decompression bomb"):
            from_folder(folder).images([1])


def test_links_that_leave_the_folder_are_refused(folder, tmp_path_factory):
    outside = tmp_path_factory.mktemp("outside")
    write(outside / "secret.png", plain((1, 1, 1)))
    (folder / "linked-folder").symlink_to(outside, target_is_directory=True)
    (folder / "inside.png").symlink_to(folder / "b.png")
    assert from_folder(folder).file_names == ("a/z.PNG", "b.png", "c.jpeg", "inside.png")
    (folder / "escape.png").symlink_to(outside / "secret.png")
    with pytest.raises(InputError, match=r"escape\.png is a link to a file outside .*; copy that file"):
        from_folder(folder)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"image_size": 0}, "image_size must be at least 1"),
        ({"cache_megabytes": -1}, "cache_megabytes must not be neg"),
    ],
)
def test_impossible_options_are_refused(folder, options, words):
    with pytest.raises(InputError, match=words):
        FolderDataset(str(folder), **options)


def test_folders_without_images_are_refused(tmp_path):
    with pytest.raises(InputError, match=r"files ending in .png, .jpg, .jpeg; .* has none"):
        from_folder(tmp_path)
    with pytest.raises(InputError, match=r"but there is none at .*nowhere"):
        from_folder(tmp_path / "nowhere")
