"""Tools for figures: axes, bands, points, cells and legends, and reproducible output as files or SVG elements.

Colours and settings are in ``figure_style.py``, images in ``pictures.py``. Matplotlib is imported on use, because most
commands do not draw.
"""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from markupsafe import Markup

from polariscope.core import files
from polariscope.core.errors import InputError
from polariscope.core.figure_style import INK

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.axes._secondary_axes import SecondaryAxis
    from matplotlib.axis import Axis
    from matplotlib.cm import ScalarMappable
    from matplotlib.colorbar import Colorbar
    from matplotlib.figure import Figure

Format = Literal["svg", "pdf", "png"]
UNDATED: dict[str, dict[str, None]] = {
    "svg": {"Date": None, "Creator": None},
    "pdf": {"CreationDate": None},
    "png": {"Software": None},
}
"""Metadata to leave out, by format, because they would differ between calls."""
COLUMN, PAGE = 3.4, 7.0
"""Width of a column and of a page, in inches."""
PANEL, SMALL = (3.6, 2.3), (2.6, 1.7)
"""Width and height in inches of a chart on a page, and of one of many charts."""
DASHES = (0, (4, 3))
"""Line style of thresholds and references."""
MAX_POINTS = 3
"""Maximum number of values that are drawn as points; their interval would be too wide to be useful."""


def new_figure(size: tuple[float, float]) -> Figure:
    """Create an empty figure with constrained layout, independent of pyplot.

    :param size: width and height in inches.
    """
    from matplotlib.figure import Figure

    return Figure(figsize=size, layout="constrained")


def single_axes(size: tuple[float, float], title: str = "") -> tuple[Figure, Axes]:
    """Create a figure with one pair of axes.

    :param size: width and height in inches.
    :param title: (default: none) title of the axes.
    """
    figure = new_figure(size)
    axes = figure.add_subplot()
    # Titles contain names of columns and files, in which a dollar sign is not mathematics.
    axes.set_title(title, parse_math=False)
    return figure, axes


