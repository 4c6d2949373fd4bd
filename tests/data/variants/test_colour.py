from __future__ import annotations

import numpy as np
import pytest

from polariscope.core.errors import InputError
from polariscope.core.seeds import uniforms
from polariscope.data.own.arrays import from_arrays
from polariscope.data.rendered.sprites import SpritesDataset
from polariscope.data.variants.colour import ColourVariant

SPRITES = SpritesDataset(image_size=64)


def test_an_image_is_the_sprite_times_one_colour():
    indices = np.array([0, 1000, 500_000])
    data = ColourVariant(SPRITES, seed=3)
    colours = 0.5 + 0.5 * uniforms(3, "colour", indices=indices, width=3)
    wanted = np.rint(SPRITES.images(indices) * colours.astype(np.float32)[:, :, None, None])
    np.testing.assert_array_equal(data.images(indices), wanted)


def test_white_pixels_show_the_colours_which_are_uniform_from_a_half_to_one():
    white = from_arrays(np.full((4000, 1, 1), 255, dtype=np.uint8))
    colours = ColourVariant(white).values(np.arange(4000))[:, :, 0, 0]
    assert colours.min() >= 127 / 255
    assert colours.max() <= 1
    # Mean 3/4 and variance 1/48; five standard errors of 12,000 draws.
    assert abs(colours.mean() - 0.75) < 5 * np.sqrt(1 / 48 / 12_000)
    assert abs(np.corrcoef(colours[:, 0], colours[:, 1])[0, 1]) < 5 / np.sqrt(4000)


def test_black_stays_black_and_another_seed_gives_other_colours():
    image, other = (ColourVariant(SPRITES, seed=seed).images([7])[0] for seed in (0, 1))
    outside = SPRITES.images([7])[0, 0] == 0
    assert (image[:, outside] == 0).all()
    assert (image[:, ~outside] != other[:, ~outside]).any()


def test_coloured_images_are_tinted_and_other_channels_refused():
    red = np.zeros((1, 3, 4, 4), dtype=np.uint8)
    red[:, 0] = 255
    tinted = ColourVariant(from_arrays(red)).images([0])[0]
    assert tinted[0].min() >= 127
    assert (tinted[1:] == 0).all()
    with pytest.raises(
        InputError, match="applies to grey or coloured images, but those of arrays have 2 channels"
    ):
        ColourVariant(from_arrays(np.zeros((1, 2, 4, 4), np.uint8), layout="channels-first"))
