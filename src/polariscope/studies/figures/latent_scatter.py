"""Codes of one run, coloured by the factors."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Annotated

from annotated_types import Ge

from polariscope.core.errors import InputError
from polariscope.core.figure_style import CYCLIC, PALETTE, SEQUENTIAL
from polariscope.core.figures import number_in
from polariscope.studies.figures import AbstractFigure, Row, Rows, figure
from polariscope.studies.figures.support.drawing import names_in, panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from polariscope.studies.ledger import Ledger
    from polariscope.studies.table import Table

KINDS = ("categorical", "ordinal", "cyclic", "continuous")


@figure("latent-scatter", answers=("zietlow2022 Fig. 3.5",))
@dataclasses.dataclass(frozen=True)
class LatentScatter(AbstractFigure):
    """Means of two latents of one run, a point for each observation, coloured by one factor in each panel.

    A factor aligned with an axis changes colour along it; a rotated factor changes colour at an angle. Corresponds to
    zietlow2022 Fig. 3.5.
    """

    run: str = ""
    """Name of the run in the table; by default the first that is done."""
    latents: tuple[Annotated[int, Ge(0)], ...] = ()
    """Two latents; by default those with the largest KL."""
    n_samples: Annotated[int, Ge(1)] = 1000
    """Maximum number of observations."""

    def table(self, ledger: Ledger) -> Table:
        from polariscope.studies.details import codes_table

        return codes_table(ledger, self.run, self.n_samples)

    def check(self, ledger: Ledger, runs: Table) -> None:
        self.numbers(self.table(ledger))

    def numbers(self, table: Table) -> Rows:
        known = [name for name in table.columns if name.startswith("mean.")]
        if len(known) < 2:
            raise InputError(problem="the codes have only one latent", remedy="choose a run with two or more")
        pair = [f"mean.{latent}" for latent in self.latents] or known[:2]
        if len(pair) != 2 or not set(pair) <= set(known):
            raise InputError("latents", f"be two of the {len(known)} latents", got=self.latents)
        factors = [name for name in table.columns if name.partition(".")[0] in KINDS]
        figure_rows: list[Row] = []
        for factor in factors:
            kind, _, name = factor.partition(".")
            for row in table.rows:
                coordinates: Row = {"first": row[pair[0]], "second": row[pair[1]]}
                latents: Row = {"first_latent": pair[0], "second_latent": pair[1]}
                marks: Row = {"run": row["run"], "factor": name, "kind": kind, "sample": row["sample"]}
                figure_rows.append({**marks, **latents, **coordinates, "value": row[factor]})
        return tuple(figure_rows)

    def draw(self, rows: Rows) -> Figure:
        from matplotlib.colors import ListedColormap

        factors = names_in(rows, "factor")
        figure, all_axes = panels(factors, height=2.1)
        for axes, factor in zip(all_axes, factors, strict=True):
            factor_rows = tuple(row for row in rows if row["factor"] == factor)
            values = [number_in(row, "value") for row in factor_rows]
            few = factor_rows[0]["kind"] == "categorical" and len(set(values)) <= len(PALETTE)
            colours = ListedColormap(PALETTE[: len(set(values))]) if few else SEQUENTIAL
            points = axes.scatter(
                [number_in(row, "first") for row in factor_rows],
                [number_in(row, "second") for row in factor_rows],
                c=[sorted(set(values)).index(value) for value in values] if few else values,
                cmap=CYCLIC if factor_rows[0]["kind"] == "cyclic" else colours,
                s=3,
                lw=0,
                # Thousands of points would make a vector file large.
                rasterized=len(factor_rows) > 2000,
            )
            bar = figure.colorbar(points, ax=axes)
            bar.outline.set_visible(False)
            if few:
                classes = sorted(set(values))
                # A bar from 0 to k − 1 is divided into k colours of equal width; ticks are in their middles.
                middles = [(index + 0.5) * (1 - 1 / len(classes)) for index in range(len(classes))]
                bar.set_ticks(middles, labels=[f"{value:g}" for value in classes])
            axes.set_xlabel(str(factor_rows[0]["first_latent"]).replace("mean.", "mean of latent "))
            axes.set_ylabel(str(factor_rows[0]["second_latent"]).replace("mean.", "mean of latent "))
        return figure
