from __future__ import annotations

import numpy as np

from polariscope.data.own.arrays import from_arrays
from polariscope.data.rendered.sprites import SpritesDataset
from polariscope.data.variants.resized import ResizedVariant


def test_the_same_size_changes_nothing_and_one_colour_stays():
    sprites = SpritesDataset(image_size=32)
    np.testing.assert_array_equal(ResizedVariant(sprites, image_size=32).images([3]), sprites.images([3]))
    flat = np.broadcast_to(np.array([10, 200, 90], np.uint8)[:, None, None], (1, 3, 20, 30))
    made = ResizedVariant(from_arrays(flat), image_size=7, width=9).images([0])
    np.testing.assert_array_equal(made, np.broadcast_to(flat[..., :1, :1], (1, 3, 7, 9)))


def test_the_width_is_in_proportion_unless_given():
    base = from_arrays(np.zeros((1, 20, 30), np.uint8))
    assert ResizedVariant(base, image_size=10).shape == (1, 10, 15)
    assert ResizedVariant(base, image_size=10, width=10).shape == (1, 10, 10)


def test_brightness_is_kept_on_average_when_an_image_shrinks():
    sprites = SpritesDataset(image_size=64)
    small = ResizedVariant(sprites, image_size=16).values(np.arange(0, 700_000, 70_001))
    # Lanczos overshoots a little at edges, where it is cut.
    np.testing.assert_allclose(
        small.mean((1, 2, 3)), sprites.values(np.arange(0, 700_000, 70_001)).mean((1, 2, 3)), atol=0.005
    )
