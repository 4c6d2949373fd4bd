"""The distribution of a metric over seeds, for each setting."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from polariscope.core.errors import Argument, InputError
from polariscope.core.figure_style import INK, QUIET
from polariscope.core.figures import PAGE, number_in
from polariscope.studies.columns import column_of, need_metric, remedy_for
from polariscope.studies.figures import AbstractFigure, Row, Rows, figure
from polariscope.studies.figures.support.drawing import (
    colours_of,
    names_in,
    panels,
    readable,
    setting_in_words,
    values_alone,
)
from polariscope.studies.figures.support.grouping import ALL, across_of, panels_of, series_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from polariscope.studies.table import Table

MIN_RUNS = 5
"""Minimum number of runs for a violin."""


@figure("strips", answers=("zietlow2022 Figs 4.4-4.7", "mushom2020 Fig. 5.14", "mushom2020 Fig. 5.15"))
@dataclasses.dataclass(frozen=True)
class StripsFigure(AbstractFigure):
    """A metric of every run, in a strip or a violin for each setting; over-pruned runs are marked or left out.

    A run is over-pruned if fewer latents than factors are in use (mean posterior variance below 0.8, zietlow2022
    §4.3.4), according to ``diagnose``. The bar is the mean of the runs that are shown, including over-pruned ones.
    Corresponds to zietlow2022 Figs 4.4 to 4.7 and mushom2020 Figs 5.14 and 5.15.
    """

    metric: str = ""
    """Column of the values; by default the first metric."""
    over_pruned: Literal["mark", "drop", "keep"] = "mark"
    """Treatment of over-pruned runs; keep shows them like all others, and does not require a diagnosis."""
    shape: Literal["strip", "violin"] = "strip"
    """Points only, or a violin behind them if there are five runs or more."""
    across: str = ""
    """Setting whose values are shown side by side; by default the data, if they vary."""

    def numbers(self, table: Table) -> Rows:
        metric = need_metric(table, self.metric)
        if self.over_pruned != "keep" and "over_pruned" not in table.columns:
            raise InputError(
                problem="the table does not show which runs are over-pruned",
                remedy=(remedy_for("over_pruned"), ", or keep all with ", Argument("over_pruned", "keep")),
            )
        across, models = across_of(table, self.across), table.finished
        labels = zip(
            panels_of(models, across), series_of(models, (across,)), models.numbers[metric], strict=True
        )
        figure_rows: list[Row] = []
        for row, (panel, name, value) in zip(models.rows, labels, strict=True):
            pruned = bool(row.get("over_pruned"))
            if not (np.isnan(value) or (pruned and self.over_pruned == "drop")):
                marks: Row = {"metric": metric, "panel": panel, "series": name}
                figure_rows.append({**marks, "run": row["run"], "value": value, "over_pruned": pruned})
        if not figure_rows:
            raise InputError(problem="every run is over-pruned", remedy="mark or keep over-pruned runs")
        return tuple(figure_rows)

    def draw(self, rows: Rows) -> Figure:
        titles, names = names_in(rows, "panel"), names_in(rows, "series")
        figure, all_axes = panels(titles, share_y=True)
        if len(names) * len(titles) > 6:
            figure.set_figwidth(PAGE)
        colours = colours_of(names)
        for axes, title in zip(all_axes, titles, strict=True):
            for position, name in enumerate(names):
                line_rows = [row for row in rows if (row["panel"], row["series"]) == (title, name)]
                self._draw_strip(axes, position, line_rows, colours[name])
            alone = values_alone(names)
            axes.set_xticks(range(len(names)), list(map(readable, names)) if alone is None else alone[1])
            if alone is not None:
                axes.set_xlabel(setting_in_words(({"setting": alone[0]},)), parse_math=False)
            elif max(map(len, names)) * len(names) > 40:
                axes.tick_params(axis="x", rotation=30)
            if names == [ALL]:
                axes.set_xticks([])
            axes.set_xlim(-0.6, len(names) - 0.4)
        all_axes[0].set_ylabel(column_of(str(rows[0]["metric"])).label)
        if any(row["over_pruned"] for row in rows) and self.over_pruned == "mark":
            all_axes[0].plot([], [], "x", color=QUIET, label="over-pruned")
            figure.legend(loc="outside lower center", labelcolor=INK)
        return figure

    def _draw_strip(self, axes: Axes, position: int, rows: list[Row], colour: str) -> None:
        values = np.array([number_in(row, "value") for row in rows])
        if not len(values):
            return
        # A density of equal values is not defined.
        if self.shape == "violin" and len(values) >= MIN_RUNS and np.ptp(values) > 0:
            parts: dict[str, Any] = dict(axes.violinplot(values, [position], widths=0.8, showextrema=False))
            for body in parts["bodies"]:
                body.set(facecolor=colour, alpha=0.25)
        # Spread evenly in the order of the runs, so points do not overlap and nothing is random.
        x = position + (np.linspace(-0.18, 0.18, len(values)) if len(values) > 1 else np.zeros(1))
        marked = np.array([bool(row["over_pruned"]) and self.over_pruned == "mark" for row in rows])
        axes.plot(x[~marked], values[~marked], "o", color=colour, alpha=0.8, mew=0)
        axes.plot(x[marked], values[marked], "x", color=colour)
        axes.plot([position - 0.28, position + 0.28], [values.mean()] * 2, color=INK, lw=1.2)
