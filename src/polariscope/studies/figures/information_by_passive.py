"""Total correlation, mutual information and effective rank against the number of passive latents."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from polariscope.core.figure_style import QUIET
from polariscope.core.figures import number_in
from polariscope.studies.columns import bounds_of, column_of, need
from polariscope.studies.figures import AbstractFigure, Row, Rows, figure
from polariscope.studies.figures.support.drawing import (
    add_legend,
    colours_of,
    draw_interval,
    markers_of,
    names_in,
    panels,
)
from polariscope.studies.figures.support.grouping import summary

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from polariscope.studies.table import Table

QUANTITIES = ("tc", "mi", "rank")
SOURCES = ("mean", "sampled")
RAW = {"mi": ".raw"}
"""Endings of columns that are not corrected for chance, as published."""


@figure("information-by-passive", answers=("bonheme2023 Fig. 6.6",))
@dataclasses.dataclass(frozen=True)
class InformationByPassive(AbstractFigure):
    """Total correlation, averaged mutual information and effective rank against the number of passive latents.

    Mean and sampled codes are shown side by side: means over all runs with the same number of passive latents, with 95
    % intervals by Student's t. The effective rank of a polarised model equals the number of latents for the sampled
    codes, and the number of latents that are not passive for the mean. The mutual information is not corrected for
    chance, as published. Corresponds to bonheme2023 Fig. 6.6.
    """

    def numbers(self, table: Table) -> Rows:
        columns = {(q, source): f"{q}.{source}{RAW.get(q, '')}" for q in QUANTITIES for source in SOURCES}
        need(table, "passive", *columns.values())
        groups = dict(list(table.finished.numbers.groupby("passive")))
        figure_rows: list[Row] = []
        for quantity in QUANTITIES:
            for source in SOURCES:
                column = columns[quantity, source]
                for passive, runs in groups.items():
                    if not len(values := runs[column].dropna()):
                        continue
                    row: Row = {
                        "quantity": quantity,
                        "source": source,
                        "passive": int(passive),
                        **summary(values, bounds_of(column, runs)),
                    }
                    in_use = {int(used) for used in (runs["active"] + runs["mixed"]).dropna()}
                    if quantity == "rank" and len(in_use) == 1:
                        row["predicted"] = min(in_use) + (int(passive) if source == "sampled" else 0)
                    figure_rows.append(row)
        return tuple(figure_rows)

    def draw(self, rows: Rows) -> Figure:
        from matplotlib.ticker import MaxNLocator

        quantities = names_in(rows, "quantity")
        figure, all_axes = panels([""] * len(quantities))
        colours, markers = colours_of(SOURCES), markers_of(SOURCES)
        for axes, quantity in zip(all_axes, quantities, strict=True):
            # Shifted, so the intervals of both codes do not overlap.
            for shift, source in zip((-0.06, 0.06), SOURCES, strict=True):
                line_rows = [row for row in rows if (row["quantity"], row["source"]) == (quantity, source)]
                x = [number_in(row, "passive") + shift for row in line_rows]
                axes.plot(
                    x,
                    [number_in(row, "mean") for row in line_rows],
                    color=colours[source],
                    marker=markers[source],
                    label=source,
                )
                for position, row in zip(x, line_rows, strict=True):
                    draw_interval(axes, row, position, colours[source])
                predicted = [row for row in line_rows if row.get("predicted") is not None]
                axes.plot(
                    [number_in(row, "passive") for row in predicted],
                    [number_in(row, "predicted") for row in predicted],
                    color=QUIET,
                    ls=":",
                    lw=1,
                    label="polarised" if predicted else "_",
                )
            axes.set_xlabel("passive latents")
            axes.set_ylabel(column_of(f"{quantity}.mean{RAW.get(quantity, '')}").label)
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        add_legend(figure, all_axes)
        return figure
