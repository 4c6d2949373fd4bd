"""Codes that no metric can take are refused at the door."""

from __future__ import annotations

import numpy as np
import pytest

from polariscope.analysis.metrics.support.checks import check_codes
from polariscope.core.errors import InputError


def test_codes_whose_squares_are_no_numbers_are_refused_and_small_or_constant_ones_taken():
    codes = np.array([[0.25, -0.5], [0.5, 0.125]])
    np.testing.assert_array_equal(check_codes(codes, "codes"), codes)
    np.testing.assert_array_equal(check_codes(0 * codes, "codes"), 0 * codes)
    for size in (1e101, 1e-101):
        with pytest.raises(InputError, match="codes must be of a size whose square is a number"):
            check_codes(size * codes, "codes")
