from __future__ import annotations

import numpy as np
import pytest

from polariscope.core.errors import InputError
from polariscope.data.own.arrays import from_arrays
from polariscope.data.variants.cropped import CroppedVariant

IMAGE = np.arange(2 * 6 * 9, dtype=np.uint8).reshape(2, 6, 9)
BASE = from_arrays(IMAGE)


def test_the_middle_is_kept_or_the_rectangle_that_was_asked_for():
    np.testing.assert_array_equal(CroppedVariant(BASE, 4).images([1])[0, 0], IMAGE[1, 1:5, 2:6])
    made = CroppedVariant(BASE, 2, width=3, top=4, left=0)
    assert made.shape == (1, 2, 3)
    np.testing.assert_array_equal(made.images([0])[0, 0], IMAGE[0, 4:, :3])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"image_size": 7}, "a crop of 7 × 7 pixels does not lie in images of 6 × 9"),
        ({"image_size": 4, "width": 10}, "a crop of 4 × 10 pixels"),
        ({"image_size": 4, "top": 3}, "from row 3 and column 2 does not lie"),
        ({"image_size": 4, "left": 6}, "from row 1 and column 6 does not lie"),
    ],
)
def test_a_crop_beyond_the_image_is_refused(options, words):
    with pytest.raises(InputError, match=words):
        CroppedVariant(BASE, **options)
