"""Spearman's correlations between metrics, and between metrics and label-free quantities or downstream accuracy."""

from __future__ import annotations

import dataclasses
import re
from typing import TYPE_CHECKING, Literal

import numpy as np

from polariscope.core.errors import InputError
from polariscope.core.figure_style import DIVERGING
from polariscope.core.figures import (
    COLUMN,
    PAGE,
    add_colour_bar,
    hide_frame,
    number_in,
    single_axes,
    write_cell,
)
from polariscope.numerics.ranks import spearman
from polariscope.studies.columns import column_of, metric_columns, need, remedy_for
from polariscope.studies.figures import AbstractFigure, Row, Rows, figure
from polariscope.studies.figures.support.drawing import names_in
from polariscope.studies.select import ELBO, with_elbo

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from polariscope.studies.table import Table

MAX_COLUMNS = 9
"""Maximum number of columns for which intervals are written into the cells; the numbers always include them."""
UNSUPERVISED = (ELBO, "loss.reconstruction", "loss.rate")


@figure("rank-correlations", answers=("mushom2020 Fig. 5.13", "mushom2020 Fig. 5.16", "mushom2020 Fig. 5.19"))
@dataclasses.dataclass(frozen=True)
class RankCorrelations(AbstractFigure):
    """Spearman's rank correlation over all runs between metrics, or between metrics and other quantities.

    ELBO is −(reconstruction loss + KL), higher is better; reconstruction is a loss, lower is better. Each correlation
    has a 95 % interval by Fisher's transformation (bonett2000), which assumes independent runs. Runs of one setting are
    alike, so the interval is too narrow. Corresponds to mushom2020 Fig. 5.13 (metrics), Fig. 5.16 (unsupervised) and
    Fig. 5.19 (downstream).
    """

    against: Literal["metrics", "unsupervised", "downstream"] = "metrics"
    """Counterparts of the metrics: each other; ELBO, reconstruction and KL; or the accuracy of a probe for each number
    of labels."""
    metrics: tuple[str, ...] = ()
    """Columns in the rows of the matrix; by default all metrics."""

    def numbers(self, table: Table) -> Rows:
        table = with_elbo(table)
        accuracies = [name for name in table.measured if re.search(r"[.](by_size[.]\d+|efficiency)$", name)]
        probes = {name.partition(".by_size")[0] for name in accuracies}
        # Probes are the downstream task here, not a metric.
        metrics = list(self.metrics) or [name for name in metric_columns(table) if name not in probes]
        need(table, *metrics)
        columns = {"metrics": metrics, "unsupervised": list(UNSUPERVISED), "downstream": accuracies}[
            self.against
        ]
        if self.against == "downstream" and not accuracies:
            raise InputError(
                problem="the table has no downstream accuracy",
                remedy=remedy_for("probe"),
            )
        need(table, *columns)
        if len(metrics) < (2 if self.against == "metrics" else 1):
            raise InputError(
                problem=f"the table contains {'one metric' if metrics else 'no metric'}, so nothing can be compared",
                remedy="in the study file add more to the metrics of [each.score], then run it again",
            )
        numbers = table.finished.numbers
        figure_rows: list[Row] = []
        for first in metrics:
            for second in columns:
                both = numbers[[first]].assign(second=numbers[second]).dropna().to_numpy()
                related = spearman(both[:, 0], both[:, 1])
                low, high = related.interval or (None, None)
                figure_rows.append(
                    {
                        "row": first,
                        "column": second,
                        "n": related.n,
                        "rho": related.value,
                        "low": low,
                        "high": high,
                    }
                )
        return tuple(figure_rows)

    def draw(self, rows: Rows) -> Figure:
        down, across = names_in(rows, "row"), names_in(rows, "column")
        width, size = (COLUMN if len(across) <= 3 else PAGE), min(6.0, 45 / len(across))
        figure, axes = single_axes((width, 0.9 + 0.42 * len(down)))
        cells = {(row["row"], row["column"]): row for row in rows}
        values = np.array(
            [
                [np.nan if cells[a, b]["rho"] is None else number_in(cells[a, b], "rho") for b in across]
                for a in down
            ]
        )
        mesh = axes.imshow(values, cmap=DIVERGING, vmin=-1, vmax=1, aspect="auto")
        for y, name in enumerate(down):
            for x, other in enumerate(across):
                cell = cells[name, other]
                if cell["rho"] is None:
                    continue
                # The colour map is dark at both ends.
                dark = abs(number_in(cell, "rho")) > 0.6
                text = f"{number_in(cell, 'rho'):.2f}"
                if cell["low"] is not None and name != other and len(across) <= MAX_COLUMNS:
                    text += f"\n{number_in(cell, 'low'):.2f} to {number_in(cell, 'high'):.2f}"
                write_cell(axes, x, y, text, on_dark=dark, size=size)
        axes.set_xticks(range(len(across)), [_short(name) for name in across])
        axes.set_yticks(range(len(down)), [_short(name) for name in down])
        axes.grid(visible=False)
        hide_frame(axes)
        add_colour_bar(figure, mesh, axes, ticks=[-1, 0, 1], label="Spearman's ρ")
        return figure


def _short(name: str) -> str:
    """Return a short label for a column.

    >>> _short("loss.rate"), _short("probe.by_size.100"), _short("probe.efficiency"), _short("mig")
    ('KL', '100 labels', 'efficiency', 'MIG')
    """
    if size := re.search(r"by_size[.](\d+)$", name):
        return f"{size[1]} labels"
    label = column_of(name).label.removesuffix(" (nats)").removesuffix(" loss")
    return label.rpartition(".")[2] if name.endswith(".efficiency") else label
