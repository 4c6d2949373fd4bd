"""A table for a paper: settings in rows, metrics in columns, mean ± deviation over seeds, the best in bold."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from polariscope.core.errors import InputError, unknown
from polariscope.core.frames import frame_of
from polariscope.core.option_values import show
from polariscope.core.records import AbstractRecord
from polariscope.core.tables import Strong, TextCell, TextTable
from polariscope.core.text import listed
from polariscope.studies.analyses import Cell
from polariscope.studies.columns import column_of, metric_columns, metric_of
from polariscope.studies.table import MAX_RUNS_NAMED, Table

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclasses.dataclass(frozen=True)
class SummaryCell:
    """One number of a table with its spread."""

    mean: float
    sd: float | None
    """Standard deviation over seeds (n − 1); None for one run."""
    n: int
    """Runs."""
    chosen: str = ""
    """The value of the setting that was chosen for this cell, where the best one is shown."""
    is_best: bool = False
    competes: bool = True
    """Whether every run behind it has as many latents in use as factors vary; otherwise it cannot be the best."""


@dataclasses.dataclass(frozen=True)
class SummaryTable(AbstractRecord):
    """Cells by row and column; None where no run has a number."""

    head: tuple[str, ...]
    """What the first columns are: names of settings, or "metric"."""
    labels: tuple[tuple[str, ...], ...]
    """The first columns of each row."""
    columns: tuple[tuple[str, ...], ...]
    """Head of each further column, from top to bottom: values of settings across, then the metric."""
    cells: tuple[tuple[SummaryCell | None, ...], ...]
    digits: int = 3
    """Digits after the point."""
    notes: tuple[str, ...] = ()
    """Which runs were left out, and why."""

    def to_frame(self) -> DataFrame:
        """Return a row for each number: its settings or metric, its column, mean, deviation and number of runs."""
        return frame_of(
            {
                **dict(zip(self.head, label, strict=True)),
                "column": _joined(column),
                **dataclasses.asdict(cell),
            }
            for label, row in zip(self.labels, self.cells, strict=True)
            for column, cell in zip(self.columns, row, strict=True)
            if cell is not None
        )

    def to_markdown(self) -> str:
        """Return a table of Markdown, the best in bold, with the notes below."""
        return self.to_text_table().to_markdown()

    def to_latex(self) -> str:
        """Return a ``tabular`` of LaTeX with the lines of the package booktabs, and the notes as comments."""
        return self.to_text_table().to_latex()

    def to_text_table(self) -> TextTable:
        """Return the table with its cells as text, the best of each column emphasised."""
        rows = ([*label, *map(self._cell, row)] for label, row in zip(self.labels, self.cells, strict=True))
        return TextTable(*self.head, *self.columns, rows=rows, numbers=self.columns, notes=self.notes)

    def _cell(self, cell: SummaryCell | None) -> TextCell:
        if cell is None:
            return ""
        text = f"{cell.mean:.{self.digits}f}".replace("-", "−")
        text = text if cell.sd is None else f"{text} ± {cell.sd:.{self.digits}f}"
        rest = ("" if cell.competes else "†") + (f" ({cell.chosen})" if cell.chosen else "")
        return Strong(text, rest) if cell.is_best else f"{text}{rest}"


def _joined(column: tuple[str, ...]) -> str:
    return ", ".join(filter(None, column))


def summary_table(
    table: Table,
    columns: Sequence[str] = (),
    *,
    across: Sequence[str] = (),
    best_over: str = "",
    metrics_in_rows: bool = False,
    digits: int = 3,
) -> SummaryTable:
    """Mean and standard deviation over seeds, one row for each setting.

    As it is, this is the layout of mushom2020 Tab. 5.3. With the strength as ``best_over`` it is that of Tab. 5.6: each
    cell has the best strength for its metric, in brackets. With the data as ``across`` and one metric it is that of
    zietlow2022 Tabs 4.2 to 4.5; with objectives as ``across`` and ``metrics_in_rows`` that of Tab. 3.3. The best mean
    of each column is bold, or of each row where metrics are in rows; a column of which neither more nor less is better
    has no best. If the data vary, the best of each dataset is bold, and datasets are not ranked against each other; a
    note says so. Runs that are not done are left out, and named in the notes. A mean over runs of which one has fewer
    latents in use than factors vary is marked † and is never the best.

    :param table: of a study.
    :param columns: (default: all metrics) what is shown.
    :param across: (default none) settings whose values are beside each other instead of below.
    :param best_over: (default "") setting of which only the best value is shown, that with the best mean; not one of
        the data.
    :param metrics_in_rows: (default False) whether metrics are below each other.
    :param digits: (default 3) digits after the point.
    """
    varying = [name for name in table.settings if name != "seed"]
    for name in (*across, *([best_over] if best_over else [])):
        if name not in varying:
            raise unknown("setting that varies", name, varying)
    if best_over in table.data_settings:
        raise InputError(
            problem=f"{best_over!r} is a setting of the data, and means of different datasets are not ranked",
            remedy="choose the best value of another setting",
        )
    shown_columns = list(columns) or metric_columns(table)
    if not shown_columns:
        raise InputError(problem="the table has no metric", remedy="name the columns to show")
    down = [name for name in (*varying, "step") if name not in across and name != best_over]
    weak = table.done.competing(False)
    without = [(one.settings, one.column) for one in weak.aggregate(shown_columns)] if len(weak) else []
    cells: dict[tuple[tuple[str, ...], tuple[str, ...], str], SummaryCell] = {}
    datasets: dict[tuple[tuple[str, ...], tuple[str, ...]], tuple[str, ...]] = {}
    for one in table.aggregate(shown_columns):
        beside = tuple(_head(name, one.settings.get(name)) for name in across)
        key = (_words(one.settings, down), beside, one.column)
        datasets[key[:2]] = _words(one.settings, table.data_settings)
        chosen = show(one.settings.get(best_over)) if best_over else ""
        competes = metric_of(one.column) is None or (one.settings, one.column) not in without
        cell = SummaryCell(one.mean, one.sd, one.n, chosen, competes=competes)
        if key not in cells or (best_over and _rank(one.column, cell) > _rank(one.column, cells[key])):
            cells[key] = cell
        elif not best_over:
            raise InputError(problem=f"two groups of runs have the settings {one.settings}")
    if not cells:
        raise InputError(
            problem=f"no run that is done has a number in {', '.join(shown_columns)}",
            remedy="run the study first",
        )
    notes = (*table.notes, *table.left_out)
    if any(not cell.competes for cell in cells.values()):
        names = listed(dict.fromkeys(weak.frame["run"].astype("str")), MAX_RUNS_NAMED)
        notes += (f"† Not in bold, since runs have fewer latents in use than factors vary: {names}.",)
    ranked = [name for name in shown_columns if column_of(name).higher_is_better is not None]
    if ranked and len(set(datasets.values())) > 1:
        names = ", ".join(table.data_settings)
        notes += (
            f"Bold is the best mean of each dataset ({names}); datasets are not ranked against each other.",
        )
    rows, sides = list(dict.fromkeys(key[0] for key in cells)), list(dict.fromkeys(key[1] for key in cells))
    used = [index for index, _ in enumerate(down) if any(row[index] for row in rows)]
    head = tuple(down[index] for index in used)
    rows_shown = [tuple(row[index] for index in used) for row in rows]
    if metrics_in_rows:
        grid = [[cells.get((row, side, name)) for side in sides] for row in rows for name in shown_columns]
        marked = [
            _marked(line, [datasets.get((row, side), ()) for side in sides], name)
            for line, (row, name) in zip(grid, _pairs(rows, shown_columns), strict=True)
        ]
        labels = [(*row, column_of(name).label) for row in rows_shown for name in shown_columns]
        columns_of = [side or ("mean ± SD",) for side in sides]
        return SummaryTable(
            (*head, "metric"), tuple(labels), tuple(columns_of), tuple(map(tuple, marked)), digits, notes
        )
    places = [(side, name) for side in sides for name in shown_columns]
    by_column = [
        _marked(
            [cells.get((row, side, name)) for row in rows],
            [datasets.get((row, side), ()) for row in rows],
            name,
        )
        for side, name in places
    ]
    heads = tuple((*side, column_of(name).label) for side, name in places)
    return SummaryTable(head, tuple(rows_shown), heads, tuple(zip(*by_column, strict=True)), digits, notes)


def _pairs(rows: Sequence[tuple[str, ...]], names: Sequence[str]) -> list[tuple[tuple[str, ...], str]]:
    return [(row, name) for row in rows for name in names]


def _words(settings: dict[str, object], names: Sequence[str]) -> tuple[str, ...]:
    return tuple(_word(settings.get(name)) for name in names)


def _head(name: str, value: object) -> str:
    """The head of a column: a word as it is, a number with the setting it is one of."""
    return _word(value) if value is None or isinstance(value, str) else f"{name} = {_word(value)}"


def _word(value: object) -> str:
    cell: Cell = value  # type: ignore[assignment]
    return "" if cell is None else show(cell)


def _goodness(column: str, cell: SummaryCell) -> float:
    up = column_of(column).higher_is_better
    if up is None:
        raise InputError(
            problem=f"neither more nor less of {column!r} is better", remedy="choose other columns"
        )
    return cell.mean if up else -cell.mean


def _rank(column: str, cell: SummaryCell) -> tuple[bool, float]:
    """Return the order of values of a setting of which the best is shown: first those that compete."""
    return cell.competes, _goodness(column, cell)


def _marked(
    cells: Sequence[SummaryCell | None], datasets: Sequence[tuple[str, ...]], column: str
) -> list[SummaryCell | None]:
    """Return the cells with the best of each dataset marked.

    Several are marked if they are equally good; the only cell of a dataset is not marked.
    """
    if column_of(column).higher_is_better is None:
        return list(cells)
    scores: dict[tuple[str, ...], list[float]] = {}
    present = [(cell, data) for cell, data in zip(cells, datasets, strict=True) if cell is not None]
    for cell, data in present:
        scores.setdefault(data, []).append(_goodness(column, cell) if cell.competes else -math.inf)
    return [
        cell
        if cell is None or len(scores[data]) < 2
        else dataclasses.replace(cell, is_best=cell.competes and _goodness(column, cell) == max(scores[data]))
        for cell, data in zip(cells, datasets, strict=True)
    ]
