from __future__ import annotations

import numpy as np

from polariscope.data.rendered.sprites import SpritesDataset
from polariscope.data.variants.inverted import InvertedVariant


def test_it_is_one_minus_the_image_and_its_own_inverse():
    sprites = SpritesDataset(image_size=24)
    once = InvertedVariant(sprites)
    np.testing.assert_allclose(once.values([5, 9]), 1 - sprites.values([5, 9]), atol=1e-6)
    np.testing.assert_array_equal(InvertedVariant(once).images([5, 9]), sprites.images([5, 9]))
