"""Counts of types against strength are means over seeds with Student's interval."""

from __future__ import annotations

import numpy as np
import pytest

from polariscope.core.errors import InputError
from polariscope.numerics.intervals import t_interval
from polariscope.studies.figures.types_by_strength import TypesByStrength
from polariscope.studies.table import Table
from polariscope.testing.study_tables import by_beta

PASSIVE = {1.0: (0, 1, 2), 4.0: (5, 5, 5)}


def table() -> Table:
    return by_beta(
        lambda beta, seed: {"active": 8 - PASSIVE[beta][seed], "mixed": 2, "passive": PASSIVE[beta][seed]}
    )


def test_means_and_intervals_are_those_of_the_seeds() -> None:
    rows = {(row["strength"], row["type"]): row for row in TypesByStrength().numbers(table())}
    assert len(rows) == 6
    found = rows[1.0, "passive"]
    assert (found["setting"], found["n"], found["mean"], found["sd"]) == ("beta", 3, 1, 1)
    assert (found["low"], found["high"]) == pytest.approx(
        t_interval(np.array([0.0, 1.0, 2.0]), bounds=(0, 10))
    )
    assert found["low"] == 0
    assert (rows[4.0, "passive"]["mean"], rows[4.0, "passive"]["low"], rows[4.0, "passive"]["high"]) == (
        5,
        5,
        5,
    )
    assert rows[1.0, "active"]["mean"] == 7


def test_what_else_varies_has_a_panel_of_its_own() -> None:
    rows = [
        {**row, "run": f"{row['run']},{net}", "net": net} for net in ("conv", "mlp") for row in table().rows
    ]
    found = TypesByStrength().numbers(Table(tuple(rows), ("beta", "net", "seed")))
    assert [row["series"] for row in found] == ["conv"] * 6 + ["mlp"] * 6


def test_strengths_of_different_objectives_share_the_axis() -> None:
    rows = [
        {**row, "run": f"{row['run']},{name}", "objective": name, name: row["beta"], "beta": None}
        for name in ("gamma", "lam")
        for row in table().rows
    ]
    found = TypesByStrength().numbers(Table(tuple(rows), ("objective", "gamma", "lam", "seed")))
    assert {(row["series"], row["setting"]) for row in found} == {("gamma", "gamma"), ("lam", "lam")}


def test_two_numbers_that_vary_need_a_choice() -> None:
    rows = tuple({**row, "n_latents": 5} for row in table().rows)
    both = Table(rows, ("beta", "n_latents", "seed"))
    with pytest.raises(
        InputError, match="several settings vary: beta, n_latents; choose one with strength='beta'"
    ):
        TypesByStrength().numbers(both)
    assert {row["series"] for row in TypesByStrength(strength="beta").numbers(both)} == {"n_latents = 5"}
    with pytest.raises(InputError, match="no setting that varies named 'bet'"):
        TypesByStrength(strength="bet").numbers(both)


def test_a_table_without_types_or_without_runs_is_refused() -> None:
    with pytest.raises(
        InputError,
        match=r"in column 'active' or 'mixed' or 'passive'; in the study file add \[each.diagnose\]",
    ):
        TypesByStrength().numbers(by_beta(lambda beta, seed: {"loss": 1.0}))
    waiting = Table(tuple({**row, "state": "waiting"} for row in table().rows), ("beta", "seed"))
    with pytest.raises(InputError, match="no run of the table is done; run the study first"):
        TypesByStrength().numbers(waiting)
