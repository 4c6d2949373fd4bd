"""Runs side by side: one row for each, what it was trained with and what was measured of it; and over seeds."""

from __future__ import annotations

import contextlib
import dataclasses
import decimal
import importlib
import math
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

import numpy as np
from jaxtyping import Float

from polariscope.core import files
from polariscope.core.errors import InputError, PolariscopeError, not_installed, unknown
from polariscope.core.seeds import generator
from polariscope.numerics.intervals import Interval, bootstrap_interval_of_mean, t_interval
from polariscope.runs.run import Run
from polariscope.studies.analyses import Cell, Columns
from polariscope.studies.analyses import family as analyses

if TYPE_CHECKING:
    from polariscope.studies.ledger import Entry, Ledger
    from polariscope.studies.runs import StudyRun

Format = Literal["csv", "md", "parquet"]
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
    """95 % interval of the mean by Student's t, for values that are about normal."""
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


@dataclasses.dataclass(frozen=True)
class Table:
    """Rows with the same columns; a cell that a row does not have is None."""

    rows: tuple[Columns, ...]
    settings: tuple[str, ...]
    """Columns that say what varies, the seed last."""
    notes: tuple[str, ...] = ()
    """What was left out, and by which rule."""
    header: tuple[str, ...] = ()
    """Columns of a table of which no row is left."""

    @property
    def columns(self) -> list[str]:
        """Names of the columns: the run, the settings, what was measured, and texts."""
        found = dict.fromkeys([name for row in self.rows for name in row] or self.header)
        first = [name for name in (*IDENTITY, *self.settings) if name in found]
        last = [name for name in WORDS if name in found]
        return [*first, *(name for name in found if name not in {*first, *last}), *last]

    @property
    def measured(self) -> list[str]:
        """Columns of numbers that were measured."""
        hidden = {*IDENTITY, *self.settings, *WORDS}
        return [
            name
            for name in self.columns
            if name not in hidden and any(numbers_in(row, name) for row in self.rows)
        ]

    @property
    def done(self) -> tuple[Columns, ...]:
        """Rows of runs that are done; the loss of others is that of a model that is not trained yet."""
        return tuple(row for row in self.rows if row.get("state", "done") == "done")

    def where(self, *conditions: str) -> Table:
        """The rows for which all conditions hold: ``mig>0.3``, ``beta=4``, ``state!=failed``.

        :param conditions: a column, one of = != < <= > >=, and a value. A row without the value holds none. Variants of
            the data may be called by their names (see :meth:`value_named`).
        """
        rows = self.rows
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
                rows = tuple(row for row in rows if compare(row.get(name) is None, True))
            else:
                rows = tuple(row for row in rows if _holds(name, row.get(name), compare, str(meant)))
        return dataclasses.replace(self, rows=rows, header=tuple(self.columns))

    def only(self, columns: Sequence[str]) -> Table:
        """The same with fewer columns; the run and the settings stay.

        :param columns: names of those that were measured.
        """
        for name in columns:
            self._check(name)
        kept = {*IDENTITY, *self.settings, *columns}
        rows = tuple({name: cell for name, cell in row.items() if name in kept} for row in self.rows)
        header = tuple(name for name in self.columns if name in kept)
        return dataclasses.replace(self, rows=rows, header=header)

    def aggregate(self, columns: Sequence[str] | None = None) -> list[Aggregate]:
        """Every column over the seeds of each setting; runs that are not done have no part in it.

        Those without a finite number are left out of the row of that column.

        :param columns: (default: all that were measured) names.
        """
        for name in columns or ():
            self._check(name)
        found = []
        for key, rows in self._groups("seed").items():
            for name in self.measured if columns is None else columns:
                pairs = sorted((number, str(row["run"])) for row in rows for number in numbers_in(row, name))
                if pairs:
                    found.append(_aggregate(dict(key), name, pairs))
        return found

    def over_seeds(self) -> Table:
        """What :meth:`aggregate` gives as a table: a row for each setting and column."""
        rows = []
        for one in self.aggregate():
            t, bootstrap = one.t or (None, None), one.bootstrap or (None, None)
            rows.append(
                {
                    **one.settings,
                    **{"column": one.column, "n": one.n, "mean": one.mean, "sd": one.sd},
                    **{
                        "t.low": t[0],
                        "t.high": t[1],
                        "bootstrap.low": bootstrap[0],
                        "bootstrap.high": bootstrap[1],
                    },
                    **{"lowest": one.lowest, "median": one.median, "highest": one.highest},
                }
            )
        settings = tuple(name for name in self.settings if name != "seed")
        return Table(cast("tuple[Columns, ...]", tuple(rows)), settings, (*self.notes, *self.left_out))

    @property
    def not_done(self) -> tuple[str, ...]:
        """Names of the runs that are not done."""
        done = {id(row) for row in self.done}
        return tuple(dict.fromkeys(str(row["run"]) for row in self.rows if id(row) not in done))

    @property
    def left_out(self) -> tuple[str, ...]:
        """A note where runs are not done, and so have no part in means and comparisons."""
        names = some_of(self.not_done)
        return (f"Not in the means, since they are not done: {names}.",) if names else ()

    def comparisons(self, setting: str, first: object, second: object) -> list[Comparison]:
        """What :meth:`compare` gives for every column that was measured and has pairs; none is refused.

        Where other settings vary too, the comparison over all pairs is followed by one for each of these settings, over
        its seeds alone; not where each has a single pair.

        :param setting: what changes.
        :param first: its value in the first of each pair, or its name (see :meth:`value_named`).
        :param second: in the second.
        """
        first, second = self._two_values(setting, first, second)
        parts = [
            (dict(key), dataclasses.replace(self, rows=tuple(rows)))
            for key, rows in self._groups(setting, "seed").items()
        ]
        found: list[Comparison] = []
        for column in self.measured:
            found += filter(None, [self._paired(column, setting, first, second)])
            own = [
                dataclasses.replace(made, settings=settings)
                for settings, part in parts
                if (made := part._paired(column, setting, first, second)) is not None
            ]
            if len(own) > 1 and any(one.n > 1 for one in own):
                found += own
        if not found:
            values = dict.fromkeys(shown(row.get(setting)) for row in self.rows)
            raise InputError(
                problem=f"no two runs that are done differ only in {setting!r}, {first} and {second}",
                remedy=f"its values are {', '.join(values)}",
            )
        return found

    def value_named(self, setting: str, name: object) -> object:
        """The value of a setting that is meant by a name: the value itself, or a short name of variants of the data.

        ``manipulated`` is the one of ``data.variants`` that has a variant of this name, whatever its options, and
        ``original`` stands for data without variants. A name that stands for several values is refused; what stands for
        none is given back.

        :param setting: one that varies.
        :param name: what was asked for.
        """
        if setting not in self.settings:
            raise unknown("setting that varies", setting, self.settings)
        values = list(dict.fromkeys(row.get(setting) for row in self.rows))
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
        _check_rows(self)
        one, other = self.value_named(setting, first), self.value_named(setting, second)
        if _same(one, other):
            raise InputError(
                problem=f"{first!r} and {second!r} are the same value of {setting!r}",
                remedy="compare two that differ",
            )
        return one, other

    def compare(self, column: str, setting: str, first: object, second: object) -> Comparison:
        """How much a column changes between two values of a setting, over pairs that are equal in all else.

        Runs that are not done have no part in it.

        :param column: what is compared.
        :param setting: what changes.
        :param first: its value in the first of each pair, or its name (see :meth:`value_named`).
        :param second: in the second.
        """
        self._check(column)
        first, second = self._two_values(setting, first, second)
        found = self._paired(column, setting, first, second)
        if found is None:
            raise InputError(
                problem=(
                    f"no two runs with a number in {column!r} differ only in {setting!r}, {first!r} and {second!r}"
                ),
                remedy="compare values that were run with the same seeds",
            )
        return found

    def _paired(self, column: str, setting: str, first: object, second: object) -> Comparison | None:
        """The comparison of two values, or None where there is no pair."""
        pairs = []
        for rows in self._groups(setting).values():
            values = [
                [
                    number
                    for row in rows
                    if _same(row.get(setting), value)
                    for number in numbers_in(row, column)
                ]
                for value in (first, second)
            ]
            if len(values[0]) == len(values[1]) == 1:
                pairs.append((values[0][0], values[1][0]))
        if not pairs:
            return None
        differences = np.array([second - first for first, second in pairs])
        return Comparison(
            column=column,
            setting=setting,
            first=first,
            second=second,
            n=len(pairs),
            difference=float(differences.mean()),
            sd=_sd(differences),
            t=t_interval(differences),
            bootstrap=bootstrap_interval_of_mean(differences, generator(0, "table", column)),
            higher=int((differences > 0).sum()),
        )

    def _groups(self, *without: str) -> dict[tuple[tuple[str, object], ...], list[Columns]]:
        """Rows of runs that are done, with the same settings but for some."""
        names = [name for name in (*self.settings, "step") if name not in without]
        groups: dict[tuple[tuple[str, object], ...], list[Columns]] = {}
        for row in self.done:
            key = tuple((name, row[name]) for name in names if row.get(name) is not None)
            groups.setdefault(key, []).append(row)
        return groups

    def _check(self, name: str) -> None:
        if not self.columns:
            raise InputError(problem=" ".join(["the table has no rows.", *self.notes]).removesuffix("."))
        if name not in self.columns:
            raise unknown("column", name, self.columns)

    # How it is written.

    def records(self) -> list[dict[str, Cell]]:
        """Rows as mappings with all columns."""
        columns = self.columns
        return [{name: row.get(name) for name in columns} for row in self.rows]

    def to_csv(self) -> str:
        """As comma-separated values; an empty cell is one that a row does not have."""
        return files.csv_text(self.columns, self.records())

    def to_markdown(self) -> str:
        """As a table of Markdown, numbers with four digits."""
        columns = self.columns
        lines = [columns, ["---"] * len(columns)]
        lines += [[shown(row.get(name)).replace("|", "\\|") for name in columns] for row in self.rows]
        text = "\n".join("| " + " | ".join(line) + " |" for line in lines)
        return "\n".join([text, *(f"\n{note}" for note in self.notes)]) + "\n"

    def write(self, file: Path, format: str | None = None) -> None:
        """Write it whole or not at all.

        :param file: where to.
        :param format: (default: by the end of the file's name) csv, md or parquet.
        """
        format = format or file.suffix.removeprefix(".")
        if format not in get_args(Format):
            raise unknown("format of a table", format, get_args(Format))
        if format == "parquet":
            self._write_parquet(file)
        else:
            files.write_text(file, self.to_csv() if format == "csv" else self.to_markdown())

    def _write_parquet(self, file: Path) -> None:
        try:
            pyarrow, parquet = (importlib.import_module(name) for name in ("pyarrow", "pyarrow.parquet"))
        except ImportError:
            raise InputError(
                problem="Parquet files need pyarrow, which is not installed",
                remedy="install it with pip install pyarrow, or write a CSV file",
            ) from None
        columns = {name: _uniform([row.get(name) for row in self.rows]) for name in self.columns}
        with files.atomic(file) as part:
            parquet.write_table(pyarrow.table(columns), part)

    def sql(self, query: str) -> Table:
        """What a query makes of it; duckdb answers. The table is called ``runs``.

        Names with a point are quoted, ``select beta, avg("loss.rate") from runs group by beta``. A query may name files
        too, those of other studies for example: ``select * from 'tables/*.parquet'``.

        :param query: in SQL.
        """
        try:
            duckdb = importlib.import_module("duckdb")
        except ImportError:
            raise not_installed("a query over a table", "duckdb", "duckdb") from None
        columns = {name: _uniform([row.get(name) for row in self.rows]) for name in self.columns}
        with duckdb.connect() as connection:
            if columns:
                types = ", ".join(f"{_quoted(name)} {_sql_type(column)}" for name, column in columns.items())
                connection.execute(f"create table runs ({types})")
            if self.rows:
                places = ", ".join("?" for _ in columns)
                cells = [list(row) for row in zip(*columns.values(), strict=True)]
                connection.executemany(f"insert into runs values ({places})", cells)
            try:
                answer = connection.execute(query)
                names = [column[0] for column in answer.description or ()]
                found = answer.fetchall()
            except duckdb.Error as error:
                raise InputError(problem=f"the query cannot be answered: {str(error).strip()}") from None
        rows = tuple(dict(zip(names, map(_sql_cell, row), strict=True)) for row in found)
        return Table(rows, (), self.notes)

    def to_pandas(self) -> Any:
        """As a frame of pandas, or where that is not installed the records."""
        try:
            pandas = importlib.import_module("pandas")
        except ImportError:
            return self.records()
        return pandas.DataFrame(
            {name: _uniform([row.get(name) for row in self.rows]) for name in self.columns}
        )


