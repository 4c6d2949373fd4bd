"""Loss curves of runs and their means."""

from __future__ import annotations

from pathlib import Path

import pytest

from polariscope.core.errors import InputError
from polariscope.studies.details import log_table
from polariscope.studies.figures.losses import LossesFigure
from polariscope.studies.ledger import Ledger
from polariscope.studies.table import Table
from polariscope.studies.worker import Worker
from tiny_studies import tiny


def curves() -> Table:
    rows = [
        {
            "run": f"{beta},{seed}",
            "state": "done",
            "beta": beta,
            "seed": seed,
            "step": step,
            "loss": beta * step + seed,
        }
        for beta in (1, 4)
        for seed in (0, 1)
        for step in (10, 20)
    ]
    extra = {"run": "1,0", "state": "done", "beta": 1, "seed": 0, "step": 30, "loss": 99.0}
    return Table((*rows, extra), ("beta", "seed"))


def test_a_mean_is_over_the_runs_of_a_setting_where_all_were_logged() -> None:
    rows = LossesFigure().numbers(curves())
    means = {(row["series"], row["step"]): row["mean"] for row in rows if row["run"] == "mean"}
    assert means == {
        ("beta = 1", 10): 10.5,
        ("beta = 1", 20): 20.5,
        ("beta = 4", 10): 40.5,
        ("beta = 4", 20): 80.5,
    }
    own = [row["mean"] for row in rows if row["run"] == "1,0"]
    assert own == [10, 20, 99]


def test_a_term_that_is_not_logged_is_refused_with_those_that_are() -> None:
    with pytest.raises(InputError, match="no column of the logs named 'los'; there are loss"):
        LossesFigure(term="los").numbers(curves())


def test_the_table_of_logs_has_every_line_of_every_run(tmp_path: Path) -> None:
    ledger = Ledger(tiny(tmp_path / "study"))
    ledger.prepare()
    with pytest.raises(InputError, match="no run of the study has started"):
        LossesFigure().check(ledger, Table((), ()))
    Worker(ledger).drain()
    rows = log_table(ledger).rows
    assert [(row["beta"], row["step"]) for row in rows] == [(b, s) for b in (1.0, 4.0) for s in (3, 6, 9, 12)]
    assert all(
        row["loss"] == pytest.approx(row["loss.reconstruction"] + row["beta"] * row["loss.rate"])
        for row in rows
    )
    LossesFigure().check(ledger, Table((), ()))
