"""Means of the columns of a table over seeds, with intervals."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, cast

import numpy as np
from jaxtyping import Float

from polariscope.core.seeds import generator
from polariscope.numerics.intervals import Interval, bootstrap_interval_of_mean, t_interval
from polariscope.studies.analyses import Columns
from polariscope.studies.columns import bounds_of

if TYPE_CHECKING:
    from polariscope.studies.table import Table


@dataclasses.dataclass(frozen=True)
class Aggregate:
    """One column over the seeds of one setting."""

    settings: dict[str, object]
    """Settings that these runs share, among those that vary in the study."""
    column: str
    n: int
    """Number of runs with a finite value."""
    mean: float
    sd: float | None
    """Standard deviation over seeds (n − 1); None for a single run."""
    t: Interval | None
    """95 % interval of the mean by Student's t, for values that are about normal; clipped at the column's bounds."""
    bootstrap: Interval | None
    """95 % interval of the mean by resampling the seeds."""
    lowest: str
    """Name of the run with the lowest value."""
    median: str
    """Name of the run with the median value; the lower of two."""
    highest: str


def aggregate_columns(table: Table, columns: Sequence[str]) -> list[Aggregate]:
    """Return columns averaged over the seeds of each setting; see :meth:`polariscope.studies.table.Table.aggregate`.

    :param table: table of the runs that are done.
    :param columns: names of the columns.
    """
    aggregates = []
    runs = table.frame["run"].astype("str").to_numpy()
    for settings, rows in table.groups("seed"):
        for name in columns:
            values = table.numbers[name].to_numpy()[rows]
            # Sorted by value, then by name, so the order of rows does not change a digit of the mean. NaN is last.
            order = np.lexsort((runs[rows], values))[: np.count_nonzero(~np.isnan(values))]
            if len(order):
                bounds = bounds_of(name, table.numbers.iloc[rows])
                names = runs[rows][order].tolist()
                aggregates.append(_aggregate(settings, name, values[order], names, bounds))
    return aggregates


def rows_of_aggregates(aggregates: Iterable[Aggregate]) -> list[Columns]:
    """Return one row for each setting and column.

    :param aggregates: means over seeds of one table.
    """
    rows = []
    for each in aggregates:
        t, bootstrap = each.t or (None, None), each.bootstrap or (None, None)
        rows.append(
            {
                **each.settings,
                **{"column": each.column, "n": each.n, "mean": each.mean, "sd": each.sd},
                **{"t.low": t[0], "t.high": t[1]},
                **{"bootstrap.low": bootstrap[0], "bootstrap.high": bootstrap[1]},
                **{"lowest": each.lowest, "median": each.median, "highest": each.highest},
            }
        )
    return cast("list[Columns]", rows)


def _aggregate(
    settings: dict[str, object],
    column: str,
    values: Float[np.ndarray, " run"],
    runs: list[str],
    bounds: tuple[float, float],
) -> Aggregate:
    return Aggregate(
        settings=settings,
        column=column,
        n=len(values),
        mean=float(values.mean()),
        sd=standard_deviation(values),
        t=t_interval(values, bounds=bounds),
        # A fixed seed, so a table does not change from call to call.
        bootstrap=bootstrap_interval_of_mean(values, generator(0, "table", column)),
        lowest=runs[0],
        median=runs[(len(runs) - 1) // 2],
        highest=runs[-1],
    )


def standard_deviation(values: Float[np.ndarray, " sample"]) -> float | None:
    """Return the standard deviation (n − 1); None for a single value.

    :param values: one or more values.
    """
    return float(values.std(ddof=1)) if len(values) > 1 else None
