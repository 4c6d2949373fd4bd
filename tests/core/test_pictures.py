"""Pictures show the values they are given."""

from __future__ import annotations

import base64
import io

import numpy as np
import pytest
from PIL import Image

from polariscope.core.pictures import data_uri, difference_strip, diverging, strip, tile, to_pictures


def decoded(uri: str) -> np.ndarray:
    kind, _, content = uri.partition(",")
    assert kind == "data:image/png;base64"
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(content))))


@pytest.mark.parametrize("channels", [1, 3])
def test_a_strip_holds_the_images_in_order_with_a_gap(channels: int) -> None:
    images = np.random.default_rng(0).random((3, channels, 16, 16)).astype(np.float32)
    picture = decoded(data_uri(strip(images, (0.0, 1.0)))).reshape(16, 3 * 16 + 2, channels)
    for place in range(3):
        expected = np.round(images[place] * 255).transpose(1, 2, 0)
        np.testing.assert_array_equal(picture[:, place * 17 : place * 17 + 16], expected)
    assert (picture[:, 16] == 255).all()


def test_values_outside_the_range_are_clipped_and_the_range_is_stretched() -> None:
    images = np.array([-5.0, -2.0, 0.0, 2.0, 9.0], dtype=np.float32).reshape(5, 1, 1, 1)
    assert strip(images, (-2.0, 2.0))[0, ::2, 0].tolist() == [0, 0, 128, 255, 255]


def test_channels_that_are_no_colours_are_averaged() -> None:
    images = np.stack([np.zeros((4, 4)), np.ones((4, 4))])[None].astype(np.float32)
    assert (strip(images, (0.0, 1.0)) == 128).all()


def test_large_images_are_shown_smaller() -> None:
    assert strip(np.zeros((1, 3, 256, 128), dtype=np.float32), (0.0, 1.0)).shape == (96, 48, 3)


def test_differences_are_red_above_and_blue_below_and_pale_at_zero() -> None:
    red, pale, blue = diverging(np.array([1.0, 0.0, -1.0]), 1.0).astype(int)
    assert red[0] > red[2]
    assert blue[2] > blue[0]
    assert pale.min() > 240


def test_no_difference_at_all_is_pale_everywhere() -> None:
    assert difference_strip(np.zeros((2, 1, 4, 4), dtype=np.float32), 0.0).min() > 240


def test_pictures_are_bytes_with_channels_last_clipped_to_the_range() -> None:
    grey = np.array([[[[-1.0, 0.0], [0.5, 2.0]]]])
    np.testing.assert_array_equal(to_pictures(grey)[0, :, :, 0], [[0, 0], [128, 255]])
    np.testing.assert_array_equal(to_pictures(grey, (-1.0, 1.0))[0, :, :, 0], [[0, 128], [191, 255]])
    assert to_pictures(np.zeros((2, 3, 4, 5))).shape == (2, 4, 5, 3)
    assert to_pictures(np.zeros((2, 2, 4, 5))).shape == (2, 4, 5, 1)


def test_tiles_are_at_their_places_with_paper_between() -> None:
    pictures = np.arange(6, dtype=np.uint8).reshape(2, 3, 1, 1, 1).repeat(2, axis=2).repeat(2, axis=3)
    sheet = tile(pictures, gap=1)
    assert sheet.shape == (5, 8, 1)
    assert sheet[3, 6, 0] == 5
    assert (sheet[2] == 255).all()
