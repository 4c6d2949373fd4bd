"""Grouping of runs: by strength, by other varying settings, by panel; and means with their intervals."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from polariscope.core.errors import Argument, InputError, unknown
from polariscope.core.figures import point_cells
from polariscope.core.frames import cells_of
from polariscope.core.option_values import show
from polariscope.numerics.intervals import t_interval
from polariscope.studies.analyses import Cell
from polariscope.studies.columns import bounds_of
from polariscope.studies.figures import Row
from polariscope.studies.table import Table

if TYPE_CHECKING:
    from pandas import DataFrame, Index, Series

ALL = "all runs"


@dataclasses.dataclass(frozen=True)
class Strength:
    """The settings on the axis; each run has one of them."""

    names: tuple[str, ...]

    def of(self, table: Table) -> DataFrame:
        """Return the name and value of the setting of each run that has one.

        :param table: table of a study.
        """
        from pandas import DataFrame

        first = [next((name for name in self.names if row[name] is not None), None) for row in table.rows]
        strengths = [None if name is None else row[name] for name, row in zip(first, table.rows, strict=True)]
        # As objects, since pandas would convert the integer 1 next to 0.5 to a float.
        return DataFrame({"setting": first, "strength": strengths}, dtype="object").dropna()


def strength_of(table: Table, setting: str = "") -> Strength:
    """Return the setting for the axis, by default the varying setting with numbers.

    Settings of different objectives (β of one, γ of another) share an axis if each run has one of them.

    :param table: table of a study.
    :param setting: (default "") name of a setting.
    """
    varying = [name for name in table.settings if name != "seed"]
    if not varying:
        raise InputError(
            problem="only the seed varies in the study",
            remedy="vary a setting in [grid] of the study file",
        )
    if setting:
        if setting not in varying:
            raise unknown("setting that varies", setting, varying)
        return Strength((setting,))
    numeric = [name for name in varying if all(_is_number(cell) for cell in cells_of(table.frame[name]))]
    if not numeric and len(varying) == 1:
        return Strength((varying[0],))
    if not numeric:
        raise InputError(
            problem="no setting with numbers varies in the study",
            remedy=("choose one with ", Argument("strength")),
        )
    # Settings of different objectives share an axis only if no run has two of them.
    if (table.frame[numeric].notna().sum(axis="columns") > 1).any():
        raise InputError(
            problem=f"several settings vary: {', '.join(numeric)}",
            remedy=("choose one with ", Argument("strength", numeric[0])),
        )
    return Strength(tuple(numeric))


def _is_number(cell: Cell) -> bool:
    return cell is None or (isinstance(cell, int | float) and not isinstance(cell, bool))


def series_of(table: Table, without: Sequence[str] = ()) -> Series[str]:
    """Return a description of each run by its varying settings, except the seed and some others.

    :param table: table of a study.
    :param without: (default none) settings that are ignored.
    """
    from pandas import Series

    names = [name for name in table.settings if name != "seed" and name not in without]
    descriptions = [
        ", ".join(_describe(name, row[name]) for name in names if row[name] is not None) for row in table.rows
    ]
    return Series([each or ALL for each in descriptions], dtype="str")


def _describe(name: str, value: Cell) -> str:
    return value if isinstance(value, str) else f"{name} = {show(value)}"


def across_of(table: Table, setting: str = "") -> str:
    """Return the setting whose values are shown side by side, or the data if they vary; "" for none.

    :param table: table of a study.
    :param setting: (default "") name of a setting.
    """
    if setting and setting not in table.settings:
        raise unknown("setting that varies", setting, table.settings)
    return setting or next(iter(table.data_settings), "")


def panels_of(table: Table, across: str) -> Series[str]:
    """Return the panel of each run.

    :param table: table of a study.
    :param across: a setting, or "" for one panel.
    """
    from pandas import Series

    return Series([_describe(across, row[across]) if across else ALL for row in table.rows], dtype="str")


def summary(values: Iterable[float], bounds: tuple[float, float] = (-math.inf, math.inf)) -> Row:
    """Return number, mean, standard deviation (n − 1) and 95 % interval of the mean by Student's t.

    Two or three values are included as well, because they are drawn instead of the interval.

    >>> summary([1.0, 3.0])["mean"], summary([2.0])
    (2.0, {'n': 1, 'mean': 2.0, 'sd': None, 'low': None, 'high': None})

    :param values: one or more values.
    :param bounds: (default none) smallest and largest possible value, at which the interval is clipped.
    """
    array = np.array([*values], dtype=np.float64)
    low, high = t_interval(array, bounds=bounds) or (None, None)
    deviation = float(array.std(ddof=1)) if len(array) > 1 else None
    row: Row = {"n": len(array), "mean": float(array.mean()), "sd": deviation, "low": low, "high": high}
    return {**row, **point_cells(array.tolist())}


def points_of(table: Table, axis: Strength) -> list[tuple[Row, Index]]:
    """Return the runs of each strength and of other varying settings: their marks, and the labels of their rows.

    :param table: table of the finished models of a study.
    :param axis: the setting on the axis; runs without it are left out.
    """
    runs = axis.of(table).join(series_of(table, axis.names).rename("series"))
    # Marks are those of the first run, because pandas converts the keys of a group to floats.
    points = [
        (members.iloc[0][["series", "setting", "strength"]].to_dict(), members.index)
        for _, members in runs.groupby(["series", "setting", "strength"], sort=False)
    ]
    # Series keep the order of the table, and strengths are sorted within each.
    order = list(dict.fromkeys(marks["series"] for marks, _ in points))
    return sorted(points, key=lambda point: (order.index(point[0]["series"]), in_order(point[0]["strength"])))


def by_strength(table: Table, strength: str, quantities: Mapping[str, Mapping[str, Cell]]) -> list[Row]:
    """Return mean and interval over seeds of some columns, for each strength and each value of other varying settings.

    :param table: table of a study.
    :param strength: the setting on the axis; "" for the one that varies.
    :param quantities: by column, the marks of its rows.
    """
    axis, models = strength_of(table, strength), table.finished
    figure_rows: list[Row] = []
    for point, rows in points_of(models, axis):
        for column, marks in quantities.items():
            if column in models.columns and len(values := models.numbers.loc[rows, column].dropna()):
                bounds = bounds_of(column, models.numbers.loc[rows])
                figure_rows.append({**point, **marks, **summary(values, bounds)})
    check_some(figure_rows)
    return figure_rows


def check_some(rows: Sequence[Row]) -> None:
    """Refuse a figure without numbers.

    :param rows: the numbers behind the figure.
    """
    if not rows:
        raise InputError(
            problem="no finished run has all the values that this figure requires",
            remedy="see the output of 'polariscope study table'",
        )


def in_order(cell: Cell) -> tuple[bool, float, str]:
    """Return a key that sorts numbers by size, and strings after them.

    :param cell: a value of a setting.
    """
    is_number = isinstance(cell, int | float)
    return (not is_number, float(cell) if is_number else 0.0, str(cell))  # type: ignore[arg-type]


def with_panels(rows: Sequence[Row], column: str) -> tuple[Row, ...]:
    """Return the rows with the name of their panel: a column, and other varying settings if there are any.

    :param rows: rows of :func:`by_strength`.
    :param column: column whose values have their own panels.
    """
    several = len({row["series"] for row in rows}) > 1
    return tuple(
        {**row, "panel": f"{row['series']}, {row[column]}" if several else str(row[column])} for row in rows
    )
