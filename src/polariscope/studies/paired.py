"""Comparison of two values of a setting over pairs of runs that are otherwise equal."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from polariscope.core.errors import InputError
from polariscope.core.frames import cells_of
from polariscope.core.seeds import generator
from polariscope.numerics.intervals import (
    Interval,
    bootstrap_interval_of_mean,
    bounds_of_difference,
    t_interval,
)
from polariscope.studies.columns import bounds_of
from polariscope.studies.conditions import is_same
from polariscope.studies.over_seeds import standard_deviation

if TYPE_CHECKING:
    from pandas import DataFrame

    from polariscope.studies.table import Table


@dataclasses.dataclass(frozen=True)
class Comparison:
    """Two values of a setting compared over pairs of runs whose other settings, including the seed, are equal."""

    column: str
    setting: str
    first: object
    second: object
    n: int
    """Number of pairs."""
    difference: float
    """Mean of second minus first."""
    sd: float | None
    t: Interval | None
    """95 % interval of the mean difference by Student's t, clipped at the bounds of such a difference."""
    bootstrap: Interval | None
    higher: int
    """Number of pairs in which the second value is higher."""
    settings: dict[str, object] = dataclasses.field(default_factory=dict)
    """Other varying settings that these pairs share; empty for all pairs."""


def compare_column(
    table: Table, column: str, setting: str, first: object, second: object
) -> Comparison | None:
    """Return the change of one column; None without a pair. See :meth:`polariscope.studies.table.Table.compare`.

    :param table: table of the runs that are done.
    :param column: name of the column.
    :param setting: name of the setting that changes.
    :param first: value of the setting in the first run of each pair.
    :param second: value of the setting in the second run.
    """
    pairs = _differences(table, setting, first, second)[column].dropna()
    if pairs.empty:
        return None
    bounds = bounds_of(column, table.numbers)
    return _comparison(column, setting, first, second, pairs.to_numpy(), {}, bounds)


def compare_columns(
    table: Table, columns: list[str], setting: str, first: object, second: object
) -> list[Comparison]:
    """Return the comparisons of columns that have pairs; see :meth:`polariscope.studies.table.Table.comparisons`.

    :param table: table of the runs that are done.
    :param columns: names of the columns.
    :param setting: name of the setting that changes.
    :param first: value of the setting in the first run of each pair.
    :param second: value of the setting in the second run.
    """
    comparisons = []
    parts = [(settings, table.frame.index[rows]) for settings, rows in table.groups(setting, "seed")]
    differences = _differences(table, setting, first, second)
    for column in columns:
        pairs, bounds = differences[column].dropna(), bounds_of(column, table.numbers)
        by_settings = [(settings, pairs[pairs.index.isin(rows)]) for settings, rows in parts]
        by_settings = [(settings, part) for settings, part in by_settings if len(part)]
        # If each setting has a single pair, comparing each of them would only repeat the pairs.
        several = len(by_settings) > 1 and any(len(part) > 1 for _, part in by_settings)
        comparisons += [
            _comparison(column, setting, first, second, part.to_numpy(), settings, bounds)
            for settings, part in [({}, pairs), *(by_settings if several else [])]
            if len(part)
        ]
    return comparisons


def check_values_differ(setting: str, names: tuple[object, object], values: tuple[object, object]) -> None:
    """Refuse the same value twice, because such runs do not differ.

    :param setting: name of the setting that changes.
    :param names: the values as the caller named them.
    :param values: the values that the names refer to.
    """
    if is_same(*values):
        raise InputError(
            problem=f"{names[0]!r} and {names[1]!r} are the same value of {setting!r}",
            remedy="compare two different values",
        )


def _differences(table: Table, setting: str, first: object, second: object) -> DataFrame:
    """Return second minus first of each pair and column, indexed by the first row with the same other settings."""
    cells, sides = cells_of(table.frame[setting]), []
    pair = np.zeros(len(table), dtype=np.int64)
    for _, rows in table.groups(setting):
        # Rows that differ only in the setting get the same number.
        pair[rows] = rows[0]
    for value in (first, second):
        numbers = table.numbers[[is_same(cell, value) for cell in cells]]
        by_pair = numbers.groupby(pair[numbers.index])
        # If two runs have the same settings, the pair would be ambiguous, so neither is paired.
        sides.append(by_pair.first().where(by_pair.count() == 1))
    return (sides[1] - sides[0]).sort_index()


def _comparison(
    column: str,
    setting: str,
    first: object,
    second: object,
    differences: Float[np.ndarray, " pair"],
    settings: dict[str, object],
    bounds: tuple[float, float],
) -> Comparison:
    return Comparison(
        column=column,
        setting=setting,
        first=first,
        second=second,
        n=len(differences),
        difference=float(differences.mean()),
        sd=standard_deviation(differences),
        t=t_interval(differences, bounds=bounds_of_difference(bounds)),
        bootstrap=bootstrap_interval_of_mean(differences, generator(0, "table", column)),
        higher=int((differences > 0).sum()),
        settings=settings,
    )
