"""Every run in a strip, over-pruned ones marked, dropped or kept."""

from __future__ import annotations

import pytest

from polariscope.core.errors import InputError
from polariscope.studies.figures.strips import StripsFigure
from polariscope.testing.study_tables import by_beta, by_data


def cells(beta: float, seed: int) -> dict[str, object]:
    return {"mig": beta / 10 + seed, "sap": 0.5, "over_pruned": (beta, seed) == (4, 1)}


def test_over_pruned_runs_are_marked_dropped_or_kept() -> None:
    marked = StripsFigure(metric="mig").numbers(by_beta(cells))
    assert [(row["series"], row["value"], row["over_pruned"]) for row in marked][3:] == [
        ("beta = 4", 0.4, False),
        ("beta = 4", 1.4, True),
        ("beta = 4", 2.4, False),
    ]
    dropped = StripsFigure(metric="mig", over_pruned="drop").numbers(by_beta(cells))
    assert [row for row in marked if not row["over_pruned"]] == list(dropped)
    with pytest.raises(InputError, match="does not show which runs are over-pruned"):
        StripsFigure().numbers(by_beta(lambda beta, seed: {"mig": 1.0}))
    assert len(StripsFigure(over_pruned="keep").numbers(by_beta(lambda beta, seed: {"mig": 1.0}))) == 6


def test_datasets_are_side_by_side_and_the_first_metric_is_shown() -> None:
    table = by_data(lambda data, seed: {"loss": 3.0, "mig": float(seed), "over_pruned": False})
    found = StripsFigure().numbers(table)
    assert {row["panel"] for row in found} == {"original", "changed"}
    assert {(row["metric"], row["series"]) for row in found} == {("mig", "all runs")}


def test_a_study_of_over_pruned_runs_only_is_said() -> None:
    with pytest.raises(InputError, match="every run is over-pruned"):
        StripsFigure(over_pruned="drop").numbers(by_beta(lambda b, s: {"mig": 1.0, "over_pruned": True}))
