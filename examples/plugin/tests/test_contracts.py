"""The members of this package keep the contracts of Polariscope."""

from __future__ import annotations

from polariscope.testing import DatasetContract, MetricContract


class TestMetrics(MetricContract):
    names = ["best-share"]


class TestDatasets(DatasetContract):
    names = ["moons"]
