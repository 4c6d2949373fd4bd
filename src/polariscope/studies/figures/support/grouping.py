"""Rows of a table in groups: by strength, by what else varies, side by side; and means with their intervals."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

import numpy as np

from polariscope.core.errors import Argument, InputError, unknown
from polariscope.core.frames import finite
from polariscope.core.options import show
from polariscope.numerics.intervals import t_interval
from polariscope.studies.analyses import Cell, Columns
from polariscope.studies.figures import Row
from polariscope.studies.table import Table

Key = TypeVar("Key")
ALL = "all runs"


@dataclasses.dataclass(frozen=True)
class Strength:
    """The settings that are on the axis; each run has one of them."""

    names: tuple[str, ...]

    def of(self, row: Columns) -> Row | None:
        """Name and value of the setting of a run; None where it has none.

        :param row: of the run.
        """
        for name in self.names:
            if row.get(name) is not None:
                return {"setting": name, "strength": row[name]}
        return None


def strength_of(table: Table, chosen: str = "") -> Strength:
    """The setting that was chosen for the axis, or the one with numbers that varies.

    Settings of different objectives (β of one, γ of another) go on one axis, where each run has one of them.

    :param table: of a study.
    :param chosen: (default "") name of a setting.
    """
    varying = [name for name in table.settings if name != "seed"]
    if not varying:
        raise InputError(
            problem="nothing but the seed varies in the study",
            remedy="vary a setting in [grid] of the study file",
        )
    if chosen:
        if chosen not in varying:
            raise unknown("setting that varies", chosen, varying)
        return Strength((chosen,))
    numeric = [name for name in varying if all(_is_number(row.get(name)) for row in table.rows)]
    if not numeric and len(varying) == 1:
        return Strength((varying[0],))
    if not numeric:
        raise InputError(
            problem="no setting with numbers varies in the study",
            remedy=("choose one with ", Argument("strength")),
        )
    if any(sum(row.get(name) is not None for name in numeric) > 1 for row in table.rows):
        raise InputError(
            problem=f"several settings vary: {', '.join(numeric)}",
            remedy=("choose one with ", Argument("strength", numeric[0])),
        )
    return Strength(tuple(numeric))


def _is_number(cell: Cell) -> bool:
    return cell is None or (isinstance(cell, int | float) and not isinstance(cell, bool))


def series_of(table: Table, without: Sequence[str] = ()) -> Callable[[Columns], str]:
    """What tells a run from others, but for its seed and some settings, in words.

    :param table: of a study.
    :param without: (default none) settings that do not count.
    """
    names = [name for name in table.settings if name != "seed" and name not in without]

    def words(row: Columns) -> str:
        parts = [
            value if isinstance(value, str) else f"{name} = {show(value)}"
            for name in names
            if (value := row.get(name)) is not None
        ]
        return ", ".join(parts) or ALL

    return words


def across_of(table: Table, chosen: str = "") -> str:
    """The setting whose values are shown side by side: the one chosen, or the data where they vary; "" for none.

    :param table: of a study.
    :param chosen: (default "") name of a setting.
    """
    if chosen and chosen not in table.settings:
        raise unknown("setting that varies", chosen, table.settings)
    data = [name for name in table.settings if name == "data" or name.startswith("data.")]
    return chosen or (data[0] if data else "")


def panel_of(row: Columns, across: str) -> str:
    """Which of the panels side by side a run belongs to.

    :param row: of the run.
    :param across: a setting, or "" for one panel.
    """
    if not across:
        return ALL
    value = row.get(across)
    return value if isinstance(value, str) else f"{across} = {show(value)}"


def grouped(rows: Iterable[Columns], key: Callable[[Columns], Key]) -> dict[Key, list[Columns]]:
    """Rows by a key, in the order in which the keys come.

    :param rows: of a table.
    :param key: gives that of a row.
    """
    found: dict[Key, list[Columns]] = {}
    for row in rows:
        found.setdefault(key(row), []).append(row)
    return found


def values_of(rows: Iterable[Columns], column: str) -> list[float]:
    """The finite numbers of a column.

    :param rows: of a table.
    :param column: its name.
    """
    from pandas import Series

    return finite(Series([row.get(column) for row in rows], dtype="object")).dropna().tolist()


def summary(values: Sequence[float]) -> Row:
    """Number, mean, standard deviation (n − 1) and 95 % interval of the mean by Student's t.

    >>> summary([1.0, 3.0])["mean"], summary([2.0])
    (2.0, {'n': 1, 'mean': 2.0, 'sd': None, 'low': None, 'high': None})

    :param values: one or more.
    """
    array = np.asarray(values, dtype=np.float64)
    low, high = t_interval(array) or (None, None)
    deviation = float(array.std(ddof=1)) if len(array) > 1 else None
    return {"n": len(array), "mean": float(array.mean()), "sd": deviation, "low": low, "high": high}


def by_strength(table: Table, strength: str, quantities: Mapping[str, Mapping[str, Cell]]) -> list[Row]:
    """Mean and interval over seeds of some columns, for each strength and whatever else varies.

    :param table: of a study.
    :param strength: the setting on the axis; "" for the one that varies.
    :param quantities: by column, what its rows are marked with.
    """
    axis = strength_of(table, strength)
    series = series_of(table, axis.names)
    found: list[Row] = []
    runs = [row for row in table.finished.rows if axis.of(row) is not None]
    for name, members in grouped(runs, series).items():
        points = grouped(members, lambda row: tuple((axis.of(row) or {}).items()))
        for point in sorted(points, key=lambda point: in_order(point[1][1])):
            for column, marks in quantities.items():
                if values := values_of(points[point], column):
                    found.append({"series": name, **dict(point), **marks, **summary(values)})
    check_some(found)
    return found


def check_some(rows: Sequence[Row]) -> None:
    """Refuse a figure of nothing.

    :param rows: the numbers behind it.
    """
    if not rows:
        raise InputError(
            problem="no run that is done has all the numbers of this figure together",
            remedy="see what 'polariscope study table' says of them",
        )


def in_order(cell: Cell) -> tuple[bool, float, str]:
    """A key that sorts numbers by size, and words after them.

    :param cell: a value of a setting.
    """
    is_number = isinstance(cell, int | float)
    return (not is_number, float(cell) if is_number else 0.0, str(cell))  # type: ignore[arg-type]


def with_panels(rows: Sequence[Row], column: str) -> tuple[Row, ...]:
    """The rows, each with the name of its panel: a column, and what else varies where something does.

    :param rows: of :func:`by_strength`.
    :param column: what has panels of its own.
    """
    several = len({row["series"] for row in rows}) > 1
    return tuple(
        {**row, "panel": f"{row['series']}, {row[column]}" if several else str(row[column])} for row in rows
    )
