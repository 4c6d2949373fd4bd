"""Queries in SQL over a table, by duckdb."""

from __future__ import annotations

import decimal
import importlib
from typing import TYPE_CHECKING

from polariscope.core.errors import InputError, not_installed
from polariscope.core.frames import frame_of
from polariscope.studies.analyses import Cell

if TYPE_CHECKING:
    from pandas import DataFrame


def query_frame(frame: DataFrame, query: str) -> DataFrame:
    """Return the answer to a query; the frame is called ``runs``, unless it has no columns.

    :param frame: with columns of one type.
    :param query: in SQL.
    """
    try:
        duckdb = importlib.import_module("duckdb")
    except ImportError:
        raise not_installed("a query over a table", "duckdb", "duckdb") from None
    with duckdb.connect() as connection:
        if len(frame.columns):
            connection.register("runs", frame)
        try:
            answer = connection.execute(query)
            names = [column[0] for column in answer.description or ()]
            # Not as a frame: pandas would make sums of integers real numbers.
            rows = answer.fetchall()
        except duckdb.Error as error:
            raise InputError(problem=f"the query cannot be answered: {str(error).strip()}") from None
    return frame_of([dict(zip(names, map(_sql_cell, row), strict=True)) for row in rows], names)


def _sql_cell(value: object) -> Cell:
    """What a query gives, as a cell: decimal numbers are real ones, other types texts."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return float(value) if isinstance(value, decimal.Decimal) else str(value)
