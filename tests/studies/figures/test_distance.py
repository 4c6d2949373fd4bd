"""Distance to orthogonality beside a score: over strengths, and run by run."""

from __future__ import annotations

import numpy as np
import pytest

from polariscope.core.errors import InputError
from polariscope.numerics.ranks import spearman
from polariscope.studies.figures.distance_by_score import DistanceByScore
from polariscope.studies.figures.distance_line_search import DistanceLineSearch
from polariscope.studies.table import Table
from polariscope.testing.study_tables import by_beta


def cells(beta: float, seed: int) -> dict[str, float]:
    return {"ds": 1 / beta + seed / 100, "dto": beta - seed**2}


def test_a_line_search_averages_both_over_seeds() -> None:
    rows = {(row["quantity"], row["strength"]): row for row in DistanceLineSearch().numbers(by_beta(cells))}
    assert rows["ds", 4.0]["mean"] == pytest.approx(0.26)
    assert rows["dto", 4.0]["mean"] == pytest.approx(4 - 5 / 3)
    assert {row["series"] for row in rows.values()} == {"all runs"}
    with pytest.raises(InputError, match=r"'dto'; in the study file add \[each.geometry\]"):
        DistanceLineSearch().numbers(by_beta(lambda beta, seed: {"ds": 1.0}))


def test_random_rotations_are_a_line_of_their_own_beside_the_distance() -> None:
    table = by_beta(lambda beta, seed: {**cells(beta, seed), "dto.random": beta / 2})
    rows = [row for row in DistanceLineSearch().numbers(table) if row["series"] == "random rotations"]
    assert [(row["quantity"], row["strength"], row["mean"]) for row in rows] == [
        ("dto", 1.0, 0.5),
        ("dto", 4.0, 2.0),
    ]
    nets = tuple({**row, "net": "conv"} for row in table.rows)
    named = DistanceLineSearch(strength="beta").numbers(Table(nets, ("beta", "net", "seed")))
    assert {row["series"] for row in named} == {"conv", "conv, random rotations"}


def test_points_are_runs_and_the_correlation_is_over_all_of_them() -> None:
    rows = DistanceByScore().numbers(by_beta(cells))
    assert [row["series"] for row in rows] == ["beta = 1"] * 3 + ["beta = 4"] * 3
    x, y = (np.array([row[name] for row in rows]) for name in ("score", "distance"))
    found = spearman(x, y)
    assert rows[0]["spearman"] == found.value
    assert found.value is not None
    assert found.value < 0
    assert (rows[0]["spearman.low"], rows[0]["spearman.high"]) == found.interval


def test_checkpoints_are_points_named_by_their_step() -> None:
    rows = [
        {"run": "a", "state": "done", "step": step, "seed": 0, "ds": step / 10, "dto": 1 - step / 10}
        for step in (1, 5)
    ]
    found = DistanceByScore().numbers(Table(tuple(rows), ("seed",)))
    assert [row["series"] for row in found] == ["step 1", "step 5"]
    assert found[0]["spearman"] == -1
