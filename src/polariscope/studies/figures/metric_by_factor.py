"""A metric for each factor, with datasets side by side."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from polariscope.core.errors import InputError
from polariscope.core.figures import PAGE, number_in
from polariscope.studies.columns import bounds_of, column_of, remedy_for
from polariscope.studies.figures import AbstractFigure, Row, Rows, figure
from polariscope.studies.figures.support.drawing import (
    add_legend,
    colours_of,
    draw_interval,
    names_in,
    panels,
)
from polariscope.studies.figures.support.grouping import across_of, panels_of, series_of, summary

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from polariscope.studies.table import Table

MARK = ".by_factor."
LETTERS = 28
"""Total length of the factor names over all panels above which they are written at an angle."""


@figure("metric-by-factor", answers=("zietlow2022 Fig. 4.9",))
@dataclasses.dataclass(frozen=True)
class MetricByFactor(AbstractFigure):
    """Values of a metric for each factor, with datasets side by side.

    Bars are means over seeds with 95 % intervals by Student's t. Corresponds to zietlow2022 Fig. 4.9, for MIG.
    """

    metric: str = ""
    """Metric with a value for each factor; by default the first one of the table."""
    across: str = ""
    """Setting whose values are shown side by side; by default the data, if they vary."""

    def numbers(self, table: Table) -> Rows:
        models = table.finished
        by_factor = [name for name in table.measured if MARK in name]
        if not by_factor:
            raise InputError(
                problem="the table contains no metric with a value for each factor",
                remedy=remedy_for(self.metric or "mig"),
            )
        metric = self.metric or next((name.partition(MARK)[0] for name in by_factor), "")
        columns = [name for name in by_factor if name.startswith(f"{metric}{MARK}")]
        if not columns:
            known = sorted({name.partition(MARK)[0] for name in by_factor})
            raise InputError(
                problem=f"the table contains {', '.join(known)} by factor, but not {metric}",
                remedy="choose one of these",
            )
        across = across_of(table, self.across)
        panels, series = panels_of(models, across), series_of(models, (across,))
        figure_rows: list[Row] = []
        for (panel, name), members in models.numbers[columns].groupby([panels, series], sort=False):
            for column in columns:
                if len(values := members[column].dropna()):
                    marks: Row = {"metric": metric, "panel": panel, "series": name}
                    figure_rows.append(
                        {
                            **marks,
                            "factor": column.partition(MARK)[2],
                            **summary(values, bounds_of(metric, models.numbers)),
                        }
                    )
        return tuple(figure_rows)

    def draw(self, rows: Rows) -> Figure:
        titles, names = (names_in(rows, column) for column in ("panel", "series"))
        figure, all_axes = panels(titles, share_y=True)
        if len(names) * len(names_in(rows, "factor")) > 12:
            figure.set_figwidth(PAGE)
        colours, width = colours_of(names), 0.8 / len(names)
        for axes, title in zip(all_axes, titles, strict=True):
            factors = names_in(tuple(row for row in rows if row["panel"] == title), "factor")
            for index, name in enumerate(names):
                line_rows = [row for row in rows if (row["panel"], row["series"]) == (title, name)]
                x = [factors.index(str(row["factor"])) - 0.4 + width * (index + 0.5) for row in line_rows]
                heights = [number_in(row, "mean") for row in line_rows]
                axes.bar(x, heights, 0.9 * width, color=colours[name], label=name)
                for at, row in zip(x, line_rows, strict=True):
                    draw_interval(axes, row, at, "black")
            axes.set_xticks(range(len(factors)), factors)
            if sum(map(len, factors)) > LETTERS / len(titles):
                axes.set_xticks(range(len(factors)), factors, rotation=30, ha="right", rotation_mode="anchor")
            axes.grid(visible=False, axis="x")
        all_axes[0].set_ylabel(f"{column_of(str(rows[0]['metric'])).label} of each factor")
        add_legend(figure, all_axes)
        return figure
