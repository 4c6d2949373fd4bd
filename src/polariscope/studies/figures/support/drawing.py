"""Rows of a study drawn with the figure kit: panels, lines against a strength, labels and legends."""

from __future__ import annotations

import contextlib
import re
import unicodedata
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from polariscope.core.figure_style import INK, MARKERS, PALETTE, QUIET
from polariscope.core.figures import (
    COLUMN,
    PAGE,
    add_legend_below,
    axes_grid,
    draw_means,
    draw_points,
    number_in,
    points_in,
)
from polariscope.core.option_values import show
from polariscope.studies.figures import Row, Rows
from polariscope.studies.figures.support.grouping import ALL, in_order

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

HEIGHT = 2.2
MANY = 10
"""Ratio of the largest to the smallest strength from which an axis is logarithmic."""


def panels(
    titles: Sequence[str],
    *,
    height: float = HEIGHT,
    most: int = 3,
    share_y: bool = False,
    narrow: bool = False,
) -> tuple[Figure, list[Axes]]:
    """Axes side by side: one in the width of a column, several in that of a page.

    :param titles: of the panels; "all runs" is not written.
    :param height: (default 2.2) inches of a row of panels.
    :param most: (default 3) panels beside each other.
    :param share_y: (default False) whether all have the same vertical axis.
    :param narrow: (default False) whether two panels are to be as wide as a column.
    """
    across = min(most, len(titles))
    down = -(-len(titles) // across)
    width = COLUMN if across == 1 or (narrow and across == 2) else PAGE
    figure, used = axes_grid((width, height * down + 0.3), len(titles), across, share_y=share_y)
    for axes, title in zip(used, titles, strict=True):
        axes.set_title("" if title == ALL else readable(title), parse_math=False)
    return figure, used


def names_in(rows: Rows, column: str) -> list[str]:
    """The different values of a column as texts, in order of appearance.

    :param rows: of a figure.
    :param column: its name.
    """
    return list(dict.fromkeys(str(row[column]) for row in rows if row.get(column) is not None))


def colours_of(names: Sequence[str]) -> dict[str, str]:
    """A colour for each name.

    :param names: of lines.
    """
    return {name: PALETTE[index % len(PALETTE)] for index, name in enumerate(names)}


def markers_of(names: Sequence[str]) -> dict[str, str]:
    """A shape for each name, so colours are not all there is to tell them apart.

    :param names: of lines.
    """
    return {name: MARKERS[index % len(MARKERS)] for index, name in enumerate(names)}


def positions(rows: Rows, column: str = "strength") -> dict[object, float]:
    """Where each value of a setting is on the axis: at itself where all are numbers, else one after the other.

    :param rows: of a figure.
    :param column: (default "strength") the setting's values.
    """
    values = sorted({row[column] for row in rows}, key=in_order)
    if all(isinstance(value, int | float) for value in values):
        return {value: float(value) for value in values}  # type: ignore[arg-type]
    return {value: float(index) for index, value in enumerate(values)}


def mark_strengths(axes: Axes, rows: Rows) -> None:
    """Label the axis of a setting; few values are its marks, and far ones are on a logarithmic axis.

    :param axes: where.
    :param rows: of the figure.
    """
    ticks = positions(rows)
    numeric = all(isinstance(value, int | float) for value in ticks)
    ends = sorted(ticks.values())
    if numeric and ends[0] > 0 and ends[-1] / ends[0] >= MANY:
        axes.set_xscale("log")
    if len(ticks) <= 8:
        axes.set_xticks(list(ticks.values()), [show(value) for value in ticks])
        axes.set_xticks([], minor=True)
    if not numeric:
        axes.set_xlim(-0.4, len(ticks) - 0.6)
    axes.set_xlabel(setting_in_words(rows), parse_math=False)


def setting_in_words(rows: Rows) -> str:
    """The setting on the axis, as a Greek letter where it is named after one; "strength" where there are several.

    :param rows: of a figure.

    >>> setting_in_words(({"setting": "beta"},)), setting_in_words(({"setting": "n_latents"},))
    ('β', 'n_latents')
    """
    names = names_in(rows, "setting")
    return "strength" if len(names) > 1 else _greek(names[0])


def readable(label: str) -> str:
    """What tells runs apart, with Greek letters for settings that are named after one.

    :param label: of a line or a panel.

    >>> readable("conv, beta = 4"), readable("beta")
    ('conv, β = 4', 'beta')
    """
    return re.sub(r"\b\w+(?= = )", lambda match: _greek(match[0]), label)


def _greek(name: str) -> str:
    with contextlib.suppress(KeyError):
        return unicodedata.lookup(f"GREEK SMALL LETTER {name}")
    return name


def draw_line(axes: Axes, rows: Rows, *, colour: str, marker: str, label: str, dashed: bool = False) -> None:
    """Means along a setting with bands of their intervals, or with the values of up to three runs.

    :param axes: where.
    :param rows: with mean, low and high for each strength.
    :param colour: of line and band.
    :param marker: its shape.
    :param label: in the legend.
    :param dashed: (default False) whether the line is dashed.
    """
    at = positions(rows)
    x = [at[row["strength"]] for row in rows]
    draw_means(axes, x, rows, colour=colour, marker=marker, label=label, dashed=dashed)


def draw_by_strength(
    rows: Rows,
    panel: str,
    line: str,
    labels: dict[str, str],
    colours: dict[str, str] | None = None,
    *,
    dashed: Collection[str] = (),
    share_y: bool = False,
) -> Figure:
    """Lines with bands against a setting, in panels.

    :param rows: of a figure.
    :param panel: the column that says in which panel a row is.
    :param line: the column that says on which line it is.
    :param labels: of the vertical axis, by panel.
    :param colours: (default: of the palette) of the lines.
    :param dashed: (default none) lines that are there to compare with, grey and dashed.
    :param share_y: (default False) whether all panels have the same vertical axis.
    """
    titles, lines = names_in(rows, panel), names_in(rows, line)
    figure, all_axes = panels(titles, share_y=share_y)
    plain = [name for name in lines if name not in dashed]
    colours = {**(colours or colours_of(plain)), **dict.fromkeys(dashed, QUIET)}
    markers = {**markers_of(plain), **dict.fromkeys(dashed, "")}
    for axes, title in zip(all_axes, titles, strict=True):
        here = tuple(row for row in rows if row[panel] == title)
        for name in names_in(here, line):
            line_rows = tuple(row for row in here if row[line] == name)
            draw_line(
                axes, line_rows, colour=colours[name], marker=markers[name], label=name, dashed=name in dashed
            )
        mark_strengths(axes, here)
        if not share_y or axes is all_axes[0]:
            axes.set_ylabel(labels[title], parse_math=False)
    add_legend(figure, all_axes)
    return figure


def add_legend(figure: Figure, all_axes: Sequence[Axes]) -> None:
    """One legend below all panels; none where there is one thing to see.

    :param figure: the whole.
    :param all_axes: its axes.
    """
    handles = {
        label: handle
        for axes in all_axes
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    several = len(handles) > 1
    handles.pop(ALL, None)
    if several:
        width, longest = figure.get_size_inches()[0], max(map(len, handles))
        fit = max(1, int(width / (0.45 + 0.06 * longest)))
        n_rows = -(-len(handles) // fit)
        labels = list(map(readable, handles))
        add_legend_below(figure, list(handles.values()), labels, -(-len(handles) // n_rows))


def add_labels(axes: Axes, rows: Rows, x: str, y: str, *, joined: bool = False) -> None:
    """The strength beside each point, with its name beside the first of each setting.

    :param axes: where.
    :param rows: one for each point.
    :param x: the column of its position on the horizontal axis.
    :param y: and on the vertical one.
    :param joined: (default False) whether a line joins the points, which labels are to avoid.
    """
    named = set()
    heights = [number_in(row, y) for row in rows]
    for row, height, following in zip(rows, heights, [*heights[1:], heights[-1]], strict=True):
        value, point = show(row["strength"]), (number_in(row, x), height)
        text = value if row["setting"] in named else f"{setting_in_words((row,))} = {value}"
        named.add(row["setting"])
        beside = (5, -8) if joined and following > height else (5, 4)
        axes.annotate(
            text, point, beside, textcoords="offset points", fontsize=6.5, color=INK, parse_math=False,
            bbox={"facecolor": "white", "alpha": 0.75, "lw": 0, "pad": 0.4}, zorder=4,
        )  # fmt: skip
    axes.margins(x=0.12)


def values_alone(labels: Sequence[str]) -> tuple[str, list[str]] | None:
    """The one setting that all labels name, and its values; None where they name several or none.

    >>> values_alone(["beta = 1", "beta = 16"]), values_alone(["beta = 1", "conv, beta = 1"]), values_alone(["conv"])
    (('beta', ['1', '16']), None, None)

    :param labels: what tells groups of runs apart.
    """
    parts = [label.partition(" = ") for label in labels]
    names = {name for name, _, value in parts if value and "," not in name + value}
    if len(names) != 1 or len({name for name, _, _ in parts}) != 1:
        return None
    return names.pop(), [value for _, _, value in parts]


def draw_interval(axes: Axes, row: Row, x: float, colour: str) -> None:
    """Draw an interval as a vertical line, if there is one, or the points of two or three runs.

    :param axes: where.
    :param row: with low and high.
    :param x: where on the axis.
    :param colour: of the line.
    """
    if points_in(row):
        draw_points(axes, row, x, colour)
    elif row["low"] is not None:
        axes.plot([x, x], [number_in(row, "low"), number_in(row, "high")], color=colour, lw=1, zorder=2)


def note(axes: Axes, text: str) -> None:
    """A quiet text in a corner of the axes.

    :param axes: where.
    :param text: what is said.
    """
    axes.text(
        0.98,
        0.97,
        text,
        transform=axes.transAxes,
        ha="right",
        va="top",
        fontsize=7,
        color=QUIET,
        parse_math=False,
    )
