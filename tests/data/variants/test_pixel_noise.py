from __future__ import annotations

import numpy as np
import pytest

from polariscope.core.errors import InputError
from polariscope.data.own.arrays import from_arrays
from polariscope.data.variants.pixel_noise import PixelNoiseVariant


def levels(*values: int) -> np.ndarray:
    return np.stack([np.full((64, 64), value, dtype=np.uint8) for value in values])


@pytest.mark.parametrize("epsilon", [1 / 255, 0.1, 0.175, 0.2, 1.0])
def test_no_value_changes_by_more_than_epsilon(epsilon):
    base = from_arrays(np.random.default_rng(0).integers(256, size=(20, 32, 32)).astype(np.uint8))
    change = PixelNoiseVariant(base, epsilon=epsilon).values(np.arange(20)).astype(np.float64) - base.values(
        np.arange(20)
    )
    # float32 of n / 255 is off by at most 3e-8
    assert np.abs(change).max() <= epsilon + 1e-7
    assert np.abs(change).max() > min(0.9, epsilon - 1.01 / 255)


def test_the_noise_is_uniform_in_bytes():
    data = PixelNoiseVariant(from_arrays(levels(128, 128, 128, 128)), epsilon=0.1)
    noise = data.images(np.arange(4)).astype(int).ravel() - 128
    counts = np.bincount(noise + 25, minlength=51)
    expected = noise.size / 51
    assert len(counts) == 51
    assert abs(((counts - expected) ** 2 / expected).sum() - 50) < 5 * np.sqrt(100)


def test_black_and_white_are_reflected():
    black, white = PixelNoiseVariant(from_arrays(levels(0, 255)), epsilon=0.1).images([0, 1])
    assert black.min() == 0
    assert black.max() == 25
    assert white.min() == 230
    assert white.max() == 255
    # 0 comes from one draw of 51, each other value from two
    assert abs((black == 0).mean() - 1 / 51) < 5 * np.sqrt(1 / 51 / 64**2)


def test_noise_below_one_byte_is_refused():
    with pytest.raises(InputError, match="epsilon must be at least 1/255"):
        PixelNoiseVariant(from_arrays(levels(0)), epsilon=0.003)
    with pytest.raises(InputError, match="epsilon must be above 0 and at most 1"):
        PixelNoiseVariant(from_arrays(levels(0)), epsilon=1.5)
