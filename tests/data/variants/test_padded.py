from __future__ import annotations

import numpy as np
import pytest

from polariscope.core.errors import InputError
from polariscope.data.rendered.sprites import SpritesDataset
from polariscope.data.variants.cropped import CroppedVariant
from polariscope.data.variants.padded import PaddedVariant

SPRITES = SpritesDataset(image_size=16)


@pytest.mark.parametrize(("fill", "byte"), [(0.0, 0), (1.0, 255), (0.5, 128)])
def test_what_is_added_has_one_brightness_and_cropping_undoes_it(fill, byte):
    padded = PaddedVariant(SPRITES, 20, width=31, fill=fill)
    image = padded.images([40_000])[0, 0]
    assert image.shape == (20, 31)
    assert (image[:2] == byte).all()
    assert (image[:, 23:] == byte).all()
    np.testing.assert_array_equal(CroppedVariant(padded, 16).images([40_000]), SPRITES.images([40_000]))


def test_a_frame_smaller_than_the_image_is_refused():
    with pytest.raises(InputError, match="images of 16 × 16 pixels do not fit into 20 × 12"):
        PaddedVariant(SPRITES, 20, width=12)
