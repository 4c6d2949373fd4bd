"""Folders of images: order, resizing, classes, memory, and what is refused."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from polariscope.core.errors import InputError
from polariscope.data.own.images import FolderDataset, from_folder
from polariscope.data.sources import load_recorded


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
    padded = from_folder(tmp_path, image_size=8, mode="pad", channels=1).images([0])[0, 0]
    assert (padded[:2] == 0).all()
    assert (padded[6:] == 0).all()
    assert (padded[2:6, 3:5] >= 195).all()
    cropped = from_folder(tmp_path, image_size=8, mode="crop", channels=1).images([0])[0, 0]
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
    images = from_folder(tmp_path, image_size=4, channels=3).images(range(3))
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
    assert from_folder(copy, channels=1).fingerprint != first.fingerprint
    assert from_folder(copy, image_size=32).fingerprint != first.fingerprint
    (copy / "b.png").rename(copy / "d.png")
    assert from_folder(copy).fingerprint != first.fingerprint
    write(folder / "b.png", plain((254, 0, 0)))
    assert from_folder(folder).fingerprint != first.fingerprint


def test_damaged_files_are_named_before_anything_is_read_of_the_others(folder):
    (folder / "broken.png").write_bytes(b"not an image")
    with pytest.raises(InputError, match=r"broken\.png cannot be read as an image .*; replace or remove it"):
        from_folder(folder)
    (folder / "broken.png").unlink()
    for name in ("c.jpeg", "b.png"):
        whole = (folder / name).read_bytes()
        for left in (len(whole) // 2, len(whole) - 12):
            cut = folder / f"cut{Path(name).suffix}"
            cut.write_bytes(whole[:left])
            with pytest.raises(InputError, match=rf"{cut.name} cannot be read as an image"):
                from_folder(folder)
            cut.unlink()


def test_bytes_after_the_end_of_a_picture_do_no_harm(folder):
    with (folder / "b.png").open("ab") as file:
        file.write(b"comment" * 100)
    assert len(from_folder(folder)) == 3


def test_decompression_bombs_are_refused(folder, monkeypatch):
    for limit in (40, 10):  # a file of 64 pixels: pillow's warning, and its error beyond twice the limit
        monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", limit)
        with pytest.raises(InputError, match=r"z\.PNG cannot be read.*decompression bomb"):
            from_folder(folder)


def test_images_keep_their_size_and_channels(tmp_path):
    pixels = np.random.default_rng(0).integers(0, 256, (3, 28, 20), dtype=np.uint8)
    for number, image in enumerate(pixels):
        write(tmp_path / f"{number}.png", image)
    data = from_folder(tmp_path)
    assert data.shape == (1, 28, 20)
    np.testing.assert_array_equal(data.images([2, 0])[:, 0], pixels[[2, 0]])
    assert data.choices == ("images of their own size, 28×20 pixels", "1 channel")
    assert data.ids([2, 0]).tolist() == ["2.png", "0.png"]
    colour = from_folder(tmp_path, channels=3)
    np.testing.assert_array_equal(colour.images([1])[0], np.repeat(pixels[1:2], 3, axis=0))


def test_mixed_sizes_and_channels_are_refused_with_the_remedy(tmp_path):
    write(tmp_path / "a.png", plain((1, 2, 3)))
    write(tmp_path / "b.png", plain((1, 2, 3), 8, 9))
    with pytest.raises(
        InputError,
        match=r"have 2 sizes: 8×8 \(1 file, such as a\.png\), 8×9 .*; convert them to one with image_size=64",
    ):
        from_folder(tmp_path)
    write(tmp_path / "b.png", plain((1, 2, 3))[:, :, 0])
    with pytest.raises(
        InputError, match=r"2 numbers of channels: 3 \(1 file, such as a.png\), 1 .* channels=3"
    ):
        from_folder(tmp_path)
    assert from_folder(tmp_path, channels=3).shape == (3, 8, 8)


def test_sixteen_bits_are_divided_by_257_and_that_is_announced(tmp_path):
    deep = np.array([[0, 257, 65535], [1000, 30000, 128]], dtype=np.uint16)
    Image.fromarray(deep).save(tmp_path / "deep.png")
    Image.fromarray(deep).save(tmp_path / "deep.tif")
    data = from_folder(tmp_path)
    assert data.choices[2:] == ("16 bits reduced to 8",)
    for image in data.images([0, 1])[:, 0]:
        np.testing.assert_array_equal(image, np.rint(deep / 257))


def test_sixteen_bits_of_colour_are_announced_too(tmp_path):
    """Pillow writes none, so the file is made by hand: one row of two pixels, 16 bits per channel."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return (
            struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
        )

    values = struct.pack(">6H", 65535, 0, 32896, 257, 514, 0)
    header = struct.pack(">IIBBBBB", 2, 1, 16, 2, 0, 0, 0)
    body = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"\0" + values)) + chunk(b"IEND", b"")
    (tmp_path / "deep.png").write_bytes(b"\x89PNG\r\n\x1a\n" + body)
    data = from_folder(tmp_path)
    assert "16 bits reduced to 8" in data.choices
    assert data.images([0])[0, :, 0].T.tolist() == [[255, 0, 128], [1, 2, 0]]


def test_more_than_sixteen_bits_are_refused(tmp_path):
    Image.fromarray(np.zeros((4, 4), dtype=np.float32)).save(tmp_path / "float.tif")
    with pytest.raises(InputError, match=r"float\.tif has more than 16 bits per channel \(mode F\); convert"):
        from_folder(tmp_path)


