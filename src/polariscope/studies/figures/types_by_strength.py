"""Number of active, mixed and passive latents against the strength of regularisation."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from polariscope.analysis.regime.latent_types import COLOURS, TYPES
from polariscope.studies.columns import need
from polariscope.studies.figures import AbstractByStrength, Rows, figure
from polariscope.studies.figures.support.drawing import draw_by_strength, names_in
from polariscope.studies.figures.support.grouping import by_strength

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from polariscope.studies.table import Table


@figure("types-by-strength", answers=("bonheme2023 Fig. 6.5",))
@dataclasses.dataclass(frozen=True)
class TypesByStrength(AbstractByStrength):
    """Counts of active, mixed and passive latents against the strength of regularisation.

    Points are means over seeds with 95 % intervals by Student's t. There is a panel for each combination of other
    settings that vary. Corresponds to bonheme2023 Fig. 6.5.
    """

    def numbers(self, table: Table) -> Rows:
        need(table, *TYPES)
        return tuple(by_strength(table, self.strength, {kind: {"type": kind} for kind in TYPES}))

    def draw(self, rows: Rows) -> Figure:
        labels = dict.fromkeys(names_in(rows, "series"), "latents")
        return draw_by_strength(rows, "series", "type", labels, {str(k): v for k, v in COLOURS.items()})
