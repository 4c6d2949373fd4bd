"""Frames of pandas and polars, known by what they offer and read with pandas."""

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
    """Whether something is a frame.

    :param table: what the user has.
    """
    return all(hasattr(table, name) for name in ("to_numpy", "columns", "dtypes"))


def is_series(table: object) -> bool:
    """Whether something is one column of a frame.

    :param table: what the user has.
    """
    return all(hasattr(table, name) for name in ("name", "dtype", "to_numpy")) and not is_frame(table)


def read_frame(frame: object, name: str) -> Contents:
    """The numbers of a frame with the names of its columns and rows; missing values are NaN, and text is refused.

    :param frame: a frame of pandas or polars.
    :param name: how messages call it.
    """
    table = as_pandas(frame)
    columns = frame_columns(frame, name, features=tuple(map(str, table.columns)))
    troubles = Troubles()
    for column, values in columns.items():
        check_feature(column, values, troubles)
    troubles.refuse(
        name, "drop these columns, turn them into numbers, or pass them as factors, which may be text"
    )
    if not columns or not len(next(iter(columns.values()))):
        raise InputError(
            name, "hold at least one sample with one value", got=f"a frame of {len(columns)} columns"
        )
    numbered = list(columns) == [str(number) for number in range(len(columns))]
    return Contents(stacked(columns), feature_names=() if numbered else tuple(columns), ids=row_names(frame))


def check_feature(column: str, values: Shaped[np.ndarray, " sample"], troubles: Troubles) -> None:
    """Note a feature that contains text, or whole numbers that floats cannot represent.

    :param column: its name.
    :param values: its values.
    :param troubles: where to note what is wrong.
    """
    if values.dtype.kind not in "biuf" and len(values):
        troubles.text(column, str(values[0]), 0)
    elif values.dtype.kind in "iu" and values.dtype.itemsize == 8:
        large = np.flatnonzero((values > LARGEST_WHOLE) | (values < -LARGEST_WHOLE))
        if len(large):
            troubles.text(column, str(values[large[0]]), int(large[0]), TOO_LARGE)


def stacked(columns: Mapping[str, Num[np.ndarray, " sample"]]) -> Num[np.ndarray, "sample feature"]:
    """Return columns of numbers as one array.

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
    """Return the columns of a frame or series by name, as arrays; others than features must not lack values.

    :param frame: a frame or series of pandas or polars.
    :param name: how messages call it.
    :param troubles: (default: they are refused here) where to note columns that lack values.
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
        if values.dtype.kind == "f":  # pandas can tell NaN from missing
            lacking = lacking | np.isnan(values)
        if lacking.any() and column in features:
            values = _with_gaps(series, lacking)
        elif lacking.any():
            noted.missing(column, np.flatnonzero(lacking).tolist())
        columns[column] = values
    if troubles is None:
        noted.refuse(name, "drop these rows or columns, or fill the values in")
    return columns


def _with_gaps(series: pandas.Series, lacking: Bool[np.ndarray, " sample"]) -> Shaped[np.ndarray, " sample"]:
    """Return a feature that lacks values as floats, if the values it has are numbers; otherwise as it is."""
    known = series[~lacking]
    values = known.to_numpy()
    is_number = values.dtype.kind in "biuf" or all(
        isinstance(value, int | float | np.number) for value in values.tolist()
    )
    if not is_number:
        return series.to_numpy()[np.argsort(lacking, kind="stable")]  # one that is there is the example
    filled = np.full(len(series), np.nan)
    filled[~lacking] = values.astype(np.float64)
    return filled


def as_pandas(frame: Any) -> pandas.DataFrame:
    """Return a frame or series of pandas or polars as a frame of pandas.

    :param frame: the frame or series.
    """
    import pandas

    if is_series(frame):
        name = getattr(frame, "name", None)
        series = frame if isinstance(frame, pandas.Series) else pandas.Series(frame.to_numpy())
        return series.to_frame("factor-1" if name in (None, "") else name)
    if isinstance(frame, pandas.DataFrame):
        return frame
    # A frame of polars converts itself only if pyarrow is installed.
    return pandas.DataFrame({str(name): frame[name].to_numpy() for name in frame.columns})


def row_names(frame: object) -> Shaped[np.ndarray, " sample"] | None:
    """The index of a pandas frame, where it is more than row numbers.

    :param frame: a frame.
    """
    index: Any = getattr(frame, "index", None)
    if index is None or callable(index) or type(index).__name__ == "RangeIndex":
        return None
    return as_ids(index.to_numpy())


def check_rows_match(frame: object, factors: object) -> None:
    """Refuse a frame and factors of pandas whose indices say that their rows are not those of the same samples.

    Rows are paired by their places, so the same names in another order, or other names, are a mistake. Row numbers
    beside names say nothing.

    :param frame: the observations.
    :param factors: their factors.
    """
    one: Any = getattr(frame, "index", None)
    other: Any = getattr(factors, "index", None)
    if not (hasattr(one, "equals") and hasattr(other, "equals")) or len(one) != len(other):
        return
    is_named = "RangeIndex" not in (type(one).__name__, type(other).__name__)
    if one.equals(other) or not (is_named or set(one) == set(other)):
        return
    row = next(row for row, (here, there) in enumerate(zip(one, other, strict=True)) if here != there)
    raise InputError(
        "X and factors",
        "have the same rows in the same order",
        got=f"{one[row]!r} and {other[row]!r} in row {row}",
        remedy="use factors.loc[X.index], or pass factors.to_numpy() if their order is right",
    )


def as_ids(values: Shaped[np.ndarray, " sample"]) -> Shaped[np.ndarray, " sample"]:
    """What identifies samples: whole numbers as they are, anything else as text.

    :param values: the names of the rows.
    """
    if values.dtype.kind in "iu":
        return values
    if any(map(is_absent, values.tolist())):
        raise InputError("names of rows", "be there for every row", remedy="fill them in, or leave them out")
    return np.array([str(value) for value in values.tolist()])
