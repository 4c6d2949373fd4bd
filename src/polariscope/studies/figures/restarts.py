"""Histogram of a metric over restarts, with datasets side by side."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np

from polariscope.core.figures import number_in
from polariscope.numerics.information import Bins
from polariscope.studies.columns import column_of, need_metric
from polariscope.studies.figures import AbstractFigure, Row, Rows, figure
from polariscope.studies.figures.support.drawing import add_legend, colours_of, names_in, panels
from polariscope.studies.figures.support.grouping import across_of, panels_of, series_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from polariscope.studies.table import Table


@figure("restarts", answers=("zietlow2022 Fig. 4.8",))
@dataclasses.dataclass(frozen=True)
class RestartsFigure(AbstractFigure):
    """Histogram of a metric over restarts, with datasets side by side.

    Bins are equally wide, from the smallest to the largest value of all panels; the last bin includes its upper end.
    Two modes mean that some restarts succeed and others do not, which a mean hides. Corresponds to zietlow2022 Fig.
    4.8.
    """

    metric: str = ""
    """Column of the values; by default the first metric."""
    n_bins: Bins = 10
    """Number of bins."""
    across: str = ""
    """Setting whose values are shown side by side; by default the data, if they vary."""

    def numbers(self, table: Table) -> Rows:
        metric = need_metric(table, self.metric)
        across, models = across_of(table, self.across), table.finished
        every = models.numbers[metric].dropna()
        low, high = every.min(), every.max()
        # If all values are equal, bins of any width contain them.
        edges = np.linspace(low, high if high > low else low + 1, self.n_bins + 1)
        figure_rows: list[Row] = []
        labels = [panels_of(models, across)[every.index], series_of(models, (across,))[every.index]]
        for (panel, name), values in every.groupby(labels, sort=False):
            counts, _ = np.histogram(values, edges)
            for index, count in enumerate(counts.tolist()):
                bounds: Row = {"from": float(edges[index]), "to": float(edges[index + 1])}
                figure_rows.append(
                    {"metric": metric, "panel": panel, "series": name, **bounds, "runs": count}
                )
        return tuple(figure_rows)

    def draw(self, rows: Rows) -> Figure:
        from matplotlib.ticker import MaxNLocator

        titles, names = names_in(rows, "panel"), names_in(rows, "series")
        figure, all_axes = panels(titles, share_y=True)
        colours = colours_of(names)
        for axes, title in zip(all_axes, titles, strict=True):
            below: dict[float, float] = {}
            for name in names:
                line_rows = [row for row in rows if (row["panel"], row["series"]) == (title, name)]
                left = [number_in(row, "from") for row in line_rows]
                widths = [number_in(row, "to") - number_in(row, "from") for row in line_rows]
                heights = [number_in(row, "runs") for row in line_rows]
                bottoms = [below.get(edge, 0.0) for edge in left]
                axes.bar(
                    left, heights, widths, bottoms, align="edge", color=colours[name], edgecolor="white", lw=0.6,
                    label=name,
                )  # fmt: skip
                # Bars of the next series are stacked on these.
                below |= {edge: bottom + up for edge, bottom, up in zip(left, bottoms, heights, strict=True)}
            axes.set_xlabel(column_of(str(rows[0]["metric"])).label)
            axes.yaxis.set_major_locator(MaxNLocator(integer=True))
        all_axes[0].set_ylabel("runs")
        add_legend(figure, all_axes)
        return figure
