"""Queries in SQL over a table, by duckdb."""

from __future__ import annotations

import decimal
import importlib
import importlib.util
from typing import TYPE_CHECKING

from polariscope.core.errors import InputError, not_installed
from polariscope.core.frames import frame_of
from polariscope.core.text import joined
from polariscope.studies.analyses import Cell

if TYPE_CHECKING:
    from pandas import DataFrame

WITHOUT_EXTENSIONS = {"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}
"""Settings of duckdb under which no extension is installed or loaded."""
ZONED = "TIMESTAMP WITH TIME ZONE"
"""Type of duckdb whose values need pytz in Python."""


def query_frame(frame: DataFrame, query: str) -> DataFrame:
    """Return the result of a query; the frame is called ``runs``, unless it has no columns.

    :param frame: frame whose columns have one type each.
    :param query: one SELECT statement.
    """
    try:
        duckdb = importlib.import_module("duckdb")
    except ImportError:
        raise not_installed("a query over a table", "duckdb", "duckdb") from None
    # A query reads: it cannot write files, change settings or fetch extensions that open the network.
    with duckdb.connect(config=WITHOUT_EXTENSIONS) as connection:
        if len(frame.columns):
            connection.register("runs", frame)
        try:
            kinds = [statement.type for statement in connection.extract_statements(query)]
            if kinds != [duckdb.StatementType.SELECT]:
                raise InputError("the query", "be one SELECT statement", got=f"{query!r}")
            answer = connection.execute(query)
            names = [column[0] for column in answer.description or ()]
            zoned = [name for name, kind, *_ in answer.description or () if ZONED in str(kind)]
            # duckdb imports it only to convert such times.
            if zoned and importlib.util.find_spec("pytz") is None:
                raise InputError(
                    problem=f"the query returns times with a time zone, in {joined(zoned)}",
                    remedy=f"convert them to text, as in CAST({zoned[0]} AS VARCHAR), or install pytz",
                )
            # Fetched as tuples: as a frame, pandas would convert sums of integers to floats.
            rows = answer.fetchall()
        except duckdb.Error as error:
            raise InputError(problem=f"the query failed: {str(error).strip()}") from None
    return frame_of([dict(zip(names, map(_sql_cell, row), strict=True)) for row in rows], names)


def _sql_cell(value: object) -> Cell:
    """Convert a value of a query to a cell: decimals become floats, other types strings."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return float(value) if isinstance(value, decimal.Decimal) else str(value)
