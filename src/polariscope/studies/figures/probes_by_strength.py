"""Accuracy of probes on latents of each type against the strength of regularisation."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from polariscope.analysis.regime.latent_types import check_selections
from polariscope.studies.columns import column_of, need
from polariscope.studies.figures import AbstractByStrength, Rows, figure
from polariscope.studies.figures.support.drawing import draw_by_strength, names_in
from polariscope.studies.figures.support.grouping import by_strength, with_panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from polariscope.studies.table import Table

SOURCES = ("mean", "sampled")
CHANCE = "chance"


@figure("probes-by-strength", answers=("bonheme2023 Fig. 6.4",))
@dataclasses.dataclass(frozen=True)
class ProbesByStrength(AbstractByStrength):
    """Accuracy of probes on active, mixed and passive latents, for mean and sampled codes, against the strength.

    Probes on passive latents of the sampled codes should be at chance (a uniform guess) for every strength; those on
    the means improve with it. Points are means over the seeds that have latents of these types, with 95 % intervals by
    Student's t. Corresponds to bonheme2023 Fig. 6.4.
    """

    selections: tuple[str, ...] = ("full", "active+mixed", "active+passive", "passive")
    """Latents to probe: full, or types joined by a plus sign."""

    def __post_init__(self) -> None:
        check_selections(self.selections)

    def numbers(self, table: Table) -> Rows:
        columns = {
            f"probes.{source}.{selection}": {"source": source, "selection": selection}
            for source in SOURCES
            for selection in (*self.selections, CHANCE)
        }
        need(table, *(f"probes.{source}.full" for source in SOURCES))
        return with_panels(by_strength(table, self.strength, columns), "source")

    def draw(self, rows: Rows) -> Figure:
        label = column_of("probes.mean.full").label
        labels = dict.fromkeys(names_in(rows, "panel"), label)
        return draw_by_strength(rows, "panel", "selection", labels, dashed=[CHANCE], share_y=True)
