"""The rate-distortion plane with its bounds."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Literal

from polariscope.core.errors import InputError
from polariscope.core.figure_style import INK, QUIET
from polariscope.core.figures import number_in
from polariscope.core.frames import rows_of
from polariscope.studies.columns import need
from polariscope.studies.figures import AbstractByStrength, Row, Rows, figure
from polariscope.studies.figures.support.drawing import (
    add_labels,
    add_legend,
    colours_of,
    markers_of,
    names_in,
    panels,
)
from polariscope.studies.figures.support.grouping import ALL, check_some, in_order, series_of, strength_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from polariscope.studies.table import Table

PLACES = {"training": "loss", "validation": "validation"}


@figure("rate-distortion", answers=("mushom2020 Fig. 4.2", "bonheme2023 Fig. 4.1"))
@dataclasses.dataclass(frozen=True)
class RateDistortion(AbstractByStrength):
    r"""Distortion against rate of every run, the frontier, and the lower bound for all models.

    With the rate R = E KL(q(z|x) ‖ p(z)) and the distortion D = −E log p(x|z), the entropy H of the data obeys

    .. math:: H - D \le I_q(x; z) \le R,

    so every model lies on or above D = H − R. H is unknown, but every run implies H ≤ R + D. The dashed line is that of
    the smallest R + D of the study, and the true bound is at or below it. If the entropy is given, its line is drawn
    too, and a model below it is refused. A run is on the frontier (filled) if no other run has both less rate and less
    distortion. Corresponds to mushom2020 Fig. 4.2 and bonheme2023 Fig. 4.1, after alemi2018.
    """

    part: Literal["training", "validation"] = "training"
    """Observations over which the losses are averaged."""
    entropy: float | None = None
    """Entropy of the data in nats, if it is known: the logarithm of the number of images, if all are different and the
    likelihood is discrete."""

    def numbers(self, table: Table) -> Rows:
        rate, distortion = (f"{PLACES[self.part]}.{term}" for term in ("rate", "reconstruction"))
        need(table, rate, distortion)
        axis, models = strength_of(table, self.strength), table.finished
        runs = axis.of(models).join(models.frame["run"])
        runs.insert(0, "series", series_of(models, axis.names))
        numbers = models.numbers[[rate, distortion]].set_axis(["rate", "distortion"], axis="columns").dropna()
        figure_rows: list[Row] = rows_of(runs.join(numbers, how="inner"))
        check_some(figure_rows)
        sums = [number_in(row, "rate") + number_in(row, "distortion") for row in figure_rows]
        if self.entropy is not None and min(sums) < self.entropy:
            raise InputError(
                "entropy", "be at most the smallest rate plus distortion of all runs", got=self.entropy,
                remedy=f"that is {min(sums):.4g} nats",
            )  # fmt: skip
        bounds: Row = {"entropy_at_most": min(sums), "entropy": self.entropy}
        return tuple(
            {**row, "on_frontier": not _is_beaten(row, figure_rows), **bounds} for row in figure_rows
        )

    def draw(self, rows: Rows) -> Figure:
        figure, all_axes = panels([ALL], height=2.5)
        axes, names = all_axes[0], names_in(rows, "series")
        colours, markers = colours_of(names), markers_of(names)
        for name in names:
            line_rows = [row for row in rows if row["series"] == name]
            for on_frontier in (False, True):
                points = [row for row in line_rows if row["on_frontier"] == on_frontier]
                axes.plot(
                    [number_in(row, "rate") for row in points],
                    [number_in(row, "distortion") for row in points],
                    markers[name],
                    color=colours[name],
                    mfc=colours[name] if on_frontier else "white",
                    label=name if on_frontier else "_",
                )
            # Reversed, so the first run of each strength is the one that is labelled.
            firsts = {row["strength"]: row for row in reversed(line_rows)}
            in_line = sorted(firsts.values(), key=lambda row: in_order(row["strength"]))
            add_labels(axes, tuple(in_line), "rate", "distortion")
        if not all(row["on_frontier"] for row in rows):
            axes.plot([], [], "o", color=QUIET, mfc="white", label="not on the frontier")
        rates = [number_in(row, "rate") for row in rows]
        ends = [min(rates), max(rates)]
        label, bound = "smallest R + D of all runs", number_in(rows[0], "entropy_at_most")
        axes.plot(ends, [bound - end for end in ends], color=QUIET, ls="--", lw=1, label=label)
        if rows[0]["entropy"] is not None:
            entropy = number_in(rows[0], "entropy")
            axes.plot(ends, [entropy - end for end in ends], color=INK, lw=1, label="D = H − R")
        axes.set_xlabel("rate R (nats)")
        axes.set_ylabel("distortion D (nats)")
        add_legend(figure, all_axes)
        return figure


def _is_beaten(row: Row, others: list[Row]) -> bool:
    """Return True if another run has less of one quantity and not more of the other."""
    point = number_in(row, "rate"), number_in(row, "distortion")
    return any(
        # Equal runs do not beat each other.
        rate <= point[0] and distortion <= point[1] and (rate, distortion) != point
        for rate, distortion in (
            (number_in(other, "rate"), number_in(other, "distortion")) for other in others
        )
    )
