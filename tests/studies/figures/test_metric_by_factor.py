"""A metric factor by factor."""

from __future__ import annotations

import pytest

from polariscope.core.errors import InputError
from polariscope.studies.figures.metric_by_factor import MetricByFactor
from polariscope.testing.study_tables import by_data


def cells(data: str, seed: int) -> dict[str, float]:
    drop = 0.5 if data == "changed" else 1.0
    return {"mig": 1.0, "mig.by_factor.shape": drop, "mig.by_factor.x": drop * seed, "sap": 1.0}


def test_each_factor_is_averaged_over_seeds_for_each_dataset() -> None:
    rows = {(row["panel"], row["factor"]): row for row in MetricByFactor().numbers(by_data(cells))}
    assert {key: row["mean"] for key, row in rows.items()} == {
        ("original", "shape"): 1,
        ("original", "x"): 1.5,
        ("changed", "shape"): 0.5,
        ("changed", "x"): 0.75,
    }
    assert rows["original", "x"]["sd"] == pytest.approx((5 / 3) ** 0.5)  # of 0, 1, 2, 3


def test_a_dataset_has_no_empty_places_for_factors_of_another() -> None:
    own = {"original": ("shape", "scale", "position_x"), "changed": ("floor_hue", "wall_hue")}
    made = MetricByFactor()
    rows = made.numbers(by_data(lambda data, _: {f"mig.by_factor.{name}": 0.5 for name in own[data]}))
    figure = made.draw(rows)
    for axes in figure.axes:
        names = tuple(label.get_text() for label in axes.get_xticklabels())
        assert names == own[axes.get_title()]
        assert len(axes.patches) == len(names)


def test_a_metric_without_factors_is_refused() -> None:
    with pytest.raises(
        InputError, match="the table contains mig by factor, but not sap; choose one of these"
    ):
        MetricByFactor(metric="sap").numbers(by_data(cells))
    with pytest.raises(InputError, match=r"add mig to the metrics of \[each.score\], then run"):
        MetricByFactor().numbers(by_data(lambda data, seed: {"loss": 1.0}))
