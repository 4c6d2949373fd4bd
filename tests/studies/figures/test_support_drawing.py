"""Intervals and points of figures over seeds."""

from __future__ import annotations

import pytest
from matplotlib.figure import Figure

from polariscope.studies.figures.support.drawing import draw_line
from polariscope.studies.figures.support.grouping import summary


@pytest.mark.parametrize(("n_runs", "n_bands", "n_points"), [(1, 0, 0), (2, 0, 4), (3, 0, 6), (4, 1, 0)])
def test_up_to_three_seeds_are_points_and_more_have_a_band_in_bounds(
    n_runs: int, n_bands: int, n_points: int
) -> None:
    values = [0.0, 8.0, 0.0, 8.0][:n_runs]
    rows = tuple({"strength": x, "setting": "beta", **summary(values, (0.0, 8.0))} for x in (1.0, 2.0))
    axes = Figure().add_subplot()
    draw_line(axes, rows, colour="black", marker="o", label="active")
    assert len(axes.collections) == n_bands
    assert sum(len(line.get_xdata()) for line in axes.lines[1:]) == n_points
    for band in axes.collections:
        heights = band.get_paths()[0].vertices[:, 1]
        assert heights.min() == 0
        assert heights.max() == 8
