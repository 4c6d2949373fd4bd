from __future__ import annotations

import numpy as np
from PIL import Image

from polariscope.data.own.arrays import from_arrays
from polariscope.data.variants.grey import WEIGHTS, GreyVariant


def test_colours_become_as_bright_as_pillow_makes_them():
    picture = np.random.default_rng(0).integers(256, size=(1, 40, 40, 3)).astype(np.uint8)
    grey = GreyVariant(from_arrays(picture))
    assert grey.shape == (1, 40, 40)
    np.testing.assert_array_equal(
        grey.images([0])[0, 0], np.asarray(Image.fromarray(picture[0]).convert("L"))
    )


def test_the_weights_add_up_so_white_stays_white():
    assert WEIGHTS.sum() == 2**16
    assert GreyVariant(from_arrays(np.full((1, 3, 4, 4), 255, np.uint8))).images([0]).min() == 255


def test_grey_images_stay_and_other_channels_are_averaged():
    image = np.arange(16, dtype=np.uint8).reshape(1, 4, 4)
    np.testing.assert_array_equal(GreyVariant(from_arrays(image)).images([0]), image[None])
    two = np.stack([np.zeros((1, 4, 4)), np.full((1, 4, 4), 9)], axis=1).astype(np.uint8)
    assert (GreyVariant(from_arrays(two, layout="channels-first")).images([0]) == 4).all()  # 4.5, to even
