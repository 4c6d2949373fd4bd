"""Disentanglement and distance to orthogonality over a line search of the strength."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from polariscope.studies.columns import column_of, need
from polariscope.studies.figures import AbstractByStrength, Rows, figure
from polariscope.studies.figures.support.drawing import draw_by_strength
from polariscope.studies.figures.support.grouping import ALL, by_strength

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from polariscope.studies.table import Table

DISTANCE = "dto"
RANDOM = "random rotations"


@figure("distance-line-search", answers=("zietlow2022 Fig. 3.7",))
@dataclasses.dataclass(frozen=True)
class DistanceLineSearch(AbstractByStrength):
    """A disentanglement score and the distance to orthogonality against the strength of regularisation.

    If few latents are in use, the distance is small because there are few directions. Compare it with the distance of
    random rotations of the same number of latents, the dashed line. Points are means over seeds with 95 % intervals by
    Student's t. Corresponds to zietlow2022 Fig. 3.7.
    """

    metric: str = "ds"
    """Column of the score that is shown next to the distance."""

    def numbers(self, table: Table) -> Rows:
        need(table, self.metric, DISTANCE)
        columns = {column: {"quantity": column} for column in (self.metric, DISTANCE)}
        by_chance = {f"{DISTANCE}.random": {"quantity": DISTANCE, "of": RANDOM}}
        rows = by_strength(table, self.strength, {**columns, **by_chance})
        return tuple(
            {**row, "series": RANDOM if row["series"] == ALL else f"{row['series']}, {RANDOM}"}
            if "of" in row
            else row
            for row in rows
        )

    def draw(self, rows: Rows) -> Figure:
        labels = {str(row["quantity"]): column_of(str(row["quantity"])).label for row in rows}
        dashed = [str(row["series"]) for row in rows if "of" in row]
        drawn = draw_by_strength(rows, "quantity", "series", labels, dashed=dashed)
        for axes in drawn.axes:
            # The vertical axis names the quantity already.
            axes.set_title("")
        return drawn
