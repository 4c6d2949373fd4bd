"""Distance to orthogonality against a disentanglement score, run by run."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np

from polariscope.core.figures import number_in
from polariscope.core.frames import rows_of
from polariscope.numerics.ranks import spearman
from polariscope.studies.columns import column_of, need
from polariscope.studies.figures import AbstractFigure, Row, Rows, figure
from polariscope.studies.figures.support.drawing import (
    add_legend,
    colours_of,
    markers_of,
    names_in,
    note,
    panels,
)
from polariscope.studies.figures.support.grouping import ALL, check_some, series_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from polariscope.studies.table import Table

DISTANCE = "dto"


@figure("distance-by-score", answers=("zietlow2022 Fig. 3.4",))
@dataclasses.dataclass(frozen=True)
class DistanceByScore(AbstractFigure):
    """Distance to orthogonality against a disentanglement score: a point for each run, or for each checkpoint.

    The corner shows Spearman's correlation over all points with a 95 % interval by Fisher's transformation
    (bonett2000). The interval assumes independent points, but checkpoints of one run are not independent. Corresponds
    to zietlow2022 Fig. 3.4, which shows checkpoints at 10, 30 and 50 epochs.
    """

    metric: str = "ds"
    """Column of the score."""

    def numbers(self, table: Table) -> Rows:
        need(table, self.metric, DISTANCE)
        models = table.done
        steps = "step" in table.columns and table.frame["step"].nunique() > 1
        names = [f"step {step}" for step in models.frame["step"]] if steps else series_of(models)
        runs = models.frame.reindex(columns=["run", "step"]).assign(metric=self.metric)
        runs.insert(0, "series", names)
        pairs = (
            models.numbers[[self.metric, DISTANCE]].set_axis(["score", "distance"], axis="columns").dropna()
        )
        figure_rows: list[Row] = rows_of(runs.join(pairs, how="inner"))
        check_some(figure_rows)
        x, y = (np.array([number_in(row, column) for row in figure_rows]) for column in ("score", "distance"))
        related = spearman(x, y)
        low, high = related.interval or (None, None)
        over: Row = {"spearman": related.value, "spearman.low": low, "spearman.high": high}
        return tuple({**row, **over} for row in figure_rows)

    def draw(self, rows: Rows) -> Figure:
        figure, all_axes = panels([ALL])
        names = names_in(rows, "series")
        colours, markers = colours_of(names), markers_of(names)
        for name in names:
            line_rows = [row for row in rows if row["series"] == name]
            all_axes[0].plot(
                [number_in(row, "score") for row in line_rows],
                [number_in(row, "distance") for row in line_rows],
                markers[name],
                color=colours[name],
                label=name,
                mew=0,
            )
        first = rows[0]
        if first["spearman"] is not None:
            between = (
                f" ({number_in(first, 'spearman.low'):.2f} to {number_in(first, 'spearman.high'):.2f})"
                if first["spearman.low"] is not None
                else ""
            )
            note(all_axes[0], f"Spearman {number_in(first, 'spearman'):.2f}{between}".replace("-", "−"))
        all_axes[0].margins(y=0.18)
        all_axes[0].set_xlabel(column_of(str(first["metric"])).label)
        all_axes[0].set_ylabel(column_of(DISTANCE).label)
        add_legend(figure, all_axes)
        return figure
