"""Similarity of layers over groups of runs."""

from __future__ import annotations

import dataclasses
import re
from typing import TYPE_CHECKING, Annotated

import numpy as np
from annotated_types import Ge

from polariscope.analysis.similarity import family
from polariscope.core.errors import InputError
from polariscope.core.figures import PAGE, add_colour_bar, axes_grid, hide_frame, number_in, write_cell
from polariscope.studies.figures import AbstractFigure, Row, Rows, figure
from polariscope.studies.figures.support.drawing import names_in, readable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from polariscope.studies.ledger import Ledger
    from polariscope.studies.table import Table

SMALLER = "the smaller"
MAX_LAYERS = 14
"""Maximum number of layers for which numbers are written into the cells."""


@figure("layer-heat-map", answers=("bonheme2023 Figs 7.2-7.10", "bonheme2023 Eq. 7.9"))
@dataclasses.dataclass(frozen=True)
class LayerHeatMap(AbstractFigure):
    """Similarity of all pairs of layers of two groups of runs, averaged over pairs of runs, by two measures.

    The third panel shows the smaller of the two means in each cell. It is the more reliable value if they disagree,
    since Procrustes overestimates for few observations and wide layers, and CKA misses small changes (bonheme2023
    §7.2.2). A run is not compared with itself. Missing comparisons are computed and stored with the first run.
    Corresponds to bonheme2023 Figs 7.2 to 7.10, with Eq. 7.9.
    """

    one: str = ""
    """Runs of the first group: conditions joined by commas, such as beta=1. By default all runs."""
    other: str = ""
    """Runs of the second group; by default the first group is compared with itself."""
    measures: tuple[str, ...] = ("cka", "procrustes")
    """Similarity measures; see 'polariscope list similarity'."""
    step: Annotated[int, Ge(1)] | None = None
    """Step of the checkpoints to compare; by default the finished models."""
    other_step: Annotated[int, Ge(1)] | None = None
    """Step of the second group; by default that of the first."""
    n_samples: Annotated[int, Ge(10)] = 1000
    """Number of observations encoded by all models."""
    seed: Annotated[int, Ge(0)] = 0
    """Seed for drawing the observations."""

    def __post_init__(self) -> None:
        for measure in self.measures:
            family[measure]

    def table(self, ledger: Ledger) -> Table:
        from polariscope.studies.details import layers_table

        return layers_table(
            ledger,
            self.one,
            self.other,
            measures=self.measures,
            step=self.step,
            other_step=self.other_step,
            n_samples=self.n_samples,
            seed=self.seed,
        )

    def check(self, ledger: Ledger, runs: Table) -> None:
        if sum(entry.state == "done" for entry in ledger.entries()) < 2:
            raise InputError(problem="fewer than two runs of the study are done", remedy="run it first")

    def numbers(self, table: Table) -> Rows:
        rows: list[Row] = [dict(row) for row in table.rows]
        measures = names_in(tuple(rows), "measure")
        if len(measures) > 1:
            cells: dict[tuple[object, object], list[Row]] = {}
            for row in rows:
                cells.setdefault((row["row"], row["column"]), []).append(row)
            for group in cells.values():
                if len(group) == len(measures):
                    # See bonheme2023 §7.2.2 for why the smaller value is the more reliable one.
                    smallest: Row = min(group, key=lambda row: number_in(row, "similarity"))
                    rows.append({**smallest, "measure": SMALLER, "title": SMALLER})
        return tuple(rows)

    def draw(self, rows: Rows) -> Figure:
        from polariscope.layers.labels import cell, short

        measures = names_in(rows, "measure")
        n_rows, n_columns = len(names_in(rows, "row")), len(names_in(rows, "column"))
        height = 0.6 + PAGE / 3.6 * n_rows / max(n_columns, n_rows)
        figure, panels = axes_grid((PAGE, height), len(measures))
        for axes, measure in zip(panels, measures, strict=True):
            measure_rows = tuple(row for row in rows if row["measure"] == measure)
            down, across = names_in(measure_rows, "row"), names_in(measure_rows, "column")
            values = np.full((len(down), len(across)), np.nan)
            for row in measure_rows:
                position = down.index(str(row["row"])), across.index(str(row["column"]))
                values[position] = number_in(row, "similarity")
                if max(values.shape) <= MAX_LAYERS:
                    value = float(values[position])
                    # The colour map is dark for small values.
                    write_cell(axes, *position[::-1], cell(value), on_dark=value < 0.62, size=5)
            mesh = axes.imshow(values, cmap="magma", vmin=0, vmax=1)
            size = 6 if max(values.shape) <= MAX_LAYERS else 5
            axes.set_xticks(range(len(across)), [short(name) for name in across], fontsize=size)
            axes.set_yticks(range(len(down)), [short(name) for name in down], fontsize=size)
            axes.set_title(str(measure_rows[0]["title"]))
            axes.set_xlabel(_group(measure_rows[0]["second"]), parse_math=False)
            axes.grid(visible=False)
            hide_frame(axes)
        panels[0].set_ylabel(_group(rows[0]["first"]), parse_math=False)
        add_colour_bar(figure, mesh, panels, shrink=0.7, ticks=[0, 0.5, 1])
        return figure


def _group(conditions: object) -> str:
    """Return the conditions of a group as a label.

    >>> _group("beta=1,n_latents>=5"), _group("all at step 400"), _group("beta=1 at step 3,000")
    ('β = 1, n_latents >= 5', 'all at step 400', 'β = 1 at step 3,000')
    """
    spaced = re.sub(r"\s*(<=|>=|!=|=|<|>)\s*", r" \1 ", str(conditions))
    # Names of settings begin with a letter; a comma before a digit separates thousands.
    return readable(re.sub(r",\s*(?=[^\W\d])", ", ", spaced)) if spaced != conditions else spaced
