"""Frames of pandas and polars, recognised by their attributes and read with pandas."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Bool, Num, Shaped

from polariscope.core.errors import InputError
from polariscope.data.own.support.column_kinds import (
    LARGEST_WHOLE,
    TOO_LARGE,
    Troubles,
    check_names,
    is_absent,
)
from polariscope.data.own.support.contents import Contents

if TYPE_CHECKING:
    import pandas


def is_frame(table: object) -> bool:
    """Return whether an object is a frame.

    :param table: the object.
    """
    return all(hasattr(table, name) for name in ("to_numpy", "columns", "dtypes"))


def is_series(table: object) -> bool:
    """Return whether an object is a single column of a frame.

    :param table: the object.
    """
    # A frame has the attributes of its columns, which can be called name and dtype.
    return all(hasattr(table, name) for name in ("name", "dtype", "to_numpy")) and not is_frame(table)


def read_frame(frame: object, name: str) -> Contents:
    """Read the numbers of a frame and the names of its columns and rows; missing values become NaN, text is an error.

    :param frame: a frame of pandas or polars.
    :param name: name of the frame in messages.
    """
    table = as_pandas(frame)
    columns = frame_columns(frame, name, features=tuple(map(str, table.columns)))
    troubles = Troubles()
    for column, values in columns.items():
        check_feature(column, values, troubles)
    troubles.refuse(
        name, "drop these columns, convert them to numbers, or pass them as factors, which can be text"
    )
    if not columns or not len(next(iter(columns.values()))):
        raise InputError(
            name, "contain at least one sample with one value", got=f"a frame of {len(columns)} columns"
        )
    # Columns numbered from 0 have no names of their own.
    numbered = list(columns) == [str(number) for number in range(len(columns))]
    return Contents(stacked(columns), feature_names=() if numbered else tuple(columns), ids=row_names(frame))


def check_feature(column: str, values: Shaped[np.ndarray, " sample"], troubles: Troubles) -> None:
    """Record a feature that contains text, or integers that floats cannot represent.

    :param column: name of the feature.
    :param values: its values.
    :param troubles: collects the problems.
    """
    if values.dtype.kind not in "biuf" and len(values):
        troubles.text(column, str(values[0]), 0)
    elif values.dtype.kind in "iu" and values.dtype.itemsize == 8:
        large = np.flatnonzero((values > LARGEST_WHOLE) | (values < -LARGEST_WHOLE))
        if len(large):
            troubles.text(column, str(values[large[0]]), int(large[0]), TOO_LARGE)


def stacked(columns: Mapping[str, Num[np.ndarray, " sample"]]) -> Num[np.ndarray, "sample feature"]:
    """Stack columns of numbers in one array.

    :param columns: at least one column.
    """
    kind = np.result_type(*{values.dtype for values in columns.values()})
    array = np.empty((len(next(iter(columns.values()))), len(columns)), dtype=kind)
    for column, values in enumerate(columns.values()):
        array[:, column] = values
    return array


def frame_columns(
    frame: object, name: str, troubles: Troubles | None = None, features: Collection[str] = ()
) -> dict[str, Shaped[np.ndarray, " sample"]]:
    """Return the columns of a frame or series as arrays by name; only features can have missing values.

    :param frame: a frame or series of pandas or polars.
    :param name: name of the frame in messages.
    :param troubles: (default: an error is raised here) collects columns with missing values.
    :param features: (default none) columns whose missing values become NaN.
    """
    table = as_pandas(frame)
    names = list(map(str, table.columns))
    check_names(names, name)
    noted = Troubles() if troubles is None else troubles
    columns = {}
    for column, (_, series) in zip(names, table.items(), strict=True):
        values = series.to_numpy()
        lacking = series.isna().to_numpy(dtype=bool)
        if values.dtype.kind == "f":  # pandas can distinguish NaN from missing values
            lacking = lacking | np.isnan(values)
        if lacking.any() and column in features:
            values = _with_gaps(series, lacking)
        elif lacking.any():
            noted.missing(column, np.flatnonzero(lacking).tolist())
        columns[column] = values
    if troubles is None:
        noted.refuse(name, "drop these rows or columns, or fill in the values")
    return columns


def _with_gaps(series: pandas.Series, lacking: Bool[np.ndarray, " sample"]) -> Shaped[np.ndarray, " sample"]:
    """Return a feature with missing values as floats if its known values are numbers, otherwise unchanged."""
    known = series[~lacking]
    values = known.to_numpy()
    is_number = values.dtype.kind in "biuf" or all(
        isinstance(value, int | float | np.number) for value in values.tolist()
    )
    if not is_number:
        # The message quotes the first value as an example, so it must not be a missing one.
        return series.to_numpy()[np.argsort(lacking, kind="stable")]
    filled = np.full(len(series), np.nan)
    filled[~lacking] = values.astype(np.float64)
    return filled


def as_pandas(frame: Any) -> pandas.DataFrame:
    """Convert a frame or series of pandas or polars to a frame of pandas.

    :param frame: the frame or series.
    """
    import pandas

    if is_series(frame):
        name = getattr(frame, "name", None)
        series = frame if isinstance(frame, pandas.Series) else pandas.Series(frame.to_numpy())
        return series.to_frame("factor-1" if name in (None, "") else name)
    if isinstance(frame, pandas.DataFrame):
        return frame
    # The conversion that polars provides requires pyarrow.
    return pandas.DataFrame({str(name): frame[name].to_numpy() for name in frame.columns})


def row_names(frame: object) -> Shaped[np.ndarray, " sample"] | None:
    """Return the index of a pandas frame if it contains more than row numbers.

    :param frame: a frame.
    """
    index: Any = getattr(frame, "index", None)
    # The index of a list is a method; a range contains only row numbers.
    if index is None or callable(index) or type(index).__name__ == "RangeIndex":
        return None
    return as_ids(index.to_numpy())


def check_rows_match(frame: object, factors: object) -> None:
    """Raise an error if the indices of a pandas frame and its factors show that their rows do not match.

    Rows are paired by position, so other names, or the same names in another order, are a mistake. Row numbers cannot
    be compared with names.

    :param frame: the observations.
    :param factors: their factors.
    """
    frame_index: Any = getattr(frame, "index", None)
    factor_index: Any = getattr(factors, "index", None)
    if not (hasattr(frame_index, "equals") and hasattr(factor_index, "equals")):
        return
    if len(frame_index) != len(factor_index):
        return
    is_named = "RangeIndex" not in (type(frame_index).__name__, type(factor_index).__name__)
    # Row numbers of one and names of the other cannot be compared, unless they are the same set.
    if frame_index.equals(factor_index) or not (is_named or set(frame_index) == set(factor_index)):
        return
    row = next(row for row, (x, y) in enumerate(zip(frame_index, factor_index, strict=True)) if x != y)
    raise InputError(
        "X and factors",
        "have the same rows in the same order",
        got=f"{frame_index[row]!r} and {factor_index[row]!r} in row {row}",
        remedy="use factors.loc[X.index], or pass factors.to_numpy() if their order is correct",
    )


def as_ids(values: Shaped[np.ndarray, " sample"]) -> Shaped[np.ndarray, " sample"]:
    """Return identifiers of samples: integers unchanged, anything else as text.

    :param values: the names of the rows.
    """
    if values.dtype.kind in "iu":
        return values
    if any(map(is_absent, values.tolist())):
        raise InputError("names of rows", "exist for every row", remedy="fill them in, or leave them out")
    return np.array([str(value) for value in values.tolist()])
