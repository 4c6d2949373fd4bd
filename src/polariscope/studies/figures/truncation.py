"""Dependence between latents with and without those of each type, against the strength of regularisation."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Literal

from polariscope.analysis.regime.latent_types import check_selections
from polariscope.studies.columns import column_of, need
from polariscope.studies.figures import AbstractByStrength, Rows, figure
from polariscope.studies.figures.support.drawing import draw_by_strength, names_in
from polariscope.studies.figures.support.grouping import by_strength, with_panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from polariscope.studies.table import Table

SOURCES = ("mean", "sampled")
RAW = {"mi": ".raw"}
"""Endings of columns that are not corrected for chance."""


@figure("truncation", answers=("bonheme2023 Fig. 6.7", "bonheme2023 Fig. 6.8"))
@dataclasses.dataclass(frozen=True)
class TruncationFigure(AbstractByStrength):
    """Total correlation or mutual information of all latents and of some types, for mean and sampled codes.

    If it drops when passive latents are left out, these latents depended on the others. Points are means over the seeds
    that have two or more latents of these types, with 95 % intervals by Student's t. Corresponds to bonheme2023 Fig.
    6.7 (averaged mutual information) and Fig. 6.8 (total correlation).
    """

    quantity: Literal["tc", "mi"] = "tc"
    """Total correlation, or averaged mutual information (not corrected for chance, as published)."""
    selections: tuple[str, ...] = ("full", "active", "active+mixed", "active+passive")
    """Latents to include: full, or types joined by a plus sign."""

    def __post_init__(self) -> None:
        check_selections(self.selections)

    def numbers(self, table: Table) -> Rows:
        columns = {
            f"{self.quantity}.{source}{RAW.get(self.quantity, '')}.by_types.{selection}": {
                "quantity": self.quantity,
                "source": source,
                "selection": selection,
            }
            for source in SOURCES
            for selection in self.selections
        }
        need(table, *(column for column in columns if column.endswith(".full")))
        return with_panels(by_strength(table, self.strength, columns), "source")

    def draw(self, rows: Rows) -> Figure:
        quantity = str(rows[0]["quantity"])
        label = column_of(f"{quantity}.mean{RAW.get(quantity, '')}").label
        return draw_by_strength(rows, "panel", "selection", dict.fromkeys(names_in(rows, "panel"), label))
