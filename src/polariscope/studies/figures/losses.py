"""Loss curves of many runs."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from polariscope.core.errors import InputError, unknown
from polariscope.core.figures import number_in
from polariscope.studies.columns import column_of
from polariscope.studies.figures import AbstractFigure, Row, Rows, figure
from polariscope.studies.figures.support.drawing import add_legend, colours_of, names_in, panels
from polariscope.studies.figures.support.grouping import ALL, across_of, panels_of, series_of, summary

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from polariscope.studies.ledger import Ledger
    from polariscope.studies.table import Table

MEAN = "mean"


@figure("losses", answers=("bonheme2023 Fig. C.5", "mushom2020 Fig. 5.7"))
@dataclasses.dataclass(frozen=True)
class LossesFigure(AbstractFigure):
    """The loss, or one of its terms, over training: a thin line for each run, a thick line for the mean over seeds.

    The mean is over all seeds of a setting that were logged at the same step. Corresponds to bonheme2023 Fig. C.5, and
    mushom2020 Fig. 5.7 if drawn for one term after another.
    """

    term: str = "loss"
    """Column of the log: loss, loss.reconstruction, loss.rate, validation.loss …"""
    across: str = ""
    """Setting whose values are shown side by side; by default the data, if they vary."""
    logarithmic: bool = False
    """If True, the vertical axis is logarithmic."""

    def table(self, ledger: Ledger) -> Table:
        from polariscope.studies.details import log_table

        return log_table(ledger)

    def check(self, ledger: Ledger, runs: Table) -> None:
        if not any(entry.step for entry in ledger.entries()):
            raise InputError(problem="no run of the study has started", remedy="run it first")

    def numbers(self, table: Table) -> Rows:
        if not len(table):
            raise InputError(problem="no run of the study has a log yet", remedy="run it first")
        if self.term not in table.measured:
            raise unknown("column of the logs", self.term, table.measured)
        across = across_of(table, self.across)
        lines = table.frame[["run", "step"]].assign(value=table.numbers[self.term]).dropna(subset="value")
        labels = [panels_of(table, across)[lines.index], series_of(table, (across,))[lines.index]]
        figure_rows: list[Row] = []
        for (panel, name), members in lines.groupby(labels, sort=False):
            marks: Row = {"term": self.term, "panel": panel, "series": name}
            for run, step, value in members.itertuples(index=False):
                figure_rows.append({**marks, "run": run, "step": step, "n": 1, "mean": value})
            n_runs = members["run"].nunique()
            for step, values in members.groupby("step", sort=False)["value"]:
                # A mean over some of the runs would jump at the last step of the others.
                if len(values) == n_runs:
                    figure_rows.append({**marks, "run": MEAN, "step": step, **summary(values)})
        return tuple(figure_rows)

    def notes(self, table: Table) -> tuple[str, ...]:
        return table.notes  # runs that are not done have curves too

    def draw(self, rows: Rows) -> Figure:
        titles, names = names_in(rows, "panel"), names_in(rows, "series")
        figure, all_axes = panels(titles, share_y=True)
        colours = colours_of(names)
        for axes, title in zip(all_axes, titles, strict=True):
            here = tuple(row for row in rows if row["panel"] == title)
            for name in names_in(here, "series"):
                line_rows = tuple(row for row in here if row["series"] == name)
                for run in names_in(line_rows, "run"):
                    curve = [row for row in line_rows if row["run"] == run]
                    axes.plot(
                        [number_in(row, "step") for row in curve],
                        [number_in(row, "mean") for row in curve],
                        color=colours[name],
                        lw=1.6 if run == MEAN else 0.5,
                        alpha=1 if run == MEAN else 0.5,
                        label=name if run == MEAN and name != ALL else "_",
                    )
            axes.set_xlabel("step")
            if self.logarithmic:
                axes.set_yscale("log")
        all_axes[0].set_ylabel(column_of(str(rows[0]["term"])).label)
        add_legend(figure, all_axes)
        return figure
