"""Runs side by side: one row for each, what it was trained with and what was measured of it; and over seeds."""

from __future__ import annotations

import contextlib
import dataclasses
import decimal
import functools
import importlib
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from jaxtyping import Float, Int

from polariscope.core import files
from polariscope.core.deprecation import deprecated
from polariscope.core.errors import InputError, PolariscopeError, not_installed, unknown
from polariscope.core.frames import cells_of, csv_of, finite, frame_of, rows_of, uniform, write_frame
from polariscope.core.options import completed
from polariscope.core.seeds import generator
from polariscope.data.chain import in_words
from polariscope.numerics.intervals import Interval, bootstrap_interval_of_mean, t_interval
from polariscope.runs.run import Run
from polariscope.studies.analyses import Cell, Columns
from polariscope.studies.analyses import family as analyses
from polariscope.training.settings import TrainSettings

if TYPE_CHECKING:
    from pandas import DataFrame

    from polariscope.studies.ledger import Entry, Ledger
    from polariscope.studies.runs import StudyRun

FORMATS = ("csv", "tsv", "json", "md", "parquet")
"""Formats of a table's file."""
IDENTITY = ("run", "state", "step")
"""Columns that come before the settings."""
WORDS = ("message", "folder")
"""Columns that come last, and are texts."""
MOST_NAMED = 4
"""Runs that are named in a note; of the others it says how many there are."""
VARIANTS, ORIGINAL = "data.variants", "original"
"""The setting that says how data were changed, and the name of data that were not."""
OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "!=": operator.ne,
    "=": operator.eq,
    "<": operator.lt,
    ">": operator.gt,
}


def some_of(runs: Sequence[str]) -> str:
    """Names of runs for a note: a few, and how many others there are.

    >>> some_of(["a", "b"]), some_of(list("abcdef"))
    ('a, b', 'a, b, c, d, and 2 more')

    :param runs: their names.
    """
    more = len(runs) - MOST_NAMED
    return ", ".join([*runs[:MOST_NAMED], *([f"and {more} more"] if more > 0 else [])])


@dataclasses.dataclass(frozen=True)
class Aggregate:
    """One column over the seeds of one setting."""

    settings: dict[str, object]
    """What these runs have in common, of what varies."""
    column: str
    n: int
    """Runs that have a finite value."""
    mean: float
    sd: float | None
    """Standard deviation over seeds (n − 1); None for one."""
    t: Interval | None
    """95 % interval of the mean by Student's t, for values that are about normal; cut off at the column's bounds."""
    bootstrap: Interval | None
    """95 % interval of the mean by resampling the seeds."""
    lowest: str
    """Name of the run with the lowest value."""
    median: str
    """Of several, the run whose value has as many below as above, the lower one of two."""
    highest: str


@dataclasses.dataclass(frozen=True)
class Comparison:
    """Two values of a setting, paired over all that is equal otherwise, the seed included."""

    column: str
    setting: str
    first: object
    second: object
    n: int
    """Pairs."""
    difference: float
    """Mean of second minus first."""
    sd: float | None
    t: Interval | None
    """95 % interval of the mean difference by Student's t."""
    bootstrap: Interval | None
    higher: int
    """Pairs in which the second is higher."""
    settings: dict[str, object] = dataclasses.field(default_factory=dict)
    """What these pairs have in common, of what else varies; nothing: all pairs."""


