from __future__ import annotations

import numpy as np
import pytest

from polariscope.data.own.arrays import from_arrays
from polariscope.data.variants.flips import FlipsVariant


@pytest.mark.parametrize("probability", [0.001, 0.05, 0.5])
def test_the_share_of_flips_is_the_probability(probability):
    base = from_arrays(np.full((50, 64, 64), 40, dtype=np.uint8))
    images = FlipsVariant(base, probability=probability).images(np.arange(50))
    flipped = images == 215
    assert (flipped | (images == 40)).all()
    error = np.sqrt(probability * (1 - probability) / flipped.size)
    assert abs(flipped.mean() - probability) < 5 * error


def test_never_and_always():
    image = np.arange(256, dtype=np.uint8).reshape(1, 16, 16)
    base = from_arrays(image)
    np.testing.assert_array_equal(FlipsVariant(base, probability=0).images([0]), image[None])
    np.testing.assert_array_equal(FlipsVariant(base, probability=1).images([0]), 255 - image[None])
