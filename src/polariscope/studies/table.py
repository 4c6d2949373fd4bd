"""A table of runs: one row for each run with its settings and results; means over seeds and comparisons."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Int

from polariscope.core import files
from polariscope.core.deprecation import deprecated
from polariscope.core.errors import InputError, unknown
from polariscope.core.frames import cells_of, csv_of, finite, frame_of, rows_of, uniform, write_frame
from polariscope.core.tables import TextTable
from polariscope.core.text import cell_text, listed
from polariscope.studies.analyses import Columns
from polariscope.studies.conditions import VARIANTS, Condition, value_among

if TYPE_CHECKING:
    from pandas import DataFrame

    from polariscope.studies.over_seeds import Aggregate
    from polariscope.studies.paired import Comparison

FORMATS = ("csv", "tsv", "json", "md", "parquet")
"""File formats of a table."""
IDENTITY = ("run", "state", "step")
"""Columns before the settings."""
WORDS = ("message", "folder")
"""Columns of text, which come last."""
MAX_RUNS_NAMED = 4
"""Maximum number of runs named in a note; the others are counted."""


class Table:
    """A pandas frame with metadata: the columns that are settings, and the runs that were left out.

    :param rows: a frame, or mappings from column names to cells; cells that a mapping lacks are missing.
    :param settings: columns that vary by design, the seed last.
    :param notes: (default none) notes on rows that were left out, and the rule.
    """

    def __init__(
        self, rows: DataFrame | Iterable[Columns], settings: Sequence[str], notes: Sequence[str] = ()
    ) -> None:
        from pandas import DataFrame

        frame = rows if isinstance(rows, DataFrame) else frame_of(rows)
        first = [name for name in (*IDENTITY, *settings) if name in frame.columns]
        last = [name for name in WORDS if name in frame.columns]
        rest = [name for name in frame.columns if name not in {*first, *last}]
        self.frame: DataFrame = frame[[*first, *rest, *last]].reset_index(drop=True)
        """One row for each run or model; a column with mixed types keeps them."""
        self.settings = tuple(settings)
        self.notes = tuple(notes)

    def __len__(self) -> int:
        return len(self.frame)

    def __repr__(self) -> str:
        return repr(self.frame)

    def _repr_html_(self) -> str:
        return str(self.frame._repr_html_())

    def replace(self, frame: DataFrame, notes: Sequence[str] | None = None) -> Table:
        """Return a table with other rows and the same settings.

        :param frame: the rows.
        :param notes: (default: the same) its notes.
        """
        return Table(frame, self.settings, self.notes if notes is None else notes)

    @functools.cached_property
    def rows(self) -> tuple[Columns, ...]:
        """Rows as mappings from all columns to plain values; None for a missing cell."""
        return tuple(rows_of(self.frame))

    @property
    def columns(self) -> list[str]:
        """Names of the columns: the run, the settings, results, and texts."""
        return list(self.frame.columns)

    @property
    def labels(self) -> dict[str, str]:
        """Label of each column for an axis, from the analysis that computes it."""
        from polariscope.studies.columns import column_of

        return {name: column_of(name).label for name in self.columns}

    @functools.cached_property
    def numbers(self) -> DataFrame:
        """Finite numbers of all columns; other cells are NaN."""
        return self.frame.apply(finite)

    @property
    def measured(self) -> list[str]:
        """Columns of results that have finite numbers."""
        hidden = {*IDENTITY, *self.settings, *WORDS}
        return [name for name in self.columns if name not in hidden and self.numbers[name].notna().any()]

    @property
    def done(self) -> Table:
        """Runs that are done; the loss of the others is that of an unfinished model."""
        return self if "state" not in self.columns else self.replace(self.frame[self.frame.state == "done"])

    def competing(self, does: bool = True) -> Table:
        """Return the runs that compete for the best score, or those that do not.

        Runs with fewer latents in use than factors vary do not compete, because a collapsed model can have a high
        score. A run competes if one of the two numbers is unknown.

        :param does: (default True) return the runs that compete, otherwise the others.
        """
        if not {"in_use", "n_factors"} <= set(self.columns):
            return self if does else self.replace(self.frame.iloc[:0])
        # Comparisons with NaN are False, so a run with an unknown number competes.
        return self.replace(self.frame[(self.numbers["in_use"] < self.numbers["n_factors"]) != does])

    @property
    def data_settings(self) -> tuple[str, ...]:
        """Varying settings that identify the dataset of a run: its name, and options of the data."""
        return tuple(name for name in self.settings if name == "data" or name.startswith("data."))

    def by_data(self) -> list[tuple[dict[str, Any], Table]]:
        """Return the runs of each dataset, with the settings of the data that vary.

        Scores of models trained on different datasets cannot be ranked against each other.
        """
        others = [name for name in (*self.settings, "step") if name not in self.data_settings]
        return [(settings, self.replace(self.frame.iloc[rows])) for settings, rows in self.groups(*others)]

    def where(self, *conditions: str) -> Table:
        """Return the rows that meet all conditions: ``mig>0.3``, ``beta=4``, ``state!=failed``.

        :param conditions: a column, one of = != < <= > >=, and a value. A missing cell meets no condition. Variants of
            the data can be written as short names (see :meth:`value_named`).
        """
        frame = self.frame
        for condition in map(Condition.parse, conditions):
            name = condition.column
            self._check(name)
            is_variants = name == VARIANTS and name in self.settings
            meant = self.value_named(name, condition.value) if is_variants else condition.value
            if meant is None:  # data without variants have an empty cell
                frame = frame[condition.missing(frame[name].isna())]
            else:
                frame = frame[[condition.holds(cell, str(meant)) for cell in cells_of(frame[name])]]
        return self.replace(frame)

    def only(self, columns: Sequence[str]) -> Table:
        """Return the table with fewer columns; the run and the settings are always included.

        :param columns: names of results.
        """
        for name in columns:
            self._check(name)
        shown = {*IDENTITY, *self.settings, *columns}
        return self.replace(self.frame[[name for name in self.columns if name in shown]])

    def aggregate(self, columns: Sequence[str] | None = None) -> list[Aggregate]:
        """Return every column averaged over the seeds of each setting; runs that are not done are excluded.

        Runs without a finite number in a column are left out of the mean of that column.

        :param columns: (default: all results) names of columns.
        """
        from polariscope.studies.over_seeds import aggregate_columns

        for name in columns or ():
            self._check(name)
        return aggregate_columns(self.done, self.measured if columns is None else columns)

    def over_seeds(self) -> Table:
        """Return :meth:`aggregate` as a table with one row for each setting and column."""
        from polariscope.studies.over_seeds import rows_of_aggregates

        settings = [name for name in self.settings if name != "seed"]
        return Table(rows_of_aggregates(self.aggregate()), settings, (*self.notes, *self.left_out))

    @property
    def not_done(self) -> tuple[str, ...]:
        """Names of the runs that are not done."""
        if "state" not in self.columns:
            return ()
        return tuple(self.frame.run[self.frame.state != "done"].drop_duplicates().astype("str"))

    @property
    def left_out(self) -> tuple[str, ...]:
        """A note on runs that are not done and are therefore excluded from means and comparisons."""
        names = listed(self.not_done, MAX_RUNS_NAMED)
        return (f"Not in the means, since they are not done: {names}.",) if names else ()

    def comparisons(self, setting: str, first: object, second: object) -> list[Comparison]:
        """Return :meth:`compare` for every result that has pairs; if no column has pairs, the call is refused.

        If other settings vary too, the comparison over all pairs is followed by one for each of these settings, over
        its seeds alone, unless each has a single pair.

        :param setting: name of the setting that changes.
        :param first: its value in the first run of each pair, or a short name (see :meth:`value_named`).
        :param second: its value in the second run.
        """
        from polariscope.studies.paired import compare_columns

        first, second = self._two_values(setting, first, second)
        comparisons = compare_columns(self.done, self.measured, setting, first, second)
        if not comparisons:
            values = dict.fromkeys(map(cell_text, cells_of(self.frame[setting])))
            raise InputError(
                problem=f"no two runs that are done differ only in {setting!r}, {first} and {second}",
                remedy=f"its values are {', '.join(values)}",
            )
        return comparisons

    def value_named(self, setting: str, name: object) -> object:
        """Return the value of a setting that a name refers to: the value itself, or a short name of variants.

        ``manipulated`` refers to the value of ``data.variants`` that contains a variant of this name, with any options,
        and ``original`` to data without variants. A name that matches several values is refused; a name that matches
        none is returned unchanged.

        :param setting: name of a setting that varies.
        :param name: the value, or a short name of variants.
        """
        if setting not in self.settings:
            raise unknown("setting that varies", setting, self.settings)
        values = cells_of(self.frame[setting].drop_duplicates()) if setting in self.columns else []
        return value_among(values, setting, name)

    def _two_values(self, setting: str, first: object, second: object) -> tuple[object, object]:
        """Return the values that two names refer to; refuse the same value twice."""
        from polariscope.studies.paired import check_values_differ

        self._check_rows()
        values = self.value_named(setting, first), self.value_named(setting, second)
        check_values_differ(setting, (first, second), values)
        return values

    def compare(self, column: str, setting: str, first: object, second: object) -> Comparison:
        """Return the change of a column between two values of a setting, over pairs of runs that are otherwise equal.

        Runs that are not done are excluded.

        :param column: name of the column.
        :param setting: name of the setting that changes.
        :param first: its value in the first run of each pair, or a short name (see :meth:`value_named`).
        :param second: its value in the second run.
        """
        from polariscope.studies.paired import compare_column

        self._check(column)
        first, second = self._two_values(setting, first, second)
        comparison = compare_column(self.done, column, setting, first, second)
        if comparison is None:
            raise InputError(
                problem=(
                    f"no two runs with a value in {column!r} differ only in {setting!r} ({first!r} and {second!r})"
                ),
                remedy="compare values that were run with the same seeds",
            )
        return comparison

    def groups(self, *without: str) -> list[tuple[dict[str, Any], Int[np.ndarray, " row"]]]:
        """Group the rows by their settings, except some; return these settings and the positions of the rows.

        :param without: settings that are ignored.
        """
        names = [name for name in (*self.settings, "step") if name not in without and name in self.columns]
        if not names or self.frame.empty:
            return [({}, np.arange(len(self)))] if len(self) else []
        # With sort=False, groups are numbered in the order of their first rows, as in drop_duplicates below.
        number = self.frame.groupby(names, sort=False, dropna=False).ngroup().to_numpy()
        first = rows_of(self.frame[names].drop_duplicates())
        return [
            ({name: cell for name, cell in row.items() if cell is not None}, np.flatnonzero(number == index))
            for index, row in enumerate(first)
        ]

    def _check(self, name: str) -> None:
        if not self.columns:
            raise InputError(problem=" ".join(["the table has no rows.", *self.notes]).removesuffix("."))
        if name not in self.columns:
            raise unknown("column", name, self.columns)

    def _check_rows(self) -> None:
        """Refuse a table without rows after conditions were applied."""
        if not len(self) and self.columns:
            raise InputError(
                problem="no run of the table meets the conditions",
                remedy="remove a condition, or change its value",
            )

    @property
    def finished(self) -> Table:
        """The finished model of each run that is done; a table without any is refused."""
        self._check_rows()
        frame = self.done.frame
        if frame.empty:
            raise InputError(problem="no run of the table is done", remedy="run the study first")
        if "step" in frame.columns:
            # The finished model of a run has the most steps, so it becomes the last of its rows.
            frame = frame.sort_values("step", kind="stable", na_position="first")
        return self.replace(frame.drop_duplicates("run", keep="last").sort_index())

    # Export.

    def to_frame(self) -> DataFrame:
        """Return a frame whose columns have one type each: mixed numbers become floats, other mixtures strings."""
        return uniform(self.frame)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values: the settings, the notes and the rows."""
        return {"settings": list(self.settings), "notes": list(self.notes), "rows": list(self.rows)}

    @deprecated("Table.to_frame", since="0.3", old="Table.to_pandas")
    def to_pandas(self) -> DataFrame:
        return self.to_frame()

    @deprecated("Table.rows", since="0.3", old="Table.records")
    def records(self) -> list[Columns]:
        return list(self.rows)

    def to_csv(self) -> str:
        """Return comma-separated values; a missing cell is empty."""
        return csv_of(self.frame)

    def to_markdown(self) -> str:
        """Return a Markdown table, with numbers of four digits."""
        cells = [list(map(cell_text, cells_of(self.frame[name]))) for name in self.columns]
        return TextTable(*self.columns, rows=zip(*cells, strict=True), notes=self.notes).to_markdown()

    def write(self, file: Path, format: str | None = None) -> None:
        """Write the table with all columns, atomically.

        :param file: path of the file.
        :param format: (default: from the file's suffix) csv, tsv, json, md or parquet.
        """
        format = format or file.suffix.removeprefix(".")
        if format not in FORMATS:
            raise unknown("format of a table", format, FORMATS)
        if format == "md":
            files.write_text(file, self.to_markdown())
        else:
            write_frame(self.frame, file, format)

    def sql(self, query: str) -> Table:
        """Return the result of an SQL query, executed by duckdb. The table is called ``runs``.

        Names with a point are quoted, ``select beta, avg("loss.rate") from runs group by beta``. A query can also read
        files, such as tables of other studies: ``select * from 'tables/*.parquet'``.

        :param query: query in SQL.
        """
        from polariscope.studies.queries import query_frame

        return Table(query_frame(self.to_frame(), query), (), self.notes)
