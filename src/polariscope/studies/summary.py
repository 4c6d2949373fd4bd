"""A table for a paper: settings in rows, metrics in columns, mean ± deviation over seeds, the best in bold."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from polariscope.core.errors import InputError, unknown
from polariscope.core.frames import frame_of
from polariscope.core.options import show
from polariscope.core.records import to_plain
from polariscope.studies.analyses import Cell
from polariscope.studies.columns import column_of, metric_columns, metric_of
from polariscope.studies.table import Table, some_of

if TYPE_CHECKING:
    from pandas import DataFrame

SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    "−": "$-$",
    "±": r"$\pm$",
    "‖": r"$\|$",
    "<": "$<$",
    ">": "$>$",
}
GREEK = {
    "α": "alpha",
    "β": "beta",
    "γ": "gamma",
    "λ": "lambda",
    "σ": "sigma",
    "Σ": "Sigma",
    "Δ": "Delta",
    "μ": "mu",
}


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
class SummaryTable:
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

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return to_plain(self)

    def to_markdown(self) -> str:
        """As a table of Markdown, the best in bold, with the notes below."""
        heads = [*self.head, *map(_joined, self.columns)]
        lines = [heads, ["---"] * len(self.head) + ["---:"] * len(self.columns)]
        for label, row in zip(self.labels, self.cells, strict=True):
            cells = [self._text(cell, "±", "**", "**") for cell in row]
            lines.append([*label, *cells])
        text = "".join(
            "| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines
        )
        return text + "".join(f"\n{note}\n" for note in self.notes)

    def to_latex(self) -> str:
        """As a ``tabular`` of LaTeX with the lines of the package booktabs, and the notes as comments.

        What LaTeX reads as signs is escaped.
        """
        n_heads = len(self.head)
        lines = [r"\begin{tabular}{" + "l" * n_heads + "r" * len(self.columns) + "}", r"\toprule"]
        for level in range(len(self.columns[0])):
            last = level == len(self.columns[0]) - 1
            first = [latex(name) for name in self.head] if last else [""] * n_heads
            lines.append(" & ".join([*first, *self._heads(level, last)]) + r" \\")
        lines.append(r"\midrule")
        for label, row in zip(self.labels, self.cells, strict=True):
            cells = [self._text(cell, r"$\pm$", r"\textbf{", "}") for cell in row]
            lines.append(" & ".join([*map(latex, label), *cells]) + r" \\")
        comments = [f"% {note}" for note in self.notes]
        return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", *comments]) + "\n"

    def _heads(self, level: int, last: bool) -> list[str]:
        """One line of the head: equal neighbours above the last line are one cell over several columns."""
        heads: list[tuple[tuple[str, ...], int]] = []
        for column in self.columns:
            key = column[: level + 1]
            if not last and heads and heads[-1][0] == key:
                heads[-1] = (key, heads[-1][1] + 1)
            else:
                heads.append((key, 1))
        return [
            latex(key[-1]) if count == 1 else rf"\multicolumn{{{count}}}{{c}}{{{latex(key[-1])}}}"
            for key, count in heads
        ]

    def _text(self, cell: SummaryCell | None, between: str, start: str, end: str) -> str:
        if cell is None:
            return ""
        minus = "$-$" if start.startswith("\\") else "−"
        mean = f"{cell.mean:.{self.digits}f}".replace("-", minus)
        text = mean if cell.sd is None else f"{mean} {between} {cell.sd:.{self.digits}f}"
        text = f"{start}{text}{end}" if cell.is_best else text
        if not cell.competes:
            text += r"$^\dagger$" if start.startswith("\\") else "†"
        chosen = latex(cell.chosen) if start.startswith("\\") else cell.chosen
        return f"{text} ({chosen})" if cell.chosen else text


def _joined(column: tuple[str, ...]) -> str:
    return ", ".join(filter(None, column))


def latex(text: str) -> str:
    r"""A text with everything escaped that LaTeX would read as a sign.

    >>> print(latex("n_latents = 10 & 5 %"))
    n\_latents = 10 \& 5 \%
    >>> print(latex("β-VAE"))
    $\beta$-VAE

    :param text: any.
    """
    signs = {**SPECIAL, **{letter: f"$\\{name}$" for letter, name in GREEK.items()}}
    return re.sub("|".join(map(re.escape, signs)), lambda match: signs[match[0]], text)


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
    has no best. Runs that are not done are left out, and named in the notes. A mean over runs of which one has fewer
    latents in use than factors vary is marked † and is never the best.

    :param table: of a study.
    :param columns: (default: all metrics) what is shown.
    :param across: (default none) settings whose values are beside each other instead of below.
    :param best_over: (default "") setting of which only the best value is shown, that with the best mean.
    :param metrics_in_rows: (default False) whether metrics are below each other.
    :param digits: (default 3) digits after the point.
    """
    varying = [name for name in table.settings if name != "seed"]
    for name in (*across, *([best_over] if best_over else [])):
        if name not in varying:
            raise unknown("setting that varies", name, varying)
    shown_columns = list(columns) or metric_columns(table)
    if not shown_columns:
        raise InputError(problem="the table has no metric", remedy="name the columns to show")
    down = [name for name in (*varying, "step") if name not in across and name != best_over]
    weak = table.done.competing(False)
    without = [(one.settings, one.column) for one in weak.aggregate(shown_columns)] if len(weak) else []
    cells: dict[tuple[tuple[str, ...], tuple[str, ...], str], SummaryCell] = {}
    for one in table.aggregate(shown_columns):
        beside = tuple(_head(name, one.settings.get(name)) for name in across)
        key = (_words(one.settings, down), beside, one.column)
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
        names = some_of(list(dict.fromkeys(weak.frame["run"].astype("str"))))
        notes += (f"† Not in bold, since runs have fewer latents in use than factors vary: {names}.",)
    rows, sides = list(dict.fromkeys(key[0] for key in cells)), list(dict.fromkeys(key[1] for key in cells))
    used = [place for place, _ in enumerate(down) if any(row[place] for row in rows)]
    head = tuple(down[place] for place in used)
    kept = [tuple(row[place] for place in used) for row in rows]
    if metrics_in_rows:
        grid = [[cells.get((row, side, name)) for side in sides] for row in rows for name in shown_columns]
        marked = [
            _marked(line, name) for line, (_, name) in zip(grid, _pairs(rows, shown_columns), strict=True)
        ]
        labels = [(*row, column_of(name).label) for row in kept for name in shown_columns]
        columns_of = [side or ("mean ± SD",) for side in sides]
        return SummaryTable(
            (*head, "metric"), tuple(labels), tuple(columns_of), tuple(map(tuple, marked)), digits, notes
        )
    places = [(side, name) for side in sides for name in shown_columns]
    by_column = [_marked([cells.get((row, *place)) for row in rows], place[1]) for place in places]
    heads = tuple((*side, column_of(name).label) for side, name in places)
    return SummaryTable(head, tuple(kept), heads, tuple(zip(*by_column, strict=True)), digits, notes)


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


def _marked(cells: Sequence[SummaryCell | None], column: str) -> list[SummaryCell | None]:
    """The same with the best marked, all of them where several are equally good; a single one is none."""
    present = [cell for cell in cells if cell is not None]
    if column_of(column).higher_is_better is None or len(present) < 2:
        return list(cells)
    best = max((_goodness(column, cell) for cell in present if cell.competes), default=None)
    return [
        cell
        if cell is None
        else dataclasses.replace(cell, is_best=cell.competes and _goodness(column, cell) == best)
        for cell in cells
    ]
