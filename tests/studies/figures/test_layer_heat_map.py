"""Similarity of layers over groups of runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from polariscope.core.errors import InputError
from polariscope.runs.compare_models import compare
from polariscope.runs.run import Run
from polariscope.studies.details import layers_table
from polariscope.studies.figures.layer_heat_map import LayerHeatMap
from polariscope.studies.ledger import Ledger
from polariscope.studies.table import Table
from polariscope.studies.worker import Worker
from tiny_studies import tiny

SCORES = {"cka": (0.9, 0.2), "procrustes": (0.5, 0.7)}


def test_the_smaller_of_two_measures_is_taken_cell_by_cell() -> None:
    rows = [
        {
            "measure": measure,
            "title": measure,
            "first": "a",
            "second": "b",
            "row": "mean",
            "column": column,
            "similarity": value,
        }
        for measure, values in SCORES.items()
        for column, value in zip(("mean", "sampled"), values, strict=True)
    ]
    found = LayerHeatMap().numbers(Table(tuple(rows), ()))
    smaller = {row["column"]: row["similarity"] for row in found if row["measure"] == "the smaller"}
    assert smaller == {"mean": 0.5, "sampled": 0.2}
    alone = LayerHeatMap().numbers(Table(tuple(rows[:2]), ()))
    assert [row["measure"] for row in alone] == ["cka", "cka"]


def test_two_groups_are_averaged_over_all_pairs_of_their_runs(tmp_path: Path) -> None:
    ledger = Ledger(tiny(tmp_path / "study", seeds=2))
    ledger.prepare()
    Worker(ledger).drain()
    table = layers_table(ledger, "beta=1", "beta=4", measures=("cka",), n_samples=40)
    ones, fours = ([str(run.folder) for run in ledger.runs[place : place + 2]] for place in (0, 2))
    expected = compare({"beta=1": ones, "beta=4": fours}, n_samples=40).average()
    values = np.array([row["similarity"] for row in table.rows]).reshape(expected.values.shape)
    np.testing.assert_allclose(values, expected.values, atol=1e-12)
    assert {(row["first"], row["second"], row["pairs"]) for row in table.rows} == {("beta=1", "beta=4", 4)}
    itself = layers_table(ledger, "beta=1", measures=("cka",), n_samples=40)
    assert {row["pairs"] for row in itself.rows} == {2}  # each with the other, none with itself
    with pytest.raises(InputError, match="one and other must have no run in common"):
        layers_table(ledger, "", "beta=4", measures=("cka",))
    with pytest.raises(InputError, match="no finished run has beta=9"):
        layers_table(ledger, "beta=9", measures=("cka",))


def test_a_group_at_one_step_is_compared_with_another_or_itself_at_another_step(tmp_path: Path) -> None:
    settings = {**tiny(tmp_path / "study").settings, "keep_checkpoints": "all"}
    ledger = Ledger(tiny(tmp_path / "study", seeds=2, settings=settings))
    ledger.prepare()
    Worker(ledger).drain()
    models = [[Run(run.folder).model(step) for step in (4, 12)] for run in ledger.runs]
    ones, fours = models[:2], models[2:]
    data = Run(ledger.runs[0].folder).data()

    def expected(first: list[Any], second: list[Any]) -> dict[tuple[str, str], float]:
        found = compare({"a": first, "b": second}, data, n_samples=40).average()
        cells = {
            (row, column): float(found.values[i, j])
            for i, row in enumerate(found.rows)
            for j, column in enumerate(found.columns)
        }
        return {pair: pytest.approx(cells[pair], abs=1e-9) for pair in cells if not noisy & set(pair)}

    def found(**options: Any) -> tuple[dict[tuple[str, str], float], set[Any]]:
        rows = layers_table(ledger, measures=("cka",), n_samples=40, **options).rows
        cells = {(row["row"], row["column"]): row["similarity"] for row in rows}
        labels = {(row["first"], row["second"], row["pairs"]) for row in rows}
        return {pair: cells[pair] for pair in cells if not noisy & set(pair)}, labels

    noisy = {"sampled", "decoder/1"}  # each model draws noise by its place in the comparison

    values, labels = found(one="beta=1", step=4, other_step=12)
    assert labels == {("beta=1 at step 4", "beta=1 at step 12", 4)}
    assert len(values) == 16
    assert values == expected([one[0] for one in ones], [one[1] for one in ones])
    values, labels = found(one="beta=1", other="beta=4", other_step=4)  # the first as it is in the end
    assert labels == {("beta=1 at step 12", "beta=4 at step 4", 4)}
    assert values == expected([one[1] for one in ones], [four[0] for four in fours])
    with pytest.raises(InputError, match=r"has no model of step 5 \(kept steps: 4, 8, 12\)"):
        found(one="beta=1", step=5, other_step=12)
