"""The figure of curves over the number of latents: what is drawn where."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from polariscope.pages.size_curve import curve_rows, draw_curve, write_curve_picture
from polariscope.sizing.curve_result import CurvePoint, SizeCurve
from polariscope.sizing.result import Size


def curve(*, has_density: bool = True) -> SizeCurve:
    """Two seeds of three widths whose every number is known."""
    points = []
    for n in (2, 4, 8):
        for seed in (0, 1):
            sampled: dict[str, Any] = {
                "rate": 1.0 * n,
                "trace_sampled": float(n),
                "trace": 0.5 * n,
                "dimension_sampled": float(n),
                "active": n // 2,
                "mixed": seed,
                "passive": n - n // 2 - seed,
            }
            if not has_density:
                sampled = dict.fromkeys(sampled)
            points.append(
                CurvePoint(
                    n_latents=n,
                    seed=seed,
                    steps=400,
                    loss=20.0 - n + seed,
                    reconstruction=19.0 - n,
                    probe=0.1 * n,
                    trace_mean=0.5 * n,
                    dimension_mean=0.5 * n,
                    **sampled,
                )
            )
    answers = (
        Size(4, (3, 5), "fondue", per_seed=(4, 4)),
        Size(None, None, "elbow"),
        Size(6, (6, 6), "id", per_seed=(6,)),
    )
    return SizeCurve(tuple(points), answers, "vae" if has_density else "ae", 400, 5.0, 100)


def lines_of(axes: Axes) -> list[Line2D]:
    """Lines of a panel, without the points of single seeds."""
    return [line for line in axes.lines if line.get_linestyle() != "None"]


def test_every_panel_has_its_lines_at_the_means() -> None:
    drawn = draw_curve(curve())
    axes = {ax.get_ylabel(): ax for ax in drawn.figure.axes}
    assert list(axes) == [
        *("loss (nats)", "KL (nats)", "probe accuracy", "total variance", "intrinsic dimension", "latents"),
    ]
    losses = lines_of(axes["loss (nats)"])
    (total, reconstruction), answers = losses[:2], losses[2:]
    assert list(total.get_xdata()) == [2, 4, 8]
    assert list(total.get_ydata()) == [18.5, 16.5, 12.5]
    assert list(reconstruction.get_ydata()) == [17, 15, 11]
    assert [line.get_xdata()[0] for line in answers] == [4, 6]  # a method without an answer has no line
    active, mixed, passive = lines_of(axes["latents"])[:3]
    assert list(active.get_ydata()) == [1, 2, 4]
    assert list(mixed.get_ydata()) == [0.5, 0.5, 0.5]
    assert list(passive.get_ydata()) == [0.5, 1.5, 3.5]
    legend = drawn.figure.legends[0]
    assert [text.get_text() for text in legend.get_texts()] == [
        "fondue: 4 latents (3–5)",
        "id: 6 latents (6)",
    ]
    dashes = [handle._dash_pattern for handle in legend.get_lines()]
    assert dashes[0] != dashes[1]


def test_bands_are_the_intervals_over_seeds() -> None:
    rows = [row for row in curve_rows(curve()) if row["quantity"] == "loss"]
    # Two values 1 apart: the half width of the interval is t(0.975, 1) / 2 = 6.353.
    assert [(row["mean"], row["low"]) for row in rows] == [
        (mean, pytest.approx(mean - 6.353, abs=1e-3)) for mean in (18.5, 16.5, 12.5)
    ]
    axes = draw_curve(curve()).figure.axes[0]
    assert not axes.collections  # two seeds have no band: they are drawn as points
    points = [line for line in axes.lines if line.get_linestyle() == "None"]
    shown = {value for line in points for value in line.get_ydata()}
    assert {18.0, 19.0} <= shown


def test_of_autoencoders_only_what_they_have_is_drawn() -> None:
    drawn = draw_curve(curve(has_density=False))
    assert [ax.get_ylabel() for ax in drawn.figure.axes] == [
        *("loss (nats)", "probe accuracy", "total variance", "intrinsic dimension"),
    ]
    assert {row["line"] for row in drawn.rows if row["panel"] == "total variance"} == {"mean μ"}


def test_the_same_curves_give_the_same_picture(tmp_path: Path) -> None:
    first = write_curve_picture(tmp_path, curve())
    assert first.name == "curve.svg"
    text = first.read_text(encoding="utf-8")
    assert re.search(r">fondue: 4 latents \(3–5\)<", text)
    assert write_curve_picture(tmp_path, curve()).read_text(encoding="utf-8") == text
