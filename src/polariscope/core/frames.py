"""Conversion of rows of plain values to pandas frames, and of frames to files; pandas is imported on use."""

from __future__ import annotations

import importlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polariscope.core import files
from polariscope.core.errors import InputError, unknown

if TYPE_CHECKING:
    from pandas import DataFrame, Series

FORMATS = ("csv", "tsv", "json", "parquet")
"""File formats of tables."""


def frame_of(rows: Iterable[Mapping[str, Any]], columns: Sequence[str] = ()) -> DataFrame:
    """Convert rows to a frame; a cell that a row does not have is missing.

    A column of integers or booleans keeps its type if cells are missing (pandas' ``Int64`` and ``boolean``). A column
    of mixed types keeps its cells unchanged (``object``); see :func:`uniform`.

    :param rows: mappings from names to plain values or None.
    :param columns: (default: in the order of first occurrence in rows) names of the columns.

    >>> frame_of([{"a": 1, "b": 0.5}, {"a": None, "b": None}]).dtypes.to_dict()
    {'a': Int64Dtype(), 'b': dtype('float64')}
    """
    from pandas import DataFrame

    rows = list(rows)
    names = list(columns) or list(dict.fromkeys(name for row in rows for name in row))
    return DataFrame(
        {name: _series([row.get(name) for row in rows]) for name in names},
        columns=names,
        index=range(len(rows)),
    )


def _series(values: list[Any]) -> Series[Any]:
    from pandas import Series

    # The exact type distinguishes True from 1, which isinstance does not.
    kinds = {type(value) for value in values if value is not None}
    if kinds == {float}:
        return Series(values, dtype="float64")
    if kinds == {str}:
        return Series(values, dtype="str")
    if kinds == {bool}:
        return Series(values, dtype="boolean" if None in values else "bool")
    # Larger integers do not fit int64 and stay Python objects.
    if kinds == {int} and all(value is None or abs(value) < 2**63 for value in values):
        return Series(values, dtype="Int64" if None in values else "int64")
    return Series(values, dtype="object")


def cells_of(column: Series[Any]) -> list[Any]:
    """Convert a column to plain Python values; a missing cell is None.

    :param column: column of a frame.
    """
    return column.astype("object").where(column.notna(), None).tolist()


def rows_of(frame: DataFrame) -> list[dict[str, Any]]:
    """Convert a frame to mappings from names to plain Python values; a missing cell is None.

    :param frame: the frame.
    """
    columns = [cells_of(frame[name]) for name in frame.columns]
    # Without columns, zip would lose the number of rows.
    if not columns:
        return [{} for _ in range(len(frame))]
    return [dict(zip(frame.columns, cells, strict=True)) for cells in zip(*columns, strict=True)]


def finite(column: Series[Any]) -> Series[float]:
    """Convert a column to floats; cells that are not finite numbers, including booleans, become NaN.

    :param column: column of a frame.
    """
    from pandas import Series

    numbers = [
        float(cell) if isinstance(cell, int | float) and not isinstance(cell, bool) else math.nan
        for cell in cells_of(column)
    ]
    return Series(numbers, index=column.index, dtype="float64").replace([math.inf, -math.inf], math.nan)


def uniform(frame: DataFrame) -> DataFrame:
    """Return a frame in which each column has one type: mixed numbers become floats, other mixtures become text.

    :param frame: the frame.

    >>> uniform(frame_of([{"a": 1, "b": "x"}, {"a": 0.5, "b": 2}]))["b"].tolist()
    ['x', '2']
    """
    from pandas import Series

    result = frame.copy()
    for name in frame.columns[frame.dtypes == "object"]:
        values = cells_of(frame[name])
        kinds = {type(value) for value in values if value is not None}
        convert, dtype = (float, "float64") if kinds and kinds <= {int, float} else (str, "str")
        converted = [None if value is None else convert(value) for value in values]
        result[name] = Series(converted, index=frame.index, dtype=dtype)
    return result


def csv_of(frame: DataFrame, separator: str = ",") -> str:
    """Return a frame as delimited text with a heading; a missing cell is empty.

    :param frame: the frame.
    :param separator: (default a comma) separator of cells.
    """
    return frame.to_csv(index=False, sep=separator, lineterminator="\n")


def text_of(frame: DataFrame, format: str) -> str:
    """Return a frame as text; a missing cell is empty in CSV and TSV, and null in JSON.

    :param frame: the frame.
    :param format: csv, tsv or json (a list of rows).
    """
    if format == "json":
        # pandas would round to 15 decimals, so 1e-20 would become 0. JSON has no ∞, so it becomes null.
        rows = rows_of(frame.replace([math.inf, -math.inf], math.nan))
        return json.dumps(rows, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    if format not in ("csv", "tsv"):
        raise unknown("format of a table", format, FORMATS)
    return csv_of(frame, "," if format == "csv" else "\t")


def write_frame(frame: DataFrame, file: Path, format: str) -> None:
    """Write a frame to a file atomically.

    :param frame: the frame.
    :param file: path of the file.
    :param format: csv, tsv, json (a list of rows) or parquet.
    """
    if format != "parquet":
        files.write_text(file, text_of(frame, format))
        return
    try:
        importlib.import_module("pyarrow")
    except ImportError:
        raise InputError(
            problem="Parquet files require pyarrow, which is not installed",
            remedy="install it with pip install pyarrow, or write a CSV file",
        ) from None
    with files.atomic(file) as part:
        uniform(frame).to_parquet(part, engine="pyarrow", index=False)
