"""The figure of a diagnosis shows its numbers."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from polariscope.analysis.regime.diagnose import diagnose
from polariscope.analysis.regime.latent_types import COLOURS


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


def test_crosses_have_the_intervals_of_the_kls_and_the_legend_counts_types() -> None:
    rng = np.random.default_rng(0)
    mean = rng.normal(size=(60, 4)) * [0.01, 1.0, 0.7, 1.1]
    regime = diagnose(mean=mean, variance=np.full((60, 4), [1.0, 0.01, 0.5, 0.02]))
    figure = Figure()
    axes = regime.plot(figure.add_subplot())
    (bars,) = figure.axes[1].containers
    segments = bars.lines[2][0].get_segments()
    assert (bars.lines[2][0].get_linewidth() > 0).all()
    ordered = [regime.latents[index] for index in regime.order]
    assert [tuple(segment[:, 1]) for segment in segments] == [
        pytest.approx(latent.kl_interval) for latent in ordered
    ]
    assert all(low < latent.kl < high for latent in ordered for low, high in [latent.kl_interval])
    assert [segment[0, 0] for segment in segments] == [0, 1, 2, 3]
    handles, labels = axes.get_legend_handles_labels()
    assert labels == ["2 active", "1 mixed", "1 passive"]
    shown = [
        to_hex(handle.patches[0].get_facecolor() if hasattr(handle, "patches") else handle.get_facecolor())
        for handle in handles
    ]
    assert shown == [COLOURS["active"], COLOURS["mixed"], COLOURS["passive"]]


def test_an_interval_that_does_not_hold_its_kl_is_drawn_up_to_it() -> None:
    """As a record may say whose KL and interval are not of the same draws."""
    regime = diagnose(mean=np.random.default_rng(0).normal(size=(60, 2)), variance=np.full((60, 2), 0.1))
    first, second = regime.latents
    latents = (
        dataclasses.replace(first, kl=2.0, kl_interval=(2.5, 3.0)),
        dataclasses.replace(second, kl=1.0, kl_interval=(0.25, 0.5)),
    )
    figure = Figure()
    dataclasses.replace(regime, latents=latents, order=(0, 1)).plot(figure.add_subplot())
    segments = figure.axes[1].containers[0].lines[2][0].get_segments()
    assert [tuple(segment[:, 1]) for segment in segments] == [(2.0, 3.0), (0.25, 1.0)]


def test_a_figure_grows_with_the_number_of_latents() -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    widths = []
    for n_latents in (1, 2, 12):
        rng = np.random.default_rng(0)
        codes = {"mean": rng.normal(size=(20, n_latents)), "variance": np.full((20, n_latents), 0.1)}
        figure = diagnose(**codes, n_bootstrap=1).plot().figure
        widths.append(figure.get_size_inches()[0])
        plt.close(figure)
    first, second, last = widths
    assert 0 < first < second < last
    assert last - second == pytest.approx(10 * (second - first))
