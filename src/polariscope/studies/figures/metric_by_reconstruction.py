"""A metric against the reconstruction loss, setting by setting."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Literal

from polariscope.core.figures import MAX_POINTS, number_in
from polariscope.studies.columns import bounds_of, column_of, need, need_metric
from polariscope.studies.figures import AbstractByStrength, Row, Rows, figure
from polariscope.studies.figures.support.drawing import (
    add_labels,
    add_legend,
    colours_of,
    markers_of,
    names_in,
    panels,
)
from polariscope.studies.figures.support.grouping import (
    ALL,
    check_some,
    points_of,
    strength_of,
    summary,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from polariscope.studies.table import Table

LOSSES = {"training": "loss.reconstruction", "validation": "validation.reconstruction"}
AXES = ("reconstruction", "metric")


@figure("metric-by-reconstruction", answers=("mathieu2019 Fig. 2", "mushom2020 Fig. 5.9"))
@dataclasses.dataclass(frozen=True)
class MetricByReconstruction(AbstractByStrength):
    """A metric against the reconstruction loss: the cost of disentanglement.

    Each point is the mean of both over seeds for one strength, with 95 % intervals by Student's t (unknown variance, as
    in mathieu2019). Points are labelled with the strength and joined in its order; small points are runs. Corresponds
    to mathieu2019 Fig. 2 and mushom2020 Fig. 5.9.
    """

    metric: str = ""
    """Column of the metric; by default the first metric of the table."""
    part: Literal["training", "validation"] = "training"
    """Observations that are reconstructed."""

    def numbers(self, table: Table) -> Rows:
        metric, loss = need_metric(table, self.metric), LOSSES[self.part]
        need(table, loss)
        axis, models = strength_of(table, self.strength), table.finished
        models = models.replace(models.frame[models.numbers[[loss, metric]].notna().all(axis="columns")])
        numbers = models.numbers[[loss, metric]].set_axis(list(AXES), axis="columns")
        figure_rows: list[Row] = []
        for point, rows in points_of(models, axis):
            marks: Row = {**point, "metric": metric, "loss": loss}
            for row in rows:
                values = {f"{key}.mean": float(numbers.at[row, key]) for key in AXES}
                figure_rows.append({**marks, "run": models.rows[row]["run"], "n": 1, **values})
            both: Row = {**marks, "run": None, "n": len(rows)}
            for key in AXES:
                bounds = bounds_of(metric if key == "metric" else loss, models.numbers.loc[rows])
                over = summary(numbers.loc[rows, key], bounds)
                both |= {f"{key}.{part}": over[part] for part in ("mean", "sd", "low", "high")}
            figure_rows.append(both)
        check_some(figure_rows)
        return tuple(figure_rows)

    def draw(self, rows: Rows) -> Figure:
        figure, all_axes = panels([ALL], height=2.5)
        axes, names = all_axes[0], names_in(rows, "series")
        colours, markers = colours_of(names), markers_of(names)
        for name in names:
            line_rows = [row for row in rows if row["series"] == name]
            runs, means = (
                [row for row in line_rows if (row["run"] is None) == is_mean] for is_mean in (False, True)
            )
            x, y = ([number_in(row, f"{key}.mean") for row in means] for key in AXES)
            axes.plot(*([number_in(row, f"{key}.mean") for row in runs] for key in AXES), ".", ms=3, mew=0,
                      color=colours[name], alpha=0.4)  # fmt: skip
            axes.plot(x, y, color=colours[name], marker=markers[name], label=name, lw=1)
            for row, at, height in zip(means, x, y, strict=True):
                for key, coordinate in (("reconstruction", height), ("metric", at)):
                    if row[f"{key}.low"] is not None and number_in(row, "n") > MAX_POINTS:
                        ends = [number_in(row, f"{key}.low"), number_in(row, f"{key}.high")]
                        pair = (
                            (ends, [coordinate, coordinate])
                            if key == "reconstruction"
                            else ([coordinate, coordinate], ends)
                        )
                        axes.plot(*pair, color=colours[name], lw=0.8, alpha=0.7)
            add_labels(axes, tuple(means), *(f"{key}.mean" for key in AXES), joined=True)
        axes.set_xlabel(column_of(str(rows[0]["loss"])).label)
        axes.set_ylabel(column_of(str(rows[0]["metric"])).label)
        add_legend(figure, all_axes)
        return figure
