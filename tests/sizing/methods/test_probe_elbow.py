"""What can be predicted from codes."""

from __future__ import annotations

import numpy as np

from polariscope.analysis.representation import Representation
from polariscope.core.seeds import generator
from polariscope.sizing.methods.probe_elbow import probe_score


def test_samples_that_come_sorted_by_a_factor_are_predicted_as_well_as_others() -> None:
    """Four classes far apart: taken in order, the last quarter would be a class that was never fitted."""
    factors = np.repeat(np.arange(4), 100)[:, None]
    codes = 10.0 * factors + generator(0, "codes").standard_normal((400, 2))
    arrays = codes, np.full((400, 2), 0.01), codes
    assert probe_score(Representation(*arrays, factors=factors), seed=0) > 0.97
    mixed = generator(0, "order").permutation(400)
    shuffled = Representation(*(array[mixed] for array in arrays), factors=factors[mixed])
    assert probe_score(shuffled, seed=0) > 0.97
