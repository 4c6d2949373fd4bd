"""Heat map of a comparison."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from matplotlib import rc_context

from polariscope.core.errors import InputError
from polariscope.core.figure_style import INK, ORANGE, QUIET, SLATE, TEAL
from polariscope.core.figures import add_colour_bar, axes_grid, hide_frame, single_axes, write_cell
from polariscope.layers.labels import NOTHING_SHARED, block_of, blocks_of, cell, mean_of, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import QuadMesh
    from matplotlib.figure import Figure

    from polariscope.layers.comparison import HeatMap

BLOCKS = {"encoder": SLATE, "latent": ORANGE, "decoder": TEAL, "layers": QUIET, "steps": QUIET}
STYLE: dict[Any, Any] = {"font.family": "sans-serif", "font.size": 8.5, "axes.titlelocation": "left"}
NUMBERS_UP_TO = 20  # layers; numbers in more cells would not be legible
MAX_SHAPES = NUMBERS_UP_TO**2  # cells drawn as shapes in a vector graphic; more cells are rasterised
ACROSS = 6  # small heat maps per row


def draw_heat_map(heat_map: HeatMap) -> Figure:
    """Draw the scores of layers with layers; bars and white lines mark encoder, latent and decoder."""
    n_rows, n_columns = heat_map.values.shape
    if not heat_map.values.size:
        raise InputError(problem=f"there is no heat map to draw. {NOTHING_SHARED}")
    with rc_context(STYLE):
        figure, axes = single_axes((2.6 + 0.36 * n_columns, 1.9 + 0.36 * n_rows))
        low = _lowest([heat_map])
        mesh = _draw_cells(axes, heat_map, low, as_pixels=heat_map.values.size > MAX_SHAPES)
        axes.set_xticks([i + 0.5 for i in range(n_columns)], [short(layer) for layer in heat_map.columns])
        axes.set_yticks([i + 0.5 for i in range(n_rows)], [short(layer) for layer in heat_map.rows])
        axes.tick_params(length=0, labelcolor=INK, pad=11)
        axes.xaxis.tick_top()
        hide_frame(axes)
        if max(n_rows, n_columns) <= NUMBERS_UP_TO:
            _write_numbers(axes, heat_map, low)
        _mark_blocks(axes, heat_map)
        axes.set_ylabel(heat_map.row_label, color=INK, fontweight="bold", parse_math=False)
        axes.set_xlabel(heat_map.column_label, color=INK, fontweight="bold", parse_math=False)
        pairs = f", mean of {heat_map.n_pairs} {mean_of(heat_map)}" if heat_map.n_pairs > 1 else ""
        title = f"{heat_map.title or heat_map.measure}{pairs}, {heat_map.n_samples:,} samples"
        figure.suptitle(title, x=0.02, ha="left", fontweight="bold", fontsize=11, color=INK)
        _draw_bar(figure, mesh, axes, low)
    return figure


def draw_steps(maps: dict[str, HeatMap]) -> Figure:
    """Draw a small heat map between steps for each layer; the first step is at the top left."""
    n_columns = min(ACROSS, len(maps))
    n_rows = -(-len(maps) // n_columns)
    with rc_context(STYLE):
        size = (0.9 + 1.15 * n_columns, 0.5 + 1.3 * n_rows)
        figure, grid = axes_grid(size, len(maps), n_columns)
        low = _lowest(maps.values())
        as_pixels = sum(heat_map.values.size for heat_map in maps.values()) > MAX_SHAPES
        for number, (axes, (layer, heat_map)) in enumerate(zip(grid, maps.items(), strict=True)):
            mesh = _draw_cells(axes, heat_map, low, as_pixels=as_pixels)
            axes.set_title(
                layer, color=BLOCKS[block_of(layer)], fontsize=8, fontweight="bold", parse_math=False
            )
            ends = [0.5, len(heat_map.rows) - 0.5]
            steps = [short(heat_map.rows[0]), short(heat_map.rows[-1])]
            axes.set_xticks(ends, steps if number == 0 else ["", ""])
            axes.set_yticks(ends, steps if number == 0 else ["", ""])
            axes.tick_params(length=0, labelcolor=QUIET, labelsize=7)
            hide_frame(axes)
        _draw_bar(figure, mesh, grid, low)
    return figure


def _lowest(maps: Iterable[HeatMap]) -> float:
    """Return the lower end of the colours: −1 if a measure can be negative and is, otherwise 0."""
    # A value that is only slightly negative needs no diverging colours.
    measures = {heat_map.measure for heat_map in maps if heat_map.values.min() < -0.05}
    return -1.0 if any(_can_be_negative(measure) for measure in measures) else 0.0


def _can_be_negative(measure: str) -> bool:
    from polariscope.analysis.similarity import similarity

    return similarity.traits(measure)["bounds"][0] < 0


def _draw_cells(axes: Axes, heat_map: HeatMap, low: float, *, as_pixels: bool) -> QuadMesh:
    colours = "magma" if low == 0 else "RdBu_r"
    # Edges in the colour of the cells hide the gaps that viewers of vector graphics show between them.
    mesh = axes.pcolormesh(
        heat_map.values, cmap=colours, vmin=low, vmax=1, edgecolors="face", lw=0.2, rasterized=as_pixels
    )
    axes.set_aspect("equal")
    axes.invert_yaxis()
    return mesh


def _draw_bar(figure: Figure, mesh: QuadMesh, axes: Any, low: float) -> None:
    ticks = [low, 0, 0.5, 1] if low else [0, 0.5, 1]
    bar = add_colour_bar(figure, mesh, axes, shrink=0.7, ticks=ticks)
    bar.ax.tick_params(length=0, labelcolor=QUIET)


def _write_numbers(axes: Axes, heat_map: HeatMap, low: float) -> None:
    for row, values in enumerate(heat_map.values.tolist()):
        for column, value in enumerate(values):
            # magma is dark for small values, RdBu at both ends.
            dark = value < 0.62 if low == 0 else abs(value) > 0.6
            write_cell(axes, column + 0.5, row + 0.5, cell(value), on_dark=dark)


def _mark_blocks(axes: Axes, heat_map: HeatMap) -> None:
    """Draw a coloured bar along each block of rows and columns, its name on top, and lines through the map."""
    n_rows, n_columns = heat_map.values.shape
    for block, (start, stop) in blocks_of(heat_map.columns).items():
        axes.plot(
            [start + 0.08, stop - 0.08], [-0.22, -0.22], color=BLOCKS[block], lw=4, clip_on=False,
            solid_capstyle="butt",
        )  # fmt: skip
        axes.text(
            (start + stop) / 2, -1.05, block, ha="center", va="bottom", color=BLOCKS[block], fontweight="bold"
        )
        if start:
            axes.axvline(start, color="white", lw=1.6)
    for block, (start, stop) in blocks_of(heat_map.rows).items():
        axes.plot(
            [-0.22, -0.22], [start + 0.08, stop - 0.08], color=BLOCKS[block], lw=4, clip_on=False,
            solid_capstyle="butt",
        )  # fmt: skip
        if start:
            axes.axhline(start, color="white", lw=1.6)
    axes.set_xlim(0, n_columns)
    axes.set_ylim(n_rows, 0)
