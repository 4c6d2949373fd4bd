"""Contract of every figure of a study."""

from __future__ import annotations

import csv
import inspect
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from polariscope.core.errors import InputError
from polariscope.core.figures import COLUMN, PAGE
from polariscope.core.references import keys_in, references
from polariscope.studies.figures import AbstractByStrength, AbstractFigure, family, make_figure
from polariscope.studies.table import Table
from polariscope.testing.contract import AbstractContract
from polariscope.testing.study_tables import by_beta

SELECTIONS = ("full", "active", "active+mixed", "active+passive", "passive")
SOURCES = ("mean", "sampled")


def cells(beta: float, seed: int) -> dict[str, Any]:
    """Return the cells of a run with all analyses."""
    rng = np.random.default_rng([int(beta), seed])
    names = ["loss", "loss.rate", "loss.reconstruction", "mig", "sap", "ds", "dto", "mig.by_factor.shape"]
    names += [f"{quantity}.{source}" for quantity in ("tc", "mi", "rank") for source in SOURCES]
    names += [f"mi.{source}.raw" for source in SOURCES]
    names += [f"tc.{s}.by_types.{sel}" for s in SOURCES for sel in SELECTIONS]
    names += [f"mi.{s}.raw.by_types.{sel}" for s in SOURCES for sel in SELECTIONS]
    names += [f"probes.{source}.{selection}" for source in SOURCES for selection in (*SELECTIONS, "chance")]
    counts = {"active": 5 - seed, "mixed": 1, "passive": seed, "over_pruned": seed == 2}
    return {**{name: float(rng.uniform(0.1, 1)) for name in names}, **counts}


def _rounded(row: dict[str, Any]) -> dict[str, Any]:
    # Sums in another order can differ in the last digits.
    return {key: round(cell, 9) if isinstance(cell, float) else cell for key, cell in row.items()}


class FigureContract(AbstractContract):
    """Contract of every figure of a study."""

    def is_of_runs(self, name: str) -> bool:
        """Return True if a figure is drawn from the table of runs; others have their own table.

        :param name: name of the member.
        """
        return family[name].table is AbstractFigure.table

    def table(self, name: str) -> Table:
        """Return the table that a figure is drawn from: by default runs with all analyses.

        :param name: name of the member.
        """
        return by_beta(cells)

    def test_it_is_documented_with_the_published_figure_that_it_answers(self, name: str) -> None:
        answers = family.traits(name)["answers"]
        assert answers
        text = inspect.getdoc(family[name]) or ""
        for answer in answers:
            key = answer.split()[0]
            assert key in references()
            assert key in keys_in(text), "name the corresponding published figure in the docstring"

    def test_its_numbers_are_finite_and_its_csv_has_them_all(self, name: str) -> None:
        drawn = make_figure(family[name](), self.table(name))
        read = list(csv.DictReader(io.StringIO(drawn.to_csv())))
        assert len(read) == len(drawn.rows) > 0
        for row, back in zip(drawn.rows, read, strict=True):
            for column, cell in row.items():
                assert back[column] == ("" if cell is None else str(cell))
                assert not isinstance(cell, float) or np.isfinite(cell)

    def test_it_is_as_wide_as_a_column_or_a_page_and_its_text_is_text(
        self, name: str, tmp_path: Path
    ) -> None:
        drawn = make_figure(family[name](), self.table(name))
        assert float(drawn.figure.get_size_inches()[0]) in (COLUMN, PAGE)
        file = drawn.save(tmp_path / "figure.svg")
        text = file.read_text()
        assert "<text" in text
        again = drawn.save(tmp_path / "again.svg")
        assert again.read_bytes() == file.read_bytes()

    def test_the_same_rows_give_the_same_picture_whatever_the_order_of_runs(self, name: str) -> None:
        """Check that numbers do not depend on the order of a setting's runs in the table."""
        if not self.is_of_runs(name):
            return
        table = by_beta(cells)
        # The runs of the first setting are in reverse order.
        turned = Table((*table.rows[2::-1], *table.rows[3:]), table.settings)
        one, other = (sorted(map(repr, map(_rounded, family[name]().numbers(t)))) for t in (table, turned))
        assert one == other

    def test_a_table_that_lacks_what_it_needs_is_refused_with_what_to_add(self, name: str) -> None:
        if not self.is_of_runs(name):
            return
        with pytest.raises(
            InputError,
            match=r"in the study file add .*\[each[.]\w+\]|it is logged by objectives with this term",
        ):
            family[name]().numbers(by_beta(lambda *_: {"seconds": 1.0}))

    def test_runs_that_are_not_done_are_named_and_have_no_part(self, name: str) -> None:
        if not self.is_of_runs(name):
            return
        table = by_beta(cells)
        assert make_figure(family[name](), table).notes == ("Left out, since they are not done: waits.",)
        running = tuple({**row, **cells(9.0, 9), "state": "running"} for row in table.rows[-1:])
        more = Table((*table.rows[:-1], *running), table.settings)
        assert family[name]().numbers(more) == family[name]().numbers(table)
        with pytest.raises(InputError, match="no run of the table is done; run the study first"):
            family[name]().numbers(Table(running, table.settings))

    def test_conditions_that_hold_for_no_run_are_refused(self, name: str) -> None:
        table = self.table(name)
        column = table.columns[0]
        with pytest.raises(InputError, match=f"no row of the table has {column}=nothing"):
            make_figure(family[name](), table, [f"{column}=nothing"])

    def test_a_study_of_one_setting_is_drawn_or_refused_with_what_to_vary(self, name: str) -> None:
        if not self.is_of_runs(name):
            return
        alone = Table(tuple({**row, "beta": None} for row in by_beta(cells).rows[:3]), ("seed",))
        if issubclass(family[name], AbstractByStrength):
            with pytest.raises(InputError, match=r"only the seed varies in the study; vary a setting in"):
                family[name]().numbers(alone)
        else:
            assert make_figure(family[name](), alone).rows
