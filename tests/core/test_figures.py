"""The figure kit: axes, bands, and figures whose bytes are always the same."""

from __future__ import annotations

from pathlib import Path

import pytest
from matplotlib import rc_context

from polariscope.core.errors import InputError
from polariscope.core.figure_style import PRINT, STYLE
from polariscope.core.figures import (
    axes_grid,
    draw_means,
    fix_layout,
    hide_frame,
    plain_log_ticks,
    save_figure,
    single_axes,
    svg_text,
    to_svg,
)


def test_a_grid_has_as_many_axes_as_asked_for_and_the_rest_is_empty() -> None:
    figure, axes = axes_grid((4.0, 3.0), 5, 3, share_y=True)
    assert [ax.get_subplotspec().get_geometry()[2] for ax in axes] == [0, 1, 2, 3, 4]  # type: ignore[union-attr]
    assert [ax.axison for ax in figure.axes] == [True] * 5 + [False]
    axes[0].set_ylim(0, 7)
    assert axes[4].get_ylim() == (0, 7)
    assert len(axes_grid((4.0, 3.0), 2)[1]) == 2


def test_a_mean_of_few_runs_has_points_and_of_more_a_band() -> None:
    _, axes = single_axes((3.0, 2.0), "title")
    rows = [
        {"mean": 1.5, "low": -4.9, "high": 7.9, "point.1": 1.0, "point.2": 2.0},
        {"mean": 3.0, "low": 2.0, "high": 4.0},
        {"mean": 5.0, "low": None, "high": None},
    ]
    draw_means(axes, [1.0, 2.0, 4.0], rows, colour="#000000", marker="o", label="a", dashed=True)
    line, points = axes.lines
    assert list(line.get_xdata()) == [1, 2, 4]
    assert list(line.get_ydata()) == [1.5, 3.0, 5.0]
    assert line.get_linestyle() == "--"
    assert (list(points.get_xdata()), list(points.get_ydata())) == ([1, 1], [1.0, 2.0])
    (band,) = axes.collections
    corners = band.get_paths()[0].vertices
    assert {(x, y) for x, y in corners.tolist()} == {(2.0, 2.0), (2.0, 4.0)}


@pytest.mark.parametrize("format", ["svg", "pdf", "png"])
def test_the_same_figure_has_the_same_bytes(tmp_path: Path, format: str) -> None:
    written = []
    for name in ("a", "b"):
        with rc_context(PRINT):
            figure, axes = single_axes((3.0, 2.0), "title")
            axes.plot([1, 2], [3, 4])
            fix_layout(figure)
        written.append(save_figure(figure, tmp_path / f"{name}.{format}", PRINT, dpi=50).read_bytes())
    assert written[0] == written[1]
    assert sorted(file.name for file in tmp_path.iterdir()) == [f"a.{format}", f"b.{format}"]


def test_another_format_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    figure, _ = single_axes((3.0, 2.0))
    with pytest.raises(InputError, match=r"end in .svg, .pdf or .png, got 'a.jpg'"):
        save_figure(figure, tmp_path / "a.jpg", STYLE, dpi=50)
    assert list(tmp_path.iterdir()) == []


def test_an_element_of_a_page_has_ids_of_its_own_and_an_escaped_alternative() -> None:
    with rc_context(STYLE):
        figure, axes = single_axes((3.0, 2.0), "title")
        axes.plot([1, 2], [3, 4])
        text = str(to_svg(figure, "a b", '"<quoted>"'))
    assert text.startswith("<svg viewBox=")
    assert 'aria-label="&#34;&lt;quoted&gt;&#34;"' in text
    assert 'id="a-b-figure_1"' in text
    assert "<metadata>" not in text
    assert "xlink:href" not in text
    assert svg_text(figure).startswith("<svg ")


def test_axes_without_a_frame_and_with_plain_numbers() -> None:
    _, axes = single_axes((3.0, 2.0))
    hide_frame(axes)
    assert not any(spine.get_visible() for spine in axes.spines.values())
    axes.set_yscale("log")
    axes.set_ylim(1, 20)
    plain_log_ticks(axes.yaxis)
    labels = dict(
        zip(axes.get_yticks().tolist(), (t.get_text() for t in axes.get_yticklabels()), strict=True)
    )
    assert {value: labels[value] for value in (1.0, 2.0, 5.0, 10.0)} == {1: "1", 2: "2", 5: "5", 10: "10"}
