"""A table for a paper: settings in rows, metrics in columns, mean ± standard deviation over seeds, the best in bold."""

from __future__ import annotations

import dataclasses
import itertools
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
    """Number of runs."""
    chosen: str = ""
    """Value of the setting that was selected for this cell, if only the best value is shown."""
    is_best: bool = False
    competes: bool = True
    """If True, every run behind the cell has at least as many latents in use as factors vary; otherwise the cell cannot
    be the best."""


@dataclasses.dataclass(frozen=True)
class SummaryTable(AbstractRecord):
    """Cells by row and column; None if no run has a number."""

    head: tuple[str, ...]
    """Headings of the first columns: names of settings, or "metric"."""
    labels: tuple[tuple[str, ...], ...]
    """The first columns of each row."""
    columns: tuple[tuple[str, ...], ...]
    """Headings of each further column, from top to bottom: values of settings, then the metric."""
    cells: tuple[tuple[SummaryCell | None, ...], ...]
    digits: int = 3
    """Digits after the decimal point."""
    notes: tuple[str, ...] = ()
    """Runs that were left out, with the reason."""

    def to_frame(self) -> DataFrame:
        """Return one row for each number: settings or metric, column, mean, standard deviation and number of runs."""
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
        """Return a Markdown table with the best in bold and the notes below."""
        return self.to_text_table().to_markdown()

    def to_latex(self) -> str:
        """Return a LaTeX ``tabular`` with the rules of the package booktabs, and the notes as comments."""
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
    """Return mean and standard deviation over seeds, one row for each setting.

    The default layout is that of mushom2020 Tab. 5.3. If ``best_over`` is the strength, each cell shows the best
    strength for its metric in brackets. If ``across`` is the data and there is one metric, the layout is
    that of zietlow2022 Tabs 4.2 to 4.5; if ``across`` is the objective, with ``metrics_in_rows``, it is that of Tab.
    3.3. The best mean of each column is bold, or of each row if metrics are in rows. A column for which neither higher
    nor lower is better has no best. If the data vary, the best mean of each dataset is bold; datasets are not ranked
    against each other, and a note explains this. Runs that are not done are left out and named in the notes. A mean is
    marked † and is never the best if one of its runs has fewer latents in use than factors vary.

    :param table: table of a study.
    :param columns: (default: all metrics) columns to show.
    :param across: (default none) settings whose values are arranged in columns instead of rows.
    :param best_over: (default "") setting of which only the value with the best mean is shown; it cannot be a setting
        of the data.
    :param metrics_in_rows: (default False) put metrics in rows.
    :param digits: (default 3) digits after the decimal point.
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
    collapsed = table.done.competing(False)
    without = (
        [(aggregate.settings, aggregate.column) for aggregate in collapsed.aggregate(shown_columns)]
        if len(collapsed)
        else []
    )
    cells: dict[tuple[tuple[str, ...], tuple[str, ...], str], SummaryCell] = {}
    datasets: dict[tuple[tuple[str, ...], tuple[str, ...]], tuple[str, ...]] = {}
    for aggregate in table.aggregate(shown_columns):
        beside = tuple(_head(name, aggregate.settings.get(name)) for name in across)
        key = (_words(aggregate.settings, down), beside, aggregate.column)
        datasets[key[:2]] = _words(aggregate.settings, table.data_settings)
        selected = show(aggregate.settings.get(best_over)) if best_over else ""
        competes = (
            metric_of(aggregate.column) is None or (aggregate.settings, aggregate.column) not in without
        )
        cell = SummaryCell(aggregate.mean, aggregate.sd, aggregate.n, selected, competes=competes)
        if key not in cells or (
            best_over and _rank(aggregate.column, cell) > _rank(aggregate.column, cells[key])
        ):
            cells[key] = cell
        elif not best_over:
            raise InputError(problem=f"two groups of runs have the settings {aggregate.settings}")
    if not cells:
        raise InputError(
            problem=f"no finished run has a value in {', '.join(shown_columns)}",
            remedy="run the study first",
        )
    notes = (*table.notes, *table.left_out)
    if any(not cell.competes for cell in cells.values()):
        names = listed(dict.fromkeys(collapsed.frame["run"].astype("str")), MAX_RUNS_NAMED)
        notes += (f"† Not in bold, since runs have fewer latents in use than factors vary: {names}.",)
    ranked = [name for name in shown_columns if column_of(name).higher_is_better is not None]
    if ranked and len(set(datasets.values())) > 1:
        names = ", ".join(table.data_settings)
        notes += (
            f"Bold is the best mean of each dataset ({names}); datasets are not ranked against each other.",
        )
    rows, sides = list(dict.fromkeys(key[0] for key in cells)), list(dict.fromkeys(key[1] for key in cells))
    # Settings without a value in any row get no column.
    used = [index for index, _ in enumerate(down) if any(row[index] for row in rows)]
    head = tuple(down[index] for index in used)
    rows_shown = [tuple(row[index] for index in used) for row in rows]
    if metrics_in_rows:
        grid = [[cells.get((row, side, name)) for side in sides] for row in rows for name in shown_columns]
        marked = [
            _marked(line, [datasets.get((row, side), ()) for side in sides], name)
            for line, (row, name) in zip(grid, itertools.product(rows, shown_columns), strict=True)
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


def _words(settings: dict[str, object], names: Sequence[str]) -> tuple[str, ...]:
    return tuple(_word(settings.get(name)) for name in names)


def _head(name: str, value: object) -> str:
    """Return the heading of a column: a string as it is, a number with the name of its setting."""
    return _word(value) if value is None or isinstance(value, str) else f"{name} = {_word(value)}"


def _word(value: object) -> str:
    cell: Cell = value  # type: ignore[assignment]
    return "" if cell is None else show(cell)


def _goodness(column: str, cell: SummaryCell) -> float:
    up = column_of(column).higher_is_better
    if up is None:
        raise InputError(
            problem=f"neither higher nor lower is better for {column!r}", remedy="choose other columns"
        )
    return cell.mean if up else -cell.mean


def _rank(column: str, cell: SummaryCell) -> tuple[bool, float]:
    """Return a sort key for the values of ``best_over``; cells that compete rank first."""
    return cell.competes, _goodness(column, cell)


def _marked(
    cells: Sequence[SummaryCell | None], datasets: Sequence[tuple[str, ...]], column: str
) -> list[SummaryCell | None]:
    """Return the cells with the best of each dataset marked.

    Several cells are marked if they are equally good; the only cell of a dataset is not marked.
    """
    if column_of(column).higher_is_better is None:
        return list(cells)
    scores: dict[tuple[str, ...], list[float]] = {}
    present = [(cell, data) for cell, data in zip(cells, datasets, strict=True) if cell is not None]
    for cell, data in present:
        # A cell that does not compete must not be the maximum.
        scores.setdefault(data, []).append(_goodness(column, cell) if cell.competes else -math.inf)
    return [
        cell
        if cell is None or len(scores[data]) < 2
        else dataclasses.replace(cell, is_best=cell.competes and _goodness(column, cell) == max(scores[data]))
        for cell, data in zip(cells, datasets, strict=True)
    ]
