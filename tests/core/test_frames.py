"""Frames keep what a cell is: whole numbers, yes and no, texts; and files hold every digit."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path

import pytest

from polariscope.core.errors import InputError
from polariscope.core.frames import cells_of, csv_of, finite, frame_of, rows_of, text_of, uniform, write_frame

ROWS = [
    {"run": "0001", "n": 1, "done": True, "loss": 1e-20, "beta": 1, "label": "NA"},
    {"run": "1", "n": None, "done": None, "loss": math.inf, "beta": 0.5, "label": ""},
    {"run": "01", "loss": None, "beta": "x", "label": "nan"},
]


def test_rows_come_back_as_they_went_in() -> None:
    back = rows_of(frame_of(ROWS))
    assert back == [{name: row.get(name) for name in ROWS[0]} for row in ROWS]
    assert [type(cell) for cell in back[0].values()] == [str, int, bool, float, int, str]


def test_a_missing_cell_is_empty_in_a_file_and_changes_no_other_cell() -> None:
    lines = csv_of(frame_of(ROWS)).splitlines()
    assert lines == ["run,n,done,loss,beta,label", "0001,1,True,1e-20,1,NA", "1,,,inf,0.5,", "01,,,,x,nan"]
    assert csv_of(frame_of([], ["a", "b"])) == "a,b\n"


def test_json_has_every_digit_and_no_infinity() -> None:
    rows = json.loads(text_of(frame_of(ROWS), "json"))
    assert (rows[0]["loss"], rows[1]["loss"], rows[1]["n"]) == (1e-20, None, None)
    assert rows[0]["n"] == 1


def test_a_column_that_mixes_types_becomes_one_of_a_single_type() -> None:
    made = uniform(frame_of([{"a": 1, "b": 1, "c": None}, {"a": 0.5, "b": "x", "c": None}]))
    assert made["a"].tolist() == [1.0, 0.5]
    assert made["b"].tolist() == ["1", "x"]
    assert cells_of(made["c"]) == [None, None]


def test_only_finite_numbers_count_as_numbers() -> None:
    column = frame_of([{"a": cell} for cell in (1, 2.5, True, "3", None, math.inf, math.nan)])["a"]
    assert finite(column).dropna().tolist() == [1.0, 2.5]


def test_integers_beyond_64_bits_are_kept() -> None:
    assert rows_of(frame_of([{"a": 2**70}, {"a": None}])) == [{"a": 2**70}, {"a": None}]


def test_a_parquet_file_has_missing_cells_and_integers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    write_frame(frame_of(ROWS), tmp_path / "t.parquet", "parquet")
    back = parquet.read_table(tmp_path / "t.parquet").to_pydict()
    assert (back["n"], back["done"], back["beta"]) == ([1, None, None], [True, None, None], ["1", "0.5", "x"])
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(InputError, match="Parquet files require pyarrow, which is not installed"):
        write_frame(frame_of(ROWS), tmp_path / "u.parquet", "parquet")
    with pytest.raises(InputError, match="no format of a table named 'txt'"):
        write_frame(frame_of(ROWS), tmp_path / "t.txt", "txt")
    assert [file.name for file in tmp_path.iterdir()] == ["t.parquet"]
