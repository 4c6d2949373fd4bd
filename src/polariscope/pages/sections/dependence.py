"""Dependence between latents: correlations, total correlation, and dependence within each combination of types."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float
from markupsafe import Markup
from matplotlib import rc_context

from polariscope.analysis.regime.latent_types import COLOURS, TYPES
from polariscope.analysis.regime.regime import Regime
from polariscope.analysis.regime.rule import POLARISED
from polariscope.analysis.regime.sentences import about_passive_means
from polariscope.core.figure_style import DIVERGING, STYLE
from polariscope.core.figures import add_colour_bar, hide_frame, single_axes, to_svg, write_cell
from polariscope.pages.sections import AbstractSection, section

if TYPE_CHECKING:
    from polariscope.pages.record import ReportRecord


@section("dependence", title="Dependence", order=50)
class DependenceSection(AbstractSection):
    """Dependence between latents."""

    def applies(self, record: ReportRecord) -> bool:
        """Return True: every diagnosis contains these results."""
        return True

    def view(self, record: ReportRecord) -> dict[str, Any]:
        """Return charts of the correlations; the template reads the tables from the diagnosis."""
        regime = record.regime
        order = [j for kind in TYPES for j in regime.order if regime.latents[j].type == kind]
        # Samples of a deterministic encoder are its means.
        shown = {"mean": regime.mean, "sampled": regime.sampled} if record.has_rate else {"mean": regime.mean}
        charts = [
            draw_correlation(np.array(structure.correlation), regime, order, name)
            for name, structure in shown.items()
        ]
        passive_means = about_passive_means(regime) if record.has_rate else ""
        return {"correlations": charts, "polarised": POLARISED, "passive_means": passive_means}


def draw_correlation(
    matrix: Float[np.ndarray, "latent latent"], regime: Regime, order: list[int], name: str
) -> Markup:
    """Draw the correlations between latents, in the order of ``order``."""
    n = len(order)
    with rc_context({**STYLE, "axes.grid": False}):
        figure, axes = single_axes((4.4, 3.9), f"{name} representation")
        # The diagonal is 1 by definition and would distract from the other cells.
        values = np.where(np.eye(n, dtype=bool), np.nan, matrix[np.ix_(order, order)])
        mesh = axes.pcolormesh(
            values,
            cmap=DIVERGING,
            vmin=-1,
            vmax=1,
            edgecolors="white" if n <= 24 else "none",
            lw=1 if n <= 24 else 0,
            rasterized=n > 24,
        )
        axes.set_aspect("equal")
        axes.invert_yaxis()
        hide_frame(axes)
        shown = range(0, n, max(1, n // 24))
        positions, names = [i + 0.5 for i in shown], [str(order[i]) for i in shown]
        axes.set_xticks(positions, names)
        axes.set_yticks(positions, names)
        for labels in (axes.get_xticklabels(), axes.get_yticklabels()):
            for label, i in zip(labels, shown, strict=True):
                label.set_color(COLOURS[regime.latents[order[i]].type])
                label.set_fontweight("bold")
        if n <= 12:
            for (i, j), value in np.ndenumerate(values):
                if i == j:
                    continue
                # Adding 0 turns −0 into 0; a small negative number can still be rounded to −0.00.
                text = f"{value + 0.0:.2f}".replace("-0.00", "0.00")
                write_cell(axes, j + 0.5, i + 0.5, text, on_dark=bool(abs(value) > 0.6))
        add_colour_bar(figure, mesh, axes, shrink=0.6, ticks=[-1, 0, 1])
        off = np.abs(values[~np.isnan(values)])
        strongest = (
            f"the strongest between two latents is {off.max():.2f}"
            if off.size
            else "there is a single latent"
        )
        return to_svg(
            figure, f"correlation-{name}", f"Correlation matrix of the {name} representation; {strongest}."
        )
