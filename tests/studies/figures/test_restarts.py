"""Histograms over restarts have equal bins in all panels."""

from __future__ import annotations

import pytest

from polariscope.studies.figures.restarts import RestartsFigure
from polariscope.testing.study_tables import by_data

VALUES = {"original": (0.0, 0.1, 0.9, 1.0), "changed": (0.0, 0.0, 0.2, 0.26)}


def test_bins_run_from_the_smallest_to_the_largest_value_of_all_panels() -> None:
    rows = RestartsFigure(n_bins=4).numbers(by_data(lambda data, seed: {"mig": VALUES[data][seed]}))
    counts = {
        panel: [row["runs"] for row in rows if row["panel"] == panel] for panel in ("original", "changed")
    }
    assert counts == {"original": [2, 0, 0, 2], "changed": [3, 1, 0, 0]}
    assert [row["from"] for row in rows][:4] == pytest.approx([0, 0.25, 0.5, 0.75])


def test_restarts_that_all_reach_the_same_value_are_one_heap() -> None:
    rows = RestartsFigure(n_bins=2).numbers(by_data(lambda data, seed: {"mig": 0.5}))
    assert [row["runs"] for row in rows] == [4, 0, 4, 0]
