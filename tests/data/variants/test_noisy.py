from __future__ import annotations

import numpy as np

from polariscope.data.own.arrays import from_arrays
from polariscope.data.rendered.sprites import SpritesDataset
from polariscope.data.variants.noisy import NoisyVariant


def test_the_sprite_stays_white_and_the_rest_is_uniform_noise():
    sprites = SpritesDataset(image_size=64)
    images = NoisyVariant(sprites).images(np.arange(50))
    inside = np.broadcast_to(sprites.images(np.arange(50)) == 255, images.shape)
    assert (images[inside] == 255).all()
    noise = images[~inside]
    counts = np.bincount(noise, minlength=256)
    expected = noise.size / 256
    # χ² with 255 degrees of freedom: mean 255, standard deviation √510.
    assert abs(((counts - expected) ** 2 / expected).sum() - 255) < 5 * np.sqrt(510)


def test_noise_is_added_to_grey_and_cut_at_white():
    images = {level: from_arrays(np.full((1, 32, 32), level, dtype=np.uint8)) for level in (0, 100)}
    noise, both = (NoisyVariant(images[level]).images([0]).astype(int) for level in (0, 100))
    np.testing.assert_array_equal(both, np.minimum(255, 100 + noise))


def test_channels_and_indices_have_their_own_noise():
    data = NoisyVariant(from_arrays(np.zeros((2, 32, 32), dtype=np.uint8)))
    first, second = data.images([0, 1]).reshape(2, 3, -1).astype(float)
    table = np.corrcoef(np.concatenate([first, second]))
    assert np.abs(table[~np.eye(6, dtype=bool)]).max() < 5 / 32
