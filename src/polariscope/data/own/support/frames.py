"""Frames of pandas and polars, known by what they offer; neither library is imported."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from jaxtyping import Shaped

from polariscope.core.errors import InputError
from polariscope.data.own.support.columns import Troubles, check_names, is_missing
from polariscope.data.own.support.contents import Contents


def is_frame(given: object) -> bool:
    """Whether something is a frame.

    :param given: what the user has.
    """
    return all(hasattr(given, name) for name in ("to_numpy", "columns", "dtypes"))


def is_series(given: object) -> bool:
    """Whether something is one column of a frame.

    :param given: what the user has.
    """
    return all(hasattr(given, name) for name in ("name", "dtype", "to_numpy")) and not is_frame(given)


def read_frame(frame: object, name: str) -> Contents:
    """The numbers of a frame with the names of its columns and rows; text and missing values are refused.

    :param frame: a frame of pandas or polars.
    :param name: how messages call it.
    """
    columns = dict(frame_columns(frame, name))
    troubles = Troubles()
    for column, values in columns.items():
        if values.dtype.kind not in "biuf":
            troubles.text(column, str(values[0]), 0)
    troubles.refuse(
        name, "drop these columns, turn them into numbers, or pass them as factors, which may be text"
    )
    if not columns or not len(next(iter(columns.values()))):
        raise InputError(
            name, "hold at least one sample with one value", got=f"a frame of {len(columns)} columns"
        )
    kind = np.result_type(*(values.dtype for values in columns.values()))
    array = np.empty((len(next(iter(columns.values()))), len(columns)), dtype=kind)
    for place, values in enumerate(columns.values()):
        array[:, place] = values
    numbered = list(columns) == [str(place) for place in range(len(columns))]
    return Contents(array, feature_names=() if numbered else tuple(columns), ids=row_names(frame))


def frame_columns(frame: object, name: str) -> Iterator[tuple[str, Shaped[np.ndarray, " sample"]]]:
    """The columns of a frame or series by name, as arrays; missing values are refused, with their columns.

    :param frame: a frame or series of pandas or polars.
    :param name: how messages call it.
    """
    found = list(_columns(frame))
    check_names([column for column, _ in found], name)
    troubles = Troubles()
    read = []
    for column, series in found:
        values = series.to_numpy()
        lacking = np.asarray(series.isna() if hasattr(series, "isna") else series.is_null(), dtype=bool)
        if values.dtype.kind == "f":
            lacking = lacking | np.isnan(values)
        if lacking.any():
            troubles.missing(column, np.flatnonzero(lacking).tolist())
        read.append((column, values))
    troubles.refuse(name, "drop these rows or columns, or fill the values in")
    yield from read


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
    place = next(row for row, (here, there) in enumerate(zip(one, other, strict=True)) if here != there)
    raise InputError(
        "X and factors",
        "have the same rows in the same order",
        got=f"{one[place]!r} and {other[place]!r} in row {place}",
        remedy="use factors.loc[X.index], or pass factors.to_numpy() if their order is right",
    )


def as_ids(values: Shaped[np.ndarray, " sample"]) -> Shaped[np.ndarray, " sample"]:
    """What identifies samples: whole numbers as they are, anything else as text.

    :param values: the names of the rows.
    """
    if values.dtype.kind in "iu":
        return values
    if any(is_missing(value) for value in values.tolist()):
        raise InputError("names of rows", "be there for every row", remedy="fill them in, or leave them out")
    return np.array([str(value) for value in values.tolist()])


def _columns(frame: Any) -> Iterator[tuple[str, Any]]:
    if is_series(frame):
        name = getattr(frame, "name", None)
        yield ("factor-1" if name in (None, "") else str(name)), frame
    elif hasattr(frame, "get_columns"):  # polars
        yield from ((str(series.name), series) for series in frame.get_columns())
    else:
        yield from ((str(name), frame.iloc[:, place]) for place, name in enumerate(frame.columns))
