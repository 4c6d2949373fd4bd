"""Rows of a table without their missing values, wherever they are, and everything that belongs to the rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pandas
import polars
import pyarrow
import pytest
from pyarrow import parquet
from scipy.sparse import csr_array

import polariscope as ps
from polariscope.cli import main
from polariscope.core.errors import InputError
from polariscope.data.own.support import gaps
from polariscope.data.own.support.rows import DenseRows, SparseRows

NAN = float("nan")
X = np.array([[1.0, 2.0], [NAN, 4.0], [5.0, 6.0], [7.0, NAN], [9.0, 1.0]])
LABELS = np.array(["a", "b", "c", "a", "c"])
DROPPED, FILLED = X[[0, 2, 4]], np.array([[1.0, 2.0], [6.0, 4.0], [5.0, 6.0], [7.0, 3.0], [9.0, 1.0]])


def test_rows_are_left_out_or_filled_and_stay_where_they_are():
    for rows in (DenseRows(X), SparseRows(csr_array(X))):
        dropped = gaps.without_gaps(rows, "drop", "X")
        assert dropped.row_numbers is not None
        assert dropped.row_numbers.tolist() == [0, 2, 4]
        np.testing.assert_array_equal(dropped.rows.slice(0, 3), DROPPED)
        assert dropped.choices == ("2 of 5 rows left out: rows that lack a value",)
        filled = gaps.without_gaps(rows, "median", "X")
        np.testing.assert_array_equal(filled.rows.take(np.array([3, 1])), FILLED[[3, 1]])
        np.testing.assert_array_equal(filled.rows.slice(0, 5), FILLED)
        assert filled.choices == ("2 missing values filled with the median of the column over all rows",)


def test_a_table_without_gaps_is_returned_as_it_is():
    rows = DenseRows(DROPPED)
    for policy in ("refuse", "drop", "median"):
        assert gaps.without_gaps(rows, policy, "X").rows is rows


def test_medians_of_a_large_table_are_those_of_some_rows(monkeypatch):
    monkeypatch.setattr(gaps, "MEDIAN_VALUES", 4)
    monkeypatch.setattr(gaps, "MEDIAN_ROWS", 3)
    column = np.array([[0.0], [NAN], [2.0], [NAN], [10.0]])
    filled = gaps.without_gaps(DenseRows(column), "median", "X")
    assert filled.rows.slice(1, 2).item() == 2
    assert "over 4 rows" in filled.choices[0] or "over 3 rows" in filled.choices[0]


def test_names_factors_and_columns_aside_stay_with_their_rows():
    data = ps.from_arrays(X, LABELS, ids=["p", "q", "r", "s", "t"], missing="drop")
    np.testing.assert_array_equal(data.values([0, 1, 2]), DROPPED)
    assert data.ids([0, 1, 2]).tolist() == ["p", "r", "t"]
    assert data.factor_classes == {"factor-1": ("a", "c")}, "no row of b is left"
    assert (data.factor_sizes, data.factors([0, 1, 2])[:, 0].tolist()) == ((2,), [0, 1, 1])
    assert ps.from_arrays(X, missing="drop").ids([1, 2]).tolist() == [2, 4], (
        "the numbers of the rows that were given"
    )
    assert ps.from_arrays(X, [[1.5], [2], [3], [4], [5]], missing="drop").factors([1])[0, 0] == 3


def test_nothing_is_recorded_and_no_hash_changes_unless_a_policy_is_chosen():
    plain, chosen = ps.from_arrays(DROPPED), ps.from_arrays(X, missing="drop")
    assert "missing" not in plain.describe()
    assert chosen.describe()["missing"] == "drop"
    assert chosen.fingerprint == plain.fingerprint, "the same observations"


@pytest.mark.parametrize("policy", ["drop", "median"])
def test_every_source_of_tables_takes_the_policy(tmp_path: Path, policy: str):
    frame = pandas.DataFrame(X, columns=["u", "v"])
    frame.to_csv(tmp_path / "table.csv", index=False)
    parquet.write_table(
        pyarrow.table({"u": [1, None, 5, 7, 9], "v": [2.0, 4, 6, None, 1]}), tmp_path / "table.parquet"
    )
    np.save(tmp_path / "table.npy", X)
    with h5py.File(tmp_path / "cells.h5ad", "w") as file:
        file["X"] = X
        for group, count in (("obs", 5), ("var", 2)):
            file.create_group(group).attrs["_index"] = "names"
            file[group]["names"] = np.array([f"{group}{number}" for number in range(count)], dtype="S")
    given: list[Any] = [
        *(
            ps.load_dataset(tmp_path / name, missing=policy)
            for name in ("table.csv", "table.parquet", "table.npy")
        ),
        ps.load_dataset(tmp_path / "cells.h5ad", missing=policy),
        ps.from_arrays(frame, missing=policy),
        ps.from_arrays(frame.astype("Float64"), missing=policy),
        ps.from_arrays(
            polars.DataFrame({"u": [1, None, 5, 7, 9], "v": [2.0, 4, 6, None, 1]}), missing=policy
        ),
        ps.from_arrays(
            pandas.DataFrame({"u": [1, None, 5, 7, 9], "v": [2, 4, 6, None, 1]}, dtype=object), missing=policy
        ),
        ps.from_dataset([row.tolist() for row in X], missing=policy),
    ]
    expected = DROPPED if policy == "drop" else FILLED
    for data in given:
        np.testing.assert_array_equal(data.values(np.arange(len(data))), expected, err_msg=data.name)
        assert any("left out" in words or "filled with" in words for words in data.choices)


@pytest.mark.parametrize("name", ["table.csv", "table.npy"])
def test_without_a_policy_the_columns_are_counted_and_both_flags_are_named(tmp_path: Path, name: str, capsys):
    pandas.DataFrame(X, columns=["u", "v"]).to_csv(tmp_path / "table.csv", index=False)
    np.save(tmp_path / "table.npy", X)
    assert main(["train", str(tmp_path / name)]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert f"{name} lacks 2 of 10 values (NaN): column" in said
    assert "with --missing drop, or fill in the median of each column with --missing median" in said


def test_what_cannot_be_dropped_or_filled_is_refused():
    with pytest.raises(InputError, match="X has no value at all in column 1"):
        ps.from_arrays([[1.0, NAN], [2.0, NAN]], missing="median")
    with pytest.raises(InputError, match="every row of X lacks a value; leave out columns"):
        ps.from_arrays([[1.0, NAN], [NAN, 2.0]], missing="drop")
    with pytest.raises(InputError, match="X must be finite, got 1 NaN or infinite of 4 values"):
        ps.from_arrays([[1.0, NAN], [float("inf"), 2.0]], missing="median")
    with pytest.raises(InputError, match="missing must be left out for images"):
        ps.from_arrays(np.zeros((3, 8, 8)), missing="drop")
    with pytest.raises(InputError, match="missing is for arrays, and arrays is a dataset; pass it to"):
        ps.train(ps.from_arrays(DROPPED), missing="drop")
    with pytest.raises(InputError, match="column 'kind' lacks 1 value"):
        ps.from_arrays(X, pandas.DataFrame({"kind": ["a", None, "b", "a", "b"]}), missing="drop")


def test_text_among_missing_values_is_still_text(tmp_path: Path):
    (tmp_path / "table.csv").write_text("u,v\n1,NA\n2,x\n,3\n")
    with pytest.raises(InputError, match="column 'v' contains 'x' in row 1, which is not a number"):
        ps.load_dataset(tmp_path / "table.csv", missing="drop")
    with pytest.raises(InputError, match="column 'v' contains 'x' in row 0"):
        ps.from_arrays(pandas.DataFrame({"u": [1, 2], "v": [None, "x"]}), missing="drop")


def test_counts_stay_counts_and_binary_values_binary():
    counts = np.random.default_rng(0).poisson(4, size=(400, 6)).astype(float)
    counts[::7, 2] = NAN
    assert ps.from_arrays(counts, missing="median").value_facts.largest == np.nanmax(counts)


def test_a_run_of_a_file_and_of_an_array_reopens_without_the_flag(tmp_path: Path, capsys):
    rows = np.random.default_rng(0).normal(size=(60, 4))
    rows[::9, 1] = NAN
    file, run = tmp_path / "table.npy", tmp_path / "run"
    np.save(file, rows)
    call = ["train", str(file), "--steps", "4", "--latents", "2", "--missing", "median", "--out", str(run)]
    assert main(call) == 0
    assert "7 missing values filled with the median of the column over all rows" in capsys.readouterr().err
    assert main(["diagnose", str(run)]) == 0
    assert main(["report", str(run)]) == 0
    assert ps.open_run(run).settings["data"]["missing"] == "median"
    ps.train(rows, missing="drop", n_latents=2, steps=4, out=tmp_path / "memory")
    opened = ps.open_run(tmp_path / "memory", rows)
    assert opened.has_its_own_data
    assert opened.n_observations == 53
