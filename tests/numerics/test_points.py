"""Points for the estimators of dimension: what the fewest are."""

from __future__ import annotations

import numpy as np
import pytest

from polariscope.core.errors import InputError
from polariscope.numerics.points import points_of


def test_three_samples_of_one_feature_are_enough_and_two_are_not():
    assert points_of(np.array([[1.0], [2.0], [4.0]])).values.shape == (3, 1)
    with pytest.raises(InputError, match="x must have at least 3 samples and a feature"):
        points_of(np.array([[1.0], [2.0]]))
