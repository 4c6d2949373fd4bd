from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from polariscope.core.errors import InputError
from polariscope.data.own.arrays import from_arrays
from polariscope.data.rendered.sprites import SpritesDataset
from polariscope.data.variants.background import BackgroundVariant
from polariscope.data.variants.support.texture import texture

SPRITES = SpritesDataset(image_size=64)


def on(level: int, n: int = 1, size: int = 16) -> np.ndarray:
    return np.full((n, size, size), level, dtype=np.uint8)


def test_a_sprite_inverts_the_background():
    inside = SPRITES.images([300_000])[0, 0] == 255
    empty = from_arrays(np.zeros((300_001, 64, 64), dtype=np.uint8))
    behind = BackgroundVariant(empty).images([300_000])[0]
    image = BackgroundVariant(SPRITES).images([300_000])[0]
    np.testing.assert_array_equal(image[:, ~inside], behind[:, ~inside])
    np.testing.assert_array_equal(image[:, inside], 255 - behind[:, inside])


def test_grey_outlines_are_blended_to_the_nearest_byte():
    behind = BackgroundVariant(from_arrays(on(0))).images([0]).astype(float)
    blended = BackgroundVariant(from_arrays(on(100))).images([0])
    wanted = (155 * behind + 100 * (255 - behind)) / 255
    assert np.abs(blended - wanted).max() <= 0.5


def test_a_picture_of_one_colour_leaves_half_of_it_and_half_of_a_random_colour(tmp_path):
    Image.new("RGB", (80, 60), (200, 100, 0)).save(tmp_path / "one.png")
    data = BackgroundVariant(from_arrays(on(0, 2000)), picture=str(tmp_path / "one.png"))
    colours = data.images(np.arange(2000)).astype(float)
    assert (colours == colours[:, :, :1, :1]).all()
    mean = colours[:, :, 0, 0].mean(axis=0)
    # (p + a) / 2 rounded down, with a uniform over 0 … 255: standard deviation 37 of half of it
    np.testing.assert_allclose(
        mean, (np.array([200, 100, 0]) + 127.5) / 2 - 0.25, atol=5 * 37 / np.sqrt(2000)
    )


def test_pieces_come_from_the_whole_picture(tmp_path):
    ramp = np.broadcast_to(np.arange(200, dtype=np.uint8), (40, 200))
    Image.fromarray(ramp).convert("RGB").save(tmp_path / "ramp.png")
    data = BackgroundVariant(from_arrays(on(0, 1000)), picture=str(tmp_path / "ramp.png"))
    images = data.images(np.arange(1000)).astype(float)
    slopes = images[:, 0, 0, -1] - images[:, 0, 0, 0]
    assert set(np.unique(slopes)) <= {7, 8}
    assert data.painting.shape == (3, 40, 200)


def test_the_bytes_of_the_picture_count_not_its_place(tmp_path):
    base = from_arrays(on(0))
    for name, level in (("a", 10), ("b", 10), ("c", 11)):
        Image.new("RGB", (80, 60), (level,) * 3).save(tmp_path / f"{name}.png")
    a, b, c = (BackgroundVariant(base, picture=str(tmp_path / f"{name}.png")) for name in "abc")
    assert a.fingerprint == b.fingerprint != c.fingerprint
    assert a.fingerprint != BackgroundVariant(base).fingerprint


def test_pictures_that_cannot_be_used_are_refused(tmp_path):
    (tmp_path / "text.png").write_text("no picture")
    Image.new("RGB", (30, 12)).save(tmp_path / "small.png")
    base = from_arrays(on(0))
    with pytest.raises(InputError, match="picture must be a PNG or JPEG file that can be read"):
        BackgroundVariant(base, picture=str(tmp_path / "text.png"))
    with pytest.raises(InputError, match="picture must be a PNG or JPEG file that can be read"):
        BackgroundVariant(base, picture=str(tmp_path / "nowhere.png"))
    with pytest.raises(InputError, match=r"at least as large as the images, 16 × 16 pixels, got 12 × 30"):
        BackgroundVariant(base, picture=str(tmp_path / "small.png"))


def test_the_painting_is_larger_than_large_images():
    big = BackgroundVariant(from_arrays(on(0, 1, 400)))
    assert big.painting.shape == (3, 800, 800)
    assert BackgroundVariant(SPRITES).painting.shape == (3, 274, 350)


def test_the_texture_is_always_the_same_and_has_many_colours():
    picture = texture(274, 350)
    np.testing.assert_array_equal(picture, texture(274, 350))
    assert picture.std(axis=(1, 2)).min() > 20
    # Neighbours are alike, as in a painting and not in noise.
    assert np.abs(np.diff(picture.astype(int), axis=2)).mean() < 5
