"""Figures of a study: each computes numbers from the study's table and draws them.

A member is a frozen dataclass whose fields are its options. ``numbers`` computes rows from a table; if the table lacks
a column, the error message shows what to add to the study. ``draw`` draws these rows and nothing else, so the CSV file
contains everything in the picture.
"""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from polariscope.core.errors import InputError
from polariscope.core.figure_style import PRINT
from polariscope.core.figures import fix_layout, save_figure, svg_text
from polariscope.core.frames import csv_of, frame_of
from polariscope.core.registry import open_family
from polariscope.studies.analyses import Cell

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

    from polariscope.studies.ledger import Ledger
    from polariscope.studies.table import Table

Row: TypeAlias = "dict[str, Cell]"
"""Cells by column name."""
Rows: TypeAlias = "tuple[Row, ...]"
"""The numbers behind a figure."""
DOTS = 200
"""Dots per inch of a PNG file."""


@dataclasses.dataclass(frozen=True)
class AbstractFigure(abc.ABC):
    """A figure of a study."""

    def table(self, ledger: Ledger) -> Table:
        """Return the table that the figure is made from: by default one row for each run, with all details.

        :param ledger: ledger of the study.
        """
        from polariscope.studies.table_rows import study_table

        return study_table(ledger, details=True)

    def check(self, ledger: Ledger, runs: Table) -> None:
        """Refuse a study that lacks results for the figure, by a cheap check; the message shows what to add.

        :param ledger: ledger of the study.
        :param runs: table of its runs, with all details.
        """
        self.numbers(runs)

    @abc.abstractmethod
    def numbers(self, table: Table) -> Rows:
        """Return the numbers to draw.

        :param table: the result of :meth:`table`, or some of its rows.
        """

    def notes(self, table: Table) -> tuple[str, ...]:
        """Return notes for readers of the figure: by default the runs that are left out.

        :param table: the argument of :meth:`numbers`.
        """
        names = ", ".join(table.not_done)
        return (*table.notes, *([f"Left out, since they are not done: {names}."] if names else []))

    @abc.abstractmethod
    def draw(self, rows: Rows) -> Figure:
        """Draw these rows.

        :param rows: the result of :meth:`numbers`.
        """


@dataclasses.dataclass(frozen=True)
class AbstractByStrength(AbstractFigure):
    """A figure whose horizontal axis is a setting of the study."""

    strength: str = ""
    """Setting that orders the runs, by default the numeric setting that varies; runs without it are left out."""


@dataclasses.dataclass(frozen=True, eq=False)
class Drawing:
    """A drawn figure and the numbers behind it."""

    name: str
    figure: Figure
    rows: Rows
    notes: tuple[str, ...] = ()
    """Runs that were left out, with the reason."""

    def to_csv(self) -> str:
        """Return the numbers as comma-separated values; a cell that a row lacks is empty."""
        return csv_of(self.to_frame())

    def to_frame(self) -> DataFrame:
        """Return the numbers as a pandas frame."""
        return frame_of(self.rows)

    def to_dict(self) -> dict[str, object]:
        """Return the name, the numbers and the notes as plain values."""
        return {"name": self.name, "rows": list(self.rows), "notes": list(self.notes)}

    def save(self, file: str | Path) -> Path:
        """Write the picture atomically; the same picture always has the same bytes.

        :param file: path of the file; it ends in .svg, .pdf or .png.
        """
        return save_figure(self.figure, file, PRINT, dpi=DOTS)

    def _repr_html_(self) -> str:
        from matplotlib import rc_context

        with rc_context(PRINT):
            return svg_text(self.figure)


def make_figure(figure: AbstractFigure, table: Table, where: Sequence[str] = ()) -> Drawing:
    """Draw a figure of a table.

    :param figure: a member of the family, with its options.
    :param table: the result of its ``table`` method.
    :param where: (default: all rows) conditions that rows must meet, ``beta=4``.
    """
    from matplotlib import rc_context

    selection = table.where(*where)
    if where and not len(selection):
        raise InputError(
            problem=f"no row of the table has {' and '.join(where)}", remedy="remove a condition"
        )
    rows = figure.numbers(selection)
    with rc_context(PRINT):
        drawn = figure.draw(rows)
        fix_layout(drawn)
    return Drawing(family.name_of(figure), drawn, rows, figure.notes(selection))


figure = family = open_family(__name__, "figure", traits=("answers",))
"""Each member declares the published figures that it corresponds to: citation key and number."""