def axes_grid(
    size: tuple[float, float],
    n_axes: int,
    n_columns: int | None = None,
    *,
    share_x: bool = False,
    share_y: bool = False,
) -> tuple[Figure, list[Axes]]:
    """Create a figure with axes in rows; unused cells of the grid are empty.

    :param size: width and height in inches.
    :param n_axes: number of axes.
    :param n_columns: (default: all in one row) number of axes in a row.
    :param share_x: (default False) if True, all share the horizontal axis.
    :param share_y: (default False) if True, all share the vertical axis.
    """
    n_columns = n_columns or n_axes
    figure = new_figure(size)
    # The double negation rounds the number of rows up.
    grid = figure.subplots(-(-n_axes // n_columns), n_columns, squeeze=False, sharex=share_x, sharey=share_y)
    for unused in grid.flat[n_axes:]:
        unused.set_axis_off()
    return figure, list(grid.flat[:n_axes])


def hide_frame(axes: Axes | SecondaryAxis) -> None:
    """Hide the lines around axes.

    :param axes: the axes.
    """
    for spine in axes.spines.values():
        spine.set_visible(False)


def add_colour_bar(
    figure: Figure,
    mesh: ScalarMappable,
    axes: Axes | Sequence[Axes],
    *,
    shrink: float = 1.0,
    ticks: Sequence[int | float] | None = None,
    label: str = "",
    format: str | None = None,
) -> Colorbar:
    """Add a colour bar without a frame.

    :param figure: the figure.
    :param mesh: the coloured artist.
    :param axes: the axes next to which the colour bar is drawn.
    :param shrink: (default 1) length relative to that of the axes.
    :param ticks: (default: chosen by matplotlib) positions of the ticks.
    :param label: (default: none) text next to the colour bar.
    :param format: (default: that of matplotlib) format of the tick labels.
    """
    bar = figure.colorbar(mesh, ax=axes, shrink=shrink, ticks=ticks, label=label, format=format)
    bar.outline.set_visible(False)
    return bar


def write_cell(
    axes: Axes, x: int | float, y: int | float, text: str, *, on_dark: bool, size: int | float = 6.5
) -> None:
    """Write a text in the middle of a cell of a heat map.

    :param axes: the axes.
    :param x: horizontal centre of the cell.
    :param y: vertical centre of the cell.
    :param text: the text; a hyphen becomes a minus sign.
    :param on_dark: if True, the cell is dark, so the text is white.
    :param size: (default 6.5) size of the font.
    """
    colour = "white" if on_dark else INK
    axes.text(x, y, text.replace("-", "−"), ha="center", va="center", fontsize=size, color=colour)


def plain_log_ticks(axis: Axis) -> None:
    """Mark 1, 2 and 5 of each decade of a logarithmic axis with plain numbers.

    :param axis: the axis, whose scale is logarithmic.
    """
    from matplotlib.ticker import LogLocator, NullFormatter

    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(lambda value, _: f"{value:g}")
    axis.set_minor_formatter(NullFormatter())


def number_in(row: Mapping[str, object], column: str) -> float:
    """Return a number of a row.

    :param row: row of the numbers behind a figure.
    :param column: name of a column that contains a number.
    """
    value = row[column]
    assert isinstance(value, int | float)
    return float(value)


def point_cells(values: Sequence[float]) -> dict[str, float]:
    """Return two or three values as cells for :func:`points_in`; more values are shown by their interval.

    >>> point_cells([2.0, 1.0]), point_cells([1.0])
    ({'point.1': 1.0, 'point.2': 2.0}, {})

    :param values: values of the runs behind a mean.
    """
    if not 2 <= len(values) <= MAX_POINTS:
        return {}
    return {f"point.{index}": value for index, value in enumerate(sorted(values), 1)}


def points_in(row: Mapping[str, object]) -> list[float]:
    """Return the values of the runs behind a mean, if there are two or three.

    :param row: row with the cells of :func:`point_cells`.
    """
    return [number_in(row, name) for name in row if name.startswith("point.") and row[name] is not None]


def draw_points(axes: Axes, row: Mapping[str, object], x: float, colour: str) -> None:
    """Draw the values of two or three runs.

    :param axes: the axes.
    :param row: row with the cells of :func:`point_cells`.
    :param x: position on the horizontal axis.
    :param colour: colour of the points.
    """
    values = points_in(row)
    if values:
        axes.plot([x] * len(values), values, ".", color=colour, ms=4, mew=0, alpha=0.6, zorder=2)


def draw_means(
    axes: Axes,
    x: Sequence[float],
    rows: Sequence[Mapping[str, object]],
    *,
    colour: str,
    marker: str,
    label: str,
    dashed: bool = False,
) -> None:
    """Draw a line of means with a band of their intervals, or with the values of up to three runs.

    :param axes: the axes.
    :param x: position of each row on the horizontal axis.
    :param rows: rows with mean, low and high, and the cells of :func:`point_cells`.
    :param colour: colour of line and band.
    :param marker: shape of the markers.
    :param label: label in the legend.
    :param dashed: (default False) if True, the line is dashed.
    """
    means = [number_in(row, "mean") for row in rows]
    axes.plot(x, means, color=colour, marker=marker, label=label, ls="--" if dashed else "-", zorder=3)
    for position, row in zip(x, rows, strict=True):
        draw_points(axes, row, position, colour)
    banded = [
        (position, number_in(row, "low"), number_in(row, "high"))
        for position, row in zip(x, rows, strict=True)
        if row["low"] is not None and not points_in(row)
    ]
    if banded:
        positions, lows, highs = zip(*banded, strict=True)
        axes.fill_between(positions, lows, highs, color=colour, alpha=0.15, lw=0)


def add_legend_below(
    figure: Figure, handles: Sequence[Artist], labels: Sequence[str], n_columns: int
) -> None:
    """Add one legend below all axes.

    :param figure: the figure.
    :param handles: lines and points.
    :param labels: their labels.
    :param n_columns: number of columns.
    """
    figure.legend(handles, labels, loc="outside lower center", ncols=n_columns, labelcolor=INK)


def fix_layout(figure: Figure) -> None:
    """Compute the layout of a figure once; computing it again for every file would shift elements slightly each time.

    :param figure: the figure.
    """
    figure.draw_without_rendering()
    figure.set_layout_engine("none")


def save_figure(figure: Figure, file: str | Path, style: Mapping[str, object], dpi: int) -> Path:
    """Write a figure atomically and return its path; equal figures give equal bytes.

    :param figure: the figure.
    :param file: path; its name ends in .svg, .pdf or .png.
    :param style: settings of matplotlib.
    :param dpi: dots per inch of a PNG file.
    """
    from matplotlib import rc_context

    path = Path(file)
    format = path.suffix.removeprefix(".")
    if format not in get_args(Format):
        raise InputError("out", "end in .svg, .pdf or .png", got=f"{path.name!r}")
    settings: dict[Any, Any] = dict(style)
    with rc_context(settings), files.atomic(path) as part:
        figure.savefig(part, format=format, dpi=dpi, metadata=UNDATED[format])
    return path


def svg_text(figure: Figure, *, transparent: bool = False) -> str:
    """Return a figure as the text of an SVG element.

    :param figure: the figure.
    :param transparent: (default False) if True, the figure has no background.
    """
    file = io.StringIO()
    figure.savefig(file, format="svg", metadata=UNDATED["svg"], transparent=transparent)
    text = file.getvalue()
    # The XML declaration and the document type are not allowed inside a page.
    return text[text.index("<svg") :]


def to_svg(figure: Figure, key: str, alternative: str) -> Markup:
    """Return a figure as an SVG element of a page, as wide as the surrounding element.

    :param figure: the figure.
    :param key: prefix that makes its ids unique in the page.
    :param alternative: alternative text for screen readers.
    """
    _arrange(figure)
    text = svg_text(figure, transparent=True)
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    key = re.sub(r"[^A-Za-z0-9_-]", "-", key)
    # Matplotlib repeats ids, so without a prefix a figure would use the clip paths of another one.
    text = re.sub(r'\bid="([^"]+)"', rf'id="{key}-\1"', text)
    text = re.sub(r"url\(#([^)]+)\)", rf"url(#{key}-\1)", text)
    # HTML resolves href without the XLink namespace, which a page does not declare.
    text = re.sub(r'xlink:href="#([^"]+)"', rf'href="#{key}-\1"', text)
    text = text.replace("xlink:href", "href")
    # The opening tag has a fixed width and height. The new one has only the viewBox, so the figure scales.
    opening = text[: text.index(">") + 1]
    box = re.search(r'viewBox="[^"]+"', opening)
    assert box is not None
    start = Markup('<svg {} role="img" aria-label="{}">').format(Markup(box.group()), alternative)
    return start + Markup(text[len(opening) :].strip())


def _arrange(figure: Figure) -> None:
    """Compute the layout of a figure in advance, because saving would draw the whole figure twice for it."""
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    engine, dpi = figure.get_layout_engine(), figure.dpi
    if engine is not None:
        FigureCanvasSVG(figure)  # so that widths of text are those of the file
        engine.execute(figure)
        figure.set_layout_engine(None)
        figure.dpi = dpi  # the canvas has changed it