def _aggregate(settings: dict[str, object], column: str, pairs: list[tuple[float, str]]) -> Aggregate:
    values = np.array([value for value, _ in pairs])
    return Aggregate(
        settings=settings,
        column=column,
        n=len(values),
        mean=float(values.mean()),
        sd=_sd(values),
        t=t_interval(values),
        bootstrap=bootstrap_interval_of_mean(values, generator(0, "table", column)),
        lowest=pairs[0][1],
        median=pairs[(len(pairs) - 1) // 2][1],
        highest=pairs[-1][1],
    )


def _sd(values: Float[np.ndarray, " sample"]) -> float | None:
    return float(values.std(ddof=1)) if len(values) > 1 else None


def numbers_in(row: Columns, name: str) -> list[float]:
    """The finite number in one column of a row, or none.

    :param row: cells by column.
    :param name: the column.
    """
    cell = row.get(name)
    is_number = isinstance(cell, int | float) and not isinstance(cell, bool) and math.isfinite(cell)
    return [float(cell)] if is_number else []  # type: ignore[arg-type]


def _check_rows(table: Table) -> None:
    """Refuse a table of which conditions have left nothing."""
    if not table.rows and table.header:
        raise InputError(
            problem="no run of the table meets the conditions", remedy="leave one out, or give another value"
        )


def finished(table: Table) -> list[Columns]:
    """The finished model of each run that is done; a table without any is refused.

    :param table: of a study.
    """
    last: dict[Cell, Columns] = {}
    for row in table.done:
        step, known = row.get("step") or 0, last.get(row["run"], {}).get("step") or 0
        if row["run"] not in last or step >= known:  # type: ignore[operator]
            last[row["run"]] = row
    _check_rows(table)
    if not last:
        raise InputError(problem="no run of the table is done", remedy="run the study first")
    return list(last.values())


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


def _uniform(cells: list[Cell]) -> list[Cell]:
    """A column of one type: texts where it mixes texts and numbers, real numbers where it mixes those and integers."""
    kinds = {type(cell) for cell in cells if cell is not None}
    if len(kinds) < 2:
        return cells
    if kinds <= {int, float}:
        return [None if cell is None else float(cell) for cell in cells]
    return [None if cell is None else str(cell) for cell in cells]


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _sql_type(cells: list[Cell]) -> str:
    """The type of a column of one type; a text where it is empty."""
    kind = next((type(cell) for cell in cells if cell is not None), str)
    return {bool: "BOOLEAN", int: "BIGINT", float: "DOUBLE"}.get(kind, "VARCHAR")


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
                    **(extra.get(entry.run.hash, {}) if step == entry.run.steps else {}),
                    "message": entry.message or None,
                    "folder": str(entry.run.folder),
                }
            )
    notes = []
    if discarded:
        notes.append(
            f"Left out, since their training diverged (diverged is set to discard): {', '.join(discarded)}."
        )
    return Table(tuple(rows), settings, tuple(notes))


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
        found.append((step or opened.n_steps, {**log_cells(log, step), **cells, **time_cells(opened)}))
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
        state = "done" if run.is_finished else "unfinished"
        cells: Columns = {
            "run": str(folder),
            "state": state,
            **{name: _cell(axis.get(name)) for name in settings},
        }
        cells |= log_cells(run.log(), step)
        if run.is_finished or step is not None:
            cells |= _newest(run, step)
        rows.append({**cells, **time_cells(run)})
    return Table(tuple(rows), settings)


def _axes(run: Run) -> dict[str, object]:
    """What a run was trained with, flat."""
    record = run.settings
    data = {
        f"data.{key}": value
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
    return {**names, **data, **options, **parts, **own, **model, **record["training"]}


def _newest(run: Run, step: int | None) -> Columns:
    """What was measured last of each kind."""
    cells: Columns = {}
    for name in analyses:
        analysis = analyses[name]
        if analyses.traits(name)["scope"] != "each" or analysis.record is None:
            continue
        artefact = run.newest(analysis.kind, step)
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
