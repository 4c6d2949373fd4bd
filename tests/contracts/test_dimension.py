"""Every estimator of intrinsic dimension keeps the contract of its family."""

from __future__ import annotations

from polariscope.analysis.dimension import estimator
from polariscope.testing import DimensionContract


class TestDimension(DimensionContract):
    names = list(estimator)
    count_directions = ("lpca",)
