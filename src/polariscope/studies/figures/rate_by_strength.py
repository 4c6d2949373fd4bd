"""Reconstruction loss and rate against the strength of regularisation."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Literal

from polariscope.studies.columns import column_of, need
from polariscope.studies.figures import AbstractByStrength, Rows, figure
from polariscope.studies.figures.support.drawing import draw_by_strength
from polariscope.studies.figures.support.grouping import by_strength

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from polariscope.studies.table import Table

PLACES = {"training": "loss", "validation": "validation"}
TERMS = ("reconstruction", "rate")


@figure("rate-by-strength", answers=("mushom2020 Fig. 5.4", "mushom2020 Fig. 5.7", "mushom2020 Fig. 5.11"))
@dataclasses.dataclass(frozen=True)
class RateByStrength(AbstractByStrength):
    """Reconstruction loss and KL at the end of training against the strength of regularisation.

    Both are unweighted, in nats: the mean over the training batches since the second-to-last line of the log, or the
    last validation. Points are means over seeds with 95 % intervals by Student's t. Corresponds to mushom2020 Figs 5.4,
    5.7 and 5.11.
    """

    part: Literal["training", "validation"] = "training"
    """Observations over which the losses are averaged."""

    def numbers(self, table: Table) -> Rows:
        columns = {f"{PLACES[self.part]}.{term}": {"term": f"{PLACES[self.part]}.{term}"} for term in TERMS}
        need(table, *columns)
        return tuple(by_strength(table, self.strength, columns))

    def draw(self, rows: Rows) -> Figure:
        labels = {str(row["term"]): column_of(str(row["term"])).label for row in rows}
        drawn = draw_by_strength(rows, "term", "series", labels)
        for axes in drawn.axes:
            # The vertical axis names the quantity already.
            axes.set_title("")
        return drawn