class Table:
    """A frame of pandas with what pandas cannot know: which columns are settings, and which runs were left out.

    :param rows: a frame, or mappings from names to cells; a cell that a row does not have is missing.
    :param settings: columns that vary by design, the seed last.
    :param notes: (default none) sentences about rows that were left out, and the rule.
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
        """One row for each run or model; a column that mixes types has them as they are."""
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
        """The rows as mappings from all columns to plain values; None for a missing cell."""
        return tuple(rows_of(self.frame))

    @property
    def columns(self) -> list[str]:
        """Names of the columns: the run, the settings, results, and texts."""
        return list(self.frame.columns)

    @property
    def labels(self) -> dict[str, str]:
        """Label of each column, as an axis has it, from the analyses that give the columns."""
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
        """Runs that are done; the loss of others is that of a model that is not trained yet."""
        return self if "state" not in self.columns else self.replace(self.frame[self.frame.state == "done"])

    def competing(self, does: bool = True) -> Table:
        """Return the runs that compete for the best score, or those that do not.

        Runs with fewer latents in use than factors that vary do not: a collapsed model can have a high score. A run of
        which one of the two numbers is not known competes.

        :param does: (default True) whether those that compete are returned.
        """
        if not {"in_use", "n_factors"} <= set(self.columns):
            return self if does else self.replace(self.frame.iloc[:0])
        return self.replace(self.frame[(self.numbers["in_use"] < self.numbers["n_factors"]) != does])

    def where(self, *conditions: str) -> Table:
        """Return the rows for which all conditions hold: ``mig>0.3``, ``beta=4``, ``state!=failed``.

        :param conditions: a column, one of = != < <= > >=, and a value. A missing cell meets none. Variants of the data
            may be called by their names (see :meth:`value_named`).
        """
        frame = self.frame
        for condition in conditions:
            match = re.fullmatch(r"(.+?)\s*(<=|>=|!=|=|<|>)\s*(.*)", condition)
            if match is None:
                raise InputError(
                    "a condition", "be COLUMN=VALUE, or with !=, <, <=, >, >=", got=f"{condition!r}"
                )
            name, compare, text = match[1], OPERATORS[match[2]], match[3]
            self._check(name)
            meant = self.value_named(name, text) if name == VARIANTS and name in self.settings else text
            if meant is None:  # data without variants, in a table whose cell of them is empty
                frame = frame[compare(frame[name].isna(), True)]
            else:
                cells = cells_of(frame[name])
                frame = frame[[_holds(name, cell, compare, str(meant)) for cell in cells]]
        return self.replace(frame)

    def only(self, columns: Sequence[str]) -> Table:
        """Return fewer columns; the run and the settings stay.

        :param columns: names of results.
        """
        for name in columns:
            self._check(name)
        kept = {*IDENTITY, *self.settings, *columns}
        return self.replace(self.frame[[name for name in self.columns if name in kept]])

    def aggregate(self, columns: Sequence[str] | None = None) -> list[Aggregate]:
        """Return every column over the seeds of each setting; runs that are not done have no part in it.

        Those without a finite number are left out of the row of that column.

        :param columns: (default: all that were measured) names.
        """
        from polariscope.studies.columns import bounds_of

        for name in columns or ():
            self._check(name)
        done, found = self.done, []
        runs = done.frame["run"].astype("str").to_numpy()
        for settings, rows in done.groups("seed"):
            for name in self.measured if columns is None else columns:
                values = done.numbers[name].to_numpy()[rows]
                # Sorted by value, then by name: the order of rows changes no digit of the mean. NaN is last.
                order = np.lexsort((runs[rows], values))[: np.count_nonzero(~np.isnan(values))]
                if len(order):
                    bounds = bounds_of(name, done.numbers.iloc[rows])
                    names = runs[rows][order].tolist()
                    found.append(_aggregate(settings, name, values[order], names, bounds))
        return found

    def over_seeds(self) -> Table:
        """Return :meth:`aggregate` as a table: a row for each setting and column."""
        rows = []
        for one in self.aggregate():
            t, bootstrap = one.t or (None, None), one.bootstrap or (None, None)
            rows.append(
                {
                    **one.settings,
                    **{"column": one.column, "n": one.n, "mean": one.mean, "sd": one.sd},
                    **{"t.low": t[0], "t.high": t[1]},
                    **{"bootstrap.low": bootstrap[0], "bootstrap.high": bootstrap[1]},
                    **{"lowest": one.lowest, "median": one.median, "highest": one.highest},
                }
            )
        settings = [name for name in self.settings if name != "seed"]
        return Table(cast("list[Columns]", rows), settings, (*self.notes, *self.left_out))

    @property
    def not_done(self) -> tuple[str, ...]:
        """Names of the runs that are not done."""
        if "state" not in self.columns:
            return ()
        return tuple(self.frame.run[self.frame.state != "done"].drop_duplicates().astype("str"))

    @property
    def left_out(self) -> tuple[str, ...]:
        """A note if runs are not done, and so have no part in means and comparisons."""
        names = some_of(self.not_done)
        return (f"Not in the means, since they are not done: {names}.",) if names else ()

    def comparisons(self, setting: str, first: object, second: object) -> list[Comparison]:
        """Return :meth:`compare` for every column that was measured and has pairs; none is refused.

        If other settings vary too, the comparison over all pairs is followed by one for each of these settings, over
        its seeds alone; not if each has a single pair.

        :param setting: what changes.
        :param first: its value in the first of each pair, or its name (see :meth:`value_named`).
        :param second: in the second.
        """
        first, second = self._two_values(setting, first, second)
        done, found = self.done, []
        parts = [(settings, done.frame.index[rows]) for settings, rows in done.groups(setting, "seed")]
        differences = done._differences(setting, first, second)
        for column in self.measured:
            pairs = differences[column].dropna()
            own = [(settings, pairs[pairs.index.isin(rows)]) for settings, rows in parts]
            own = [(settings, part) for settings, part in own if len(part)]
            several = len(own) > 1 and any(len(part) > 1 for _, part in own)
            found += [
                _comparison(column, setting, first, second, part.to_numpy(), settings)
                for settings, part in [({}, pairs), *(own if several else [])]
                if len(part)
            ]
        if not found:
            values = dict.fromkeys(shown(cell) for cell in cells_of(self.frame[setting]))
            raise InputError(
                problem=f"no two runs that are done differ only in {setting!r}, {first} and {second}",
                remedy=f"its values are {', '.join(values)}",
            )
        return found

    def value_named(self, setting: str, name: object) -> object:
        """Return the value of a setting that is meant by a name: the value itself, or a short name of variants.

        ``manipulated`` is the one of ``data.variants`` that has a variant of this name, whatever its options, and
        ``original`` stands for data without variants. A name that stands for several values is refused; what stands for
        none is given back.

        :param setting: one that varies.
        :param name: what was asked for.
        """
        if setting not in self.settings:
            raise unknown("setting that varies", setting, self.settings)
        values = cells_of(self.frame[setting].drop_duplicates()) if setting in self.columns else []
        if setting != VARIANTS or any(_same(value, name) for value in values):
            return name
        if name == ORIGINAL:
            return next((value for value in values if value in (None, "none")), name)
        pattern = rf"(.*\+)?{re.escape(str(name))}([-:+].*)?"
        meant = [value for value in values if value is not None and re.fullmatch(pattern, str(value))]
        if len(meant) > 1:
            raise InputError(
                problem=f"{name!r} stands for several values of {setting!r}: {', '.join(map(str, meant))}",
                remedy="write the one that is meant in full",
            )
        return meant[0] if meant else name

    def _two_values(self, setting: str, first: object, second: object) -> tuple[object, object]:
        """The values that are meant by two names; the same value twice is refused, as it differs in nothing."""
        self._check_rows()
        one, other = self.value_named(setting, first), self.value_named(setting, second)
        if _same(one, other):
            raise InputError(
                problem=f"{first!r} and {second!r} are the same value of {setting!r}",
                remedy="compare two that differ",
            )
        return one, other

    def compare(self, column: str, setting: str, first: object, second: object) -> Comparison:
        """Return how much a column changes between two values of a setting, over pairs that are equal in all else.

        Runs that are not done have no part in it.

        :param column: what is compared.
        :param setting: what changes.
        :param first: its value in the first of each pair, or its name (see :meth:`value_named`).
        :param second: in the second.
        """
        self._check(column)
        first, second = self._two_values(setting, first, second)
        pairs = self.done._differences(setting, first, second)[column].dropna()
        if pairs.empty:
            raise InputError(
                problem=(
                    f"no two runs with a number in {column!r} differ only in {setting!r}, {first!r} and {second!r}"
                ),
                remedy="compare values that were run with the same seeds",
            )
        return _comparison(column, setting, first, second, pairs.to_numpy(), {})

    def _differences(self, setting: str, first: object, second: object) -> DataFrame:
        """Second minus first of each pair and column, by the position of the first row that is equal in all else."""
        cells, sides = cells_of(self.frame[setting]), []
        pair = np.zeros(len(self), dtype=np.int64)
        for _, rows in self.groups(setting):
            pair[rows] = rows[0]
        for value in (first, second):
            numbers = self.numbers[[_same(cell, value) for cell in cells]]
            by_pair = numbers.groupby(pair[numbers.index])
            sides.append(by_pair.first().where(by_pair.count() == 1))
        return (sides[1] - sides[0]).sort_index()

    def groups(self, *without: str) -> list[tuple[dict[str, Any], Int[np.ndarray, " row"]]]:
        """Return the rows with the same settings but for some: these settings, and the positions of the rows.

        :param without: settings that do not count.
        """
        names = [name for name in (*self.settings, "step") if name not in without and name in self.columns]
        if not names or self.frame.empty:
            return [({}, np.arange(len(self)))] if len(self) else []
        number = self.frame.groupby(names, sort=False, dropna=False).ngroup().to_numpy()
        first = rows_of(self.frame[names].drop_duplicates())
        return [
            ({name: cell for name, cell in row.items() if cell is not None}, np.flatnonzero(number == place))
            for place, row in enumerate(first)
        ]

    def _check(self, name: str) -> None:
        if not self.columns:
            raise InputError(problem=" ".join(["the table has no rows.", *self.notes]).removesuffix("."))
        if name not in self.columns:
            raise unknown("column", name, self.columns)

    def _check_rows(self) -> None:
        """Refuse a table of which conditions have left nothing."""
        if not len(self) and self.columns:
            raise InputError(
                problem="no run of the table meets the conditions",
                remedy="leave one out, or give another value",
            )

    @property
    def finished(self) -> Table:
        """The finished model of each run that is done; a table without any is refused."""
        self._check_rows()
        frame = self.done.frame
        if frame.empty:
            raise InputError(problem="no run of the table is done", remedy="run the study first")
        if "step" in frame.columns:
            frame = frame.sort_values("step", kind="stable", na_position="first")
        return self.replace(frame.drop_duplicates("run", keep="last").sort_index())

    # How it is written.

    def to_frame(self) -> DataFrame:
        """Return a frame with columns of one type: mixed numbers become real numbers, other mixtures texts."""
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
        """Return a table of Markdown, numbers with four digits."""
        cells = self.frame.apply(
            lambda column: [shown(cell).replace("|", "\\|") for cell in cells_of(column)]
        )
        lines = [self.columns, ["---"] * len(self.columns), *cells.to_numpy().tolist()]
        text = "\n".join("| " + " | ".join(line) + " |" for line in lines)
        return "\n".join([text, *(f"\n{note}" for note in self.notes)]) + "\n"

    def write(self, file: Path, format: str | None = None) -> None:
        """Write it whole or not at all, with all columns.

        :param file: where to.
        :param format: (default: by the end of the file's name) csv, tsv, json, md or parquet.
        """
        format = format or file.suffix.removeprefix(".")
        if format not in FORMATS:
            raise unknown("format of a table", format, FORMATS)
        if format == "md":
            files.write_text(file, self.to_markdown())
        else:
            write_frame(self.frame, file, format)

    def sql(self, query: str) -> Table:
        """Return the answer of duckdb to a query. The table is called ``runs``.

        Names with a point are quoted, ``select beta, avg("loss.rate") from runs group by beta``. A query may name files
        too, those of other studies for example: ``select * from 'tables/*.parquet'``.

        :param query: in SQL.
        """
        try:
            duckdb = importlib.import_module("duckdb")
        except ImportError:
            raise not_installed("a query over a table", "duckdb", "duckdb") from None
        with duckdb.connect() as connection:
            if self.columns:
                connection.register("runs", self.to_frame())
            try:
                answer = connection.execute(query)
                names = [column[0] for column in answer.description or ()]
                # Not as a frame: pandas would make sums of integers real numbers.
                found = answer.fetchall()
            except duckdb.Error as error:
                raise InputError(problem=f"the query cannot be answered: {str(error).strip()}") from None
        rows = [dict(zip(names, map(_sql_cell, row), strict=True)) for row in found]
        return Table(frame_of(rows, names), (), self.notes)


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
        sd=_sd(values),
        t=t_interval(values, bounds=bounds),
        bootstrap=bootstrap_interval_of_mean(values, generator(0, "table", column)),
        lowest=runs[0],
        median=runs[(len(runs) - 1) // 2],
        highest=runs[-1],
    )


def _comparison(
    column: str,
    setting: str,
    first: object,
    second: object,
    differences: Float[np.ndarray, " pair"],
    settings: dict[str, object],
) -> Comparison:
    return Comparison(
        column=column,
        setting=setting,
        first=first,
        second=second,
        n=len(differences),
        difference=float(differences.mean()),
        sd=_sd(differences),
        t=t_interval(differences),
        bootstrap=bootstrap_interval_of_mean(differences, generator(0, "table", column)),
        higher=int((differences > 0).sum()),
        settings=settings,
    )


def _sd(values: Float[np.ndarray, " sample"]) -> float | None:
    return float(values.std(ddof=1)) if len(values) > 1 else None


def _same(cell: object, value: object) -> bool:
    return cell == value or str(cell) == str(value)


def _holds(name: str, cell: Cell, compare: Callable[[Any, Any], bool], text: str) -> bool:
    """Whether a cell and a text compare, as numbers where both are; yes and no are also called true and false."""
    if cell is None:
        return False
    if isinstance(cell, bool):
        return compare(shown(cell), {"true": "yes", "false": "no"}.get(text.lower(), text.lower()))
    if isinstance(cell, int | float):
        with contextlib.suppress(ValueError):
            return compare(cell, float(text))
        if compare not in (operator.eq, operator.ne):
            raise InputError(f"what {name!r} is compared with", "be a number", got=f"{text!r}")
    return compare(str(cell).lower(), text.lower())


def _sql_cell(value: object) -> Cell:
    """What a query gives, as a cell: decimal numbers are real ones, other types texts."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return float(value) if isinstance(value, decimal.Decimal) else str(value)


def shown(cell: object) -> str:
    """A cell for people.

    >>> shown(0.123456), shown(None), shown(True), shown(3)
    ('0.1235', '', 'yes', '3')
    """
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    return f"{cell:.4g}" if isinstance(cell, float) else str(cell)


# Rows.


def study_table(ledger: Ledger, *, details: bool = False) -> Table:
    """One row for each run of a study within its budget, or for each of its models where checkpoints are measured.

    :param ledger: that of the study.
    :param details: (default False) whether columns by type of latent, by factor and by number of samples are there too.
    """
    study, rows, discarded = ledger.study, [], []
    extra = _over_cells(ledger)
    once = [
        (task, task.analysis.columns(task.search))
        for task in ledger.once_tasks()
        if task.analysis.is_kept(task.search)
    ]
    settings = tuple(ledger.runs[0].varies)
    for entry in ledger.entries():
        if entry.kind == "diverged" and study.diverged == "discard":
            discarded.append(entry.run.name)
            continue
        common = settings_of(entry.run)
        for task, cells in once:
            if (
                task.data == entry.run.point.data
                and task.settings.items() <= entry.run.point.settings.items()
            ):
                common |= cells
        for step, cells in _models_of(ledger, entry, details):
            rows.append(
                {
                    "run": entry.run.name,
                    "state": entry.state,
                    **({"step": step} if study.checkpoints else {}),
                    **common,
                    **cells,
                    **(extra.get(entry.run.hash, {}) if step == entry.step else {}),
                    "message": entry.message or None,
                    "folder": str(entry.run.folder),
                }
            )
    notes = []
    if discarded:
        notes.append(
            f"Left out, since their training diverged (diverged is set to discard): {', '.join(discarded)}."
        )
    return Table(rows, settings, notes)


def _models_of(ledger: Ledger, entry: Entry, details: bool) -> Iterable[tuple[int, Columns]]:
    """The models of a run that have a row, by step; a run that is not done has one with what there is."""
    if entry.state != "done":
        with contextlib.suppress(PolariscopeError, OSError):
            opened = Run(entry.run.folder, computes=False)
            return [(entry.step, {**log_cells(opened.log(), None), **time_cells(opened)})]
        return [(entry.step, {})]
    opened = Run(entry.run.folder, computes=False)
    log = opened.log()
    found = []
    for step in ledger.steps_of(opened):
        cells: Columns = {}
        for analysis in ledger.study.analyses("each").values():
            measured = analysis.measure(opened, step)
            cells |= {**analysis.columns(measured), **(analysis.details(measured) if details else {})}
        # Where the run was diagnosed, counts are of the diagnosis, not of the few samples of the log.
        logged = log_cells(log, step) if step else log_cells(opened.log_until(), None)
        found.append((step or entry.step, {**logged, **cells, **time_cells(opened)}))
    return found


def _over_cells(ledger: Ledger) -> dict[str, Columns]:
    """What was measured over several runs, by the hash of each."""
    cells: dict[str, Columns] = {}
    for task in ledger.over_tasks():
        result = ledger.over_result(task)
        for run, row in zip(task.runs, (result or {}).get("rows", ()), strict=False):
            cells[run.hash] = {**cells.get(run.hash, {}), **row}
    return cells


def log_cells(log: Sequence[Mapping[str, object]], step: int | None) -> Columns:
    """The last line of a log, or that of a step: loss, terms, validation, and counts of types.

    :param log: its lines.
    :param step: (default None: the last) a step.
    """
    lines: list[Any] = [line for line in log if step is None or line["step"] <= step]  # type: ignore[operator]
    if not lines:
        return {}
    validated = [line["validation"] for line in lines if "validation" in line]
    return line_cells({**lines[-1], "validation": validated[-1] if validated else {}})


def line_cells(line: Mapping[str, Any]) -> Columns:
    """One line of a log: loss, terms, validation where it has one, and counts of types.

    :param line: of the log.
    """
    return {
        "loss": line["loss"],
        **{f"loss.{name}": value for name, value in line["terms"].items()},
        **{f"validation.{name}": value for name, value in line.get("validation", {}).items()},
        **{kind: line[kind] for kind in ("active", "mixed", "passive")},
    }


def settings_of(run: StudyRun) -> Columns:
    """What varies in a study, with the values of one run.

    :param run: one of the study.
    """
    return {name: _cell(value) for name, value in run.varies.items()}


def time_cells(run: Run) -> Columns:
    """How long a run took in all, and its training.

    :param run: one of a study; others keep no times.
    """
    seconds = run.folder.seconds()
    if not seconds:
        return {}
    return {"seconds": round(sum(seconds.values()), 3), "seconds.train": seconds.get("train")}


def runs_table(folders: Sequence[str | Path], step: int | None = None) -> Table:
    """Any runs side by side: what varies between them, their loss, and the newest of what was measured of each.

    :param folders: those of runs.
    :param step: (default None: the finished models) the checkpoints of this step.
    """
    opened = [Run(folder, computes=False) for folder in folders]
    if not opened:
        raise InputError("folders", "name at least one run")
    axes = [_axes(run) for run in opened]
    names = dict.fromkeys(name for axis in axes for name in axis if name != "seed")
    varying = [name for name in names if len({repr(axis.get(name)) for axis in axes}) > 1]
    settings = (*varying, "seed")
    rows = []
    for folder, run, axis in zip(folders, opened, axes, strict=True):
        state = "done" if run.is_finished else "unfinished" if run.folder.diverged_at is None else "diverged"
        cells: Columns = {
            "run": str(folder),
            "state": state,
            **{name: _cell(axis.get(name)) for name in settings},
        }
        cells |= log_cells(run.log_until(step), None)
        if run.is_finished or step is not None:
            cells |= _newest(run, step)
        else:
            cells["training"] = run.training().code
        rows.append({**cells, **time_cells(run)})
    return Table(rows, settings)


def _axes(run: Run) -> dict[str, object]:
    """What a run was trained with, flat."""
    record = run.settings
    data = {
        f"data.{key}": in_words(value) if key == "variants" else value
        for key, value in record["data"].items()
        if key not in ("name", "fingerprint", "root_fingerprint", "shape")
    }
    options = {key: value for key, value in record["objective"].items() if key != "name"}
    model = {key: value for key, value in record["model"].items() if not isinstance(value, dict)}
    parts = {part: value["name"] for part, value in record["model"].items() if isinstance(value, dict)}
    own = {
        f"{part}.{key}": option
        for part, value in record["model"].items()
        if isinstance(value, dict)
        for key, option in value.items()
        if key != "name"
    }
    names = {"data": record["data"]["name"], "objective": record["objective"]["name"]}
    training = completed(TrainSettings, record["training"])
    return {**names, **data, **options, **parts, **own, **model, **training}


def _newest(run: Run, step: int | None) -> Columns:
    """What was measured last of each kind."""
    cells: Columns = {}
    for name in analyses:
        analysis = analyses[name]
        if analyses.traits(name)["scope"] != "each" or analysis.record is None:
            continue
        for settings in analysis.kept_apart:
            artefact = run.newest(analysis.kind, step, **settings)
            content = None if artefact is None else run.read(artefact)
            if artefact is not None and content is not None:
                measured = analysis.record.from_dict(content)
                cells |= analysis.of_settings(artefact.key.settings).columns(measured)
    return cells


def _cell(value: object) -> Cell:
    """A setting as one cell of a table."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    from polariscope.studies.design import word

    return word(value)
