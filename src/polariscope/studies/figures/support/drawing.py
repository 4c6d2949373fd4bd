"""Drawing of rows with the figure kit: panels, lines against a strength, labels and legends."""

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
MIN_RATIO = 10
"""Ratio of the largest to the smallest strength above which an axis is logarithmic."""


def panels(
    titles: Sequence[str],
    *,
    height: float = HEIGHT,
    max_columns: int = 3,
    share_y: bool = False,
    narrow: bool = False,
) -> tuple[Figure, list[Axes]]:
    """Create axes side by side: one has the width of a column, several have that of a page.

    :param titles: titles of the panels; "all runs" is not written.
    :param height: (default 2.2) height of a row of panels in inches.
    :param max_columns: (default 3) maximum number of panels in a row.
    :param share_y: (default False) use the same vertical axis for all panels.
    :param narrow: (default False) make two panels together as wide as a column.
    """
    across = min(max_columns, len(titles))
    down = -(-len(titles) // across)
    width = COLUMN if across == 1 or (narrow and across == 2) else PAGE
    figure, used = axes_grid((width, height * down + 0.3), len(titles), across, share_y=share_y)
    for axes, title in zip(used, titles, strict=True):
        # Names can contain a dollar sign, which matplotlib would read as mathematics.
        axes.set_title("" if title == ALL else readable(title), parse_math=False)
    return figure, used


def names_in(rows: Rows, column: str) -> list[str]:
    """Return the different values of a column as strings, in order of appearance.

    :param rows: rows of a figure.
    :param column: name of the column.
    """
    return list(dict.fromkeys(str(row[column]) for row in rows if row.get(column) is not None))


def colours_of(names: Sequence[str]) -> dict[str, str]:
    """Return a colour for each name.

    :param names: names of lines.
    """
    return {name: PALETTE[index % len(PALETTE)] for index, name in enumerate(names)}


def markers_of(names: Sequence[str]) -> dict[str, str]:
    """Return a marker shape for each name, so lines do not differ by colour alone.

    :param names: names of lines.
    """
    return {name: MARKERS[index % len(MARKERS)] for index, name in enumerate(names)}


def positions(rows: Rows, column: str = "strength") -> dict[object, float]:
    """Return the axis position of each value of a setting: the value if all are numbers, otherwise its index.

    :param rows: rows of a figure.
    :param column: (default "strength") column of the setting's values.
    """
    values = sorted({row[column] for row in rows}, key=in_order)
    if all(isinstance(value, int | float) for value in values):
        return {value: float(value) for value in values}  # type: ignore[arg-type]
    return {value: float(index) for index, value in enumerate(values)}


def mark_strengths(axes: Axes, rows: Rows) -> None:
    """Label the axis of a setting; a few values become its ticks, and a wide range gets a logarithmic axis.

    :param axes: axes to label.
    :param rows: rows of the figure.
    """
    ticks = positions(rows)
    numeric = all(isinstance(value, int | float) for value in ticks)
    ends = sorted(ticks.values())
    if numeric and ends[0] > 0 and ends[-1] / ends[0] >= MIN_RATIO:
        axes.set_xscale("log")
    if len(ticks) <= 8:
        axes.set_xticks(list(ticks.values()), [show(value) for value in ticks])
        # A logarithmic axis would label minor ticks as well.
        axes.set_xticks([], minor=True)
    if not numeric:
        axes.set_xlim(-0.4, len(ticks) - 0.6)
    axes.set_xlabel(setting_in_words(rows), parse_math=False)


def setting_in_words(rows: Rows) -> str:
    """Return the name of the setting on the axis, or its Greek letter; "strength" if there are several.

    :param rows: rows of a figure.

    >>> setting_in_words(({"setting": "beta"},)), setting_in_words(({"setting": "n_latents"},))
    ('β', 'n_latents')
    """
    names = names_in(rows, "setting")
    return "strength" if len(names) > 1 else _greek(names[0])


def readable(label: str) -> str:
    """Return a label with Greek letters for settings that are named after one.

    :param label: label of a line or a panel.

    >>> readable("conv, beta = 4"), readable("beta")
    ('conv, β = 4', 'beta')
    """
    return re.sub(r"\b\w+(?= = )", lambda match: _greek(match[0]), label)


def _greek(name: str) -> str:
    with contextlib.suppress(KeyError):
        return unicodedata.lookup(f"GREEK SMALL LETTER {name}")
    return name


def draw_line(axes: Axes, rows: Rows, *, colour: str, marker: str, label: str, dashed: bool = False) -> None:
    """Draw means along a setting with bands of their intervals, or with the values of up to three runs.

    :param axes: axes to draw on.
    :param rows: rows with mean, low and high for each strength.
    :param colour: colour of line and band.
    :param marker: marker shape.
    :param label: label in the legend.
    :param dashed: (default False) draw a dashed line.
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
    """Draw lines with bands against a setting, in panels.

    :param rows: rows of a figure.
    :param panel: name of the column with a row's panel.
    :param line: name of the column with a row's line.
    :param labels: labels of the vertical axis, by panel.
    :param colours: (default: the palette) colours of the lines.
    :param dashed: (default none) names of reference lines, which are grey and dashed.
    :param share_y: (default False) use the same vertical axis for all panels.
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
    """Add one legend below all panels, unless there is only one entry.

    :param figure: the figure.
    :param all_axes: its axes.
    """
    handles = {
        label: handle
        for axes in all_axes
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    # Counted before "all runs" is removed, because one other entry still has to be named.
    several = len(handles) > 1
    handles.pop(ALL, None)
    if several:
        width, longest = figure.get_size_inches()[0], max(map(len, handles))
        # About 0.06 inches for a letter and 0.45 for the line next to the label.
        fit = max(1, int(width / (0.45 + 0.06 * longest)))
        n_rows = -(-len(handles) // fit)
        labels = list(map(readable, handles))
        add_legend_below(figure, list(handles.values()), labels, -(-len(handles) // n_rows))


def add_labels(axes: Axes, rows: Rows, x: str, y: str, *, joined: bool = False) -> None:
    """Label each point with its strength; the first point of each setting also gets the setting's name.

    :param axes: axes to label.
    :param rows: one row for each point.
    :param x: column of the horizontal position.
    :param y: column of the vertical position.
    :param joined: (default False) the points are joined by a line, which labels should avoid.
    """
    named = set()
    heights = [number_in(row, y) for row in rows]
    for row, height, following in zip(rows, heights, [*heights[1:], heights[-1]], strict=True):
        value, point = show(row["strength"]), (number_in(row, x), height)
        text = value if row["setting"] in named else f"{setting_in_words((row,))} = {value}"
        named.add(row["setting"])
        # Below the point if the line rises from it, otherwise above.
        beside = (5, -8) if joined and following > height else (5, 4)
        axes.annotate(
            text, point, beside, textcoords="offset points", fontsize=6.5, color=INK, parse_math=False,
            bbox={"facecolor": "white", "alpha": 0.75, "lw": 0, "pad": 0.4}, zorder=4,
        )  # fmt: skip
    axes.margins(x=0.12)


def values_alone(labels: Sequence[str]) -> tuple[str, list[str]] | None:
    """Return the setting that all labels name, and its values; None if they name several settings or none.

    >>> values_alone(["beta = 1", "beta = 16"]), values_alone(["beta = 1", "conv, beta = 1"]), values_alone(["conv"])
    (('beta', ['1', '16']), None, None)

    :param labels: labels of groups of runs.
    """
    parts = [label.partition(" = ") for label in labels]
    names = {name for name, _, value in parts if value and "," not in name + value}
    if len(names) != 1 or len({name for name, _, _ in parts}) != 1:
        return None
    return names.pop(), [value for _, _, value in parts]


def draw_interval(axes: Axes, row: Row, x: float, colour: str) -> None:
    """Draw an interval as a vertical line, if there is one, or the points of two or three runs.

    :param axes: axes to draw on.
    :param row: row with low and high.
    :param x: position on the horizontal axis.
    :param colour: colour of the line.
    """
    if points_in(row):
        draw_points(axes, row, x, colour)
    elif row["low"] is not None:
        axes.plot([x, x], [number_in(row, "low"), number_in(row, "high")], color=colour, lw=1, zorder=2)


def note(axes: Axes, text: str) -> None:
    """Write a grey text into a corner of the axes.

    :param axes: axes to write on.
    :param text: the text.
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
