"""The digits are those of scikit-learn, as bytes."""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_digits

from polariscope.data.published.digits import DigitsDataset


def test_images_are_the_grey_levels_of_the_original_to_the_nearest_byte() -> None:
    data, original = DigitsDataset(), load_digits()
    everything = np.arange(len(data))
    images = data.images(everything)
    assert images.shape == (1797, 1, 8, 8)
    assert len(np.unique(images)) == 17
    assert (images.min(), images.max()) == (0, 255)
    # Half a byte is 0.5/255.
    np.testing.assert_allclose(data.values(everything)[:, 0], original.images / 16, atol=0.5 / 255 + 1e-7)
    np.testing.assert_array_equal(data.factors(everything)[:, 0], original.target)