@pytest.mark.parametrize("ending", ["png", "gif", "tif"])
def test_animations_are_refused_or_their_first_frame_is_taken(tmp_path, ending):
    first, second = Image.new("L", (4, 4), 255), Image.new("L", (4, 4), 9)
    first.save(tmp_path / f"moving.{ending}", save_all=True, append_images=[second])
    with pytest.raises(InputError, match=rf"moving\.{ending} is animated, .* with frame='first'"):
        from_folder(tmp_path)
    data = from_folder(tmp_path, frame="first")
    assert "first frame of animated files" in data.choices
    assert (data.images([0]) == 255).all()


def test_cmyk_and_palettes_become_colours_and_transparent_parts_black(tmp_path):
    Image.new("CMYK", (4, 4), (0, 255, 255, 0)).save(tmp_path / "print.jpg", quality=95)
    data = from_folder(tmp_path)
    assert data.choices[2:] == ("CMYK converted to RGB",)
    assert np.abs(data.images([0])[0].astype(int) - np.array([255, 0, 0])[:, None, None]).max() <= 4
    (tmp_path / "print.jpg").unlink()
    Image.fromarray(plain((10, 20, 30), 4, 4)).quantize(4).save(tmp_path / "palette.png")
    assert from_folder(tmp_path).images([0])[0, :, 0, 0].tolist() == [10, 20, 30]
    (tmp_path / "palette.png").unlink()
    grey = np.dstack([np.full((4, 4), 200, np.uint8), np.tile(np.array([0, 255, 255, 0], np.uint8), (4, 1))])
    Image.fromarray(grey, mode=None).save(tmp_path / "clear.png")
    data = from_folder(tmp_path)
    assert data.shape == (1, 4, 4)
    assert data.choices[2:] == ("transparent parts black",)
    assert data.images([0])[0, 0, 0].tolist() == [0, 200, 200, 0]


def test_masks_of_bytes_0_and_1_are_black_and_white(tmp_path):
    masks = np.zeros((2, 8, 8), np.uint8)
    masks[1, 2:5] = 1
    for number, mask in enumerate(masks):
        write(tmp_path / f"{number}.png", mask)
    data = from_folder(tmp_path)
    assert data.white == 1
    assert "bytes 0 and 1 are black and white" in data.choices
    np.testing.assert_array_equal(data.values([0, 1])[:, 0], masks)
    half = from_folder(tmp_path, image_size=4).images([1])[0, 0]
    assert set(half.ravel().tolist()) - {0, 255}  # scaled before it is made smaller, so edges are grey
    dark = from_folder(tmp_path, white=255)
    assert dark.images([1]).max() == 1
    assert dark.fingerprint != data.fingerprint
    record = data.describe()
    assert load_recorded(record).fingerprint == data.fingerprint
    write(tmp_path / "2.png", np.full((8, 8), 3, np.uint8))
    assert from_folder(tmp_path).white == 255


def test_labels_come_from_a_table(tmp_path):
    for name in ("one.png", "sub/two.png", "sub/three.png"):
        write(tmp_path / "pictures" / name, plain((9, 9, 9)))
    table = tmp_path / "labels.csv"
    table.write_text("age,file,kind\n3,one.png,owl\n4.5,sub/three.png,cat\n1,two.png,owl\n")
    data = from_folder(tmp_path / "pictures", labels=table)
    assert data.file_names == ("one.png", "sub/three.png", "sub/two.png")
    assert data.factor_names == ("age", "kind")
    assert data.factor_kinds == ("continuous", "categorical")
    assert data.factors([0, 1, 2]).tolist() == [[3, 1], [4.5, 0], [1, 1]]
    assert data.factor_classes == {"kind": ("cat", "owl")}
    assert load_recorded(data.describe()).fingerprint == data.fingerprint
    assert from_folder(tmp_path / "pictures").fingerprint != data.fingerprint


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "file,kind\none.png,a\n",
            "does not match the pictures: there is no row for 'two.png'; write one row for each",
        ),
        ("file,kind\none.png,a\ntwo.png,b\nsix.png,c\n", "there is no picture 'six.png'"),
        ("file,kind\none.png,a\ntwo.png,b\none.png,c\n", "there is more than one row for 'one.png'"),
        ("name,kind\none.png,a\ntwo.png,b\n", "must have a column 'file' and .* got name, kind"),
        ("file\none.png\ntwo.png\n", "a column for each factor, got file"),
        ("file,kind\none.png,\ntwo.png,b\n", "column 'kind' lacks 1 value, first in row 0"),
        ("file,kind\n", "has no rows"),
    ],
)
def test_a_table_that_does_not_match_is_refused(tmp_path, text, words):
    for name in ("one.png", "two.png"):
        write(tmp_path / name, plain((9, 9, 9)))
    (tmp_path / "labels.csv").write_text(text)
    with pytest.raises(InputError, match=words):
        from_folder(tmp_path, labels=tmp_path / "labels.csv")


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
    with pytest.raises(InputError, match=r"files ending in .png, .jpg, .jpeg, .* has no such file"):
        from_folder(tmp_path)
    with pytest.raises(InputError, match=r"but .*nowhere is not a folder"):
        from_folder(tmp_path / "nowhere")


def test_a_circular_link_among_pictures_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.png").symlink_to(tmp_path / "a.png")
    with pytest.raises(InputError, match="a circular link"):
        from_folder(tmp_path)
