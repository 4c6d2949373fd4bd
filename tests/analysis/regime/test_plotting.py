"""The figure of a diagnosis shows its numbers."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from polariscope.analysis.regime.diagnose import diagnose
from polariscope.analysis.regime.types import COLOURS


def test_bars_are_the_variances_by_kl_in_the_colour_of_the_type() -> None:
    mean = np.random.default_rng(0).normal(size=(300, 3)) * [0.01, 1.0, 0.7]
    regime = diagnose(mean=mean, variance=np.full((300, 3), [1.0, 0.01, 0.5]))
    figure = Figure()
    axes = regime.plot(figure.add_subplot())
    bars = axes.patches
    assert [bar.get_height() for bar in bars] == pytest.approx([0.01, 0.5, 1.0])
    assert [to_hex(bar.get_facecolor()) for bar in bars] == [
        COLOURS["active"],
        COLOURS["mixed"],
        COLOURS["passive"],
    ]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["1", "2", "0"]
    (_, beside) = figure.axes
    drawn = beside.lines[0].get_ydata()
    assert np.asarray(drawn) == pytest.approx([regime.latents[index].kl for index in regime.order])


def test_infinite_kls_are_left_out_and_a_figure_is_made_where_none_is_given() -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    mean = np.random.default_rng(0).normal(size=(100, 2))
    axes = diagnose(mean=mean, variance=np.zeros((100, 2))).plot()
    assert len(axes.figure.axes) == 1
    plt.close(axes.figure)
