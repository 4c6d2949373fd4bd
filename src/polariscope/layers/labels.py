"""Labels of layers and texts of heat maps, shared by figures, tables and pages."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from polariscope.layers.comparison import HeatMap

Block = Literal["encoder", "latent", "decoder", "layers", "steps"]
LATENT = ("mean", "variance", "sampled")
MAX_STEPS = 12  # rows of a table or figure; similarity.json contains all
NOTHING_SHARED = (
    "No layer has the same name in all models, so there is no mean over all of them. Give matching layers the same "
    "name, or compare two models with average(one, other)."
)


def block_of(layer: str) -> Block:
    """Return the part of a network that a layer belongs to; the input belongs to the encoder, a step to the steps.

    >>> block_of("input"), block_of("sampled"), block_of("decoder/2"), block_of("conv1"), block_of("step 4")
    ('encoder', 'latent', 'decoder', 'layers', 'steps')
    """
    if layer.startswith("step "):
        return "steps"
    if layer == "input" or layer.startswith("encoder/"):
        return "encoder"
    return "latent" if layer in LATENT else "decoder" if layer.startswith("decoder/") else "layers"


def blocks_of(layers: tuple[str, ...]) -> dict[Block, tuple[int, int]]:
    """Return the first index, and the index after the last, of each block of neighbouring layers."""
    blocks: dict[Block, tuple[int, int]] = {}
    for index, layer in enumerate(layers):
        block = block_of(layer)
        blocks[block] = (blocks.get(block, (index, index))[0], index + 1)
    return blocks


def short(layer: str) -> str:
    """Return a short name of a layer, or the number of a step, for the head of a column.

    >>> [short(name) for name in ("input", "encoder/1", "mean", "variance", "sampled", "decoder/12", "step 400")]
    ['in', 'e1', 'μ', 'σ²', 'z', 'd12', '400']
    """
    known = {"input": "in", "mean": "μ", "variance": "σ²", "sampled": "z"}
    part, slash, number = layer.partition("/")
    plain = layer.removeprefix("step ")
    return known.get(layer, f"{part[0]}{number}" if slash and number.isdigit() else plain)


def cell(value: float) -> str:
    """Format a score with two digits in as few characters as possible.

    >>> cell(0.934), cell(1.0), cell(0.9999), cell(-0.05), cell(-0.001)
    ('.93', '1.0', '1.0', '-.05', '.00')
    """
    text = f"{value:.2f}"
    if text == "-0.00":
        text = "0.00"
    return "1.0" if text == "1.00" else text.replace("0.", ".", 1)


def sentence(heat_map: HeatMap) -> str:
    """Describe the comparison and its samples."""
    subject = heat_map.about or (
        f"{heat_map.row_label} (rows) with {heat_map.column_label} (columns)"
        if heat_map.row_label != heat_map.column_label
        else f"{heat_map.row_label}, layers with each other"
    )
    pairs = f", mean of {heat_map.n_pairs} {mean_of(heat_map)}" if heat_map.n_pairs > 1 else ""
    return f"{heat_map.measure}: {subject}{pairs}, {heat_map.n_samples:,} samples"


def mean_of(heat_map: HeatMap) -> str:
    """Return the name of the units over which a heat map is averaged."""
    return "runs" if heat_map.about else "pairs of models"


def has_matching(heat_map: HeatMap) -> bool:
    """Return True if layers of the same name are listed: not for one model with itself, nor for steps."""
    several = heat_map.row_label != heat_map.column_label or heat_map.n_pairs > 1
    return not heat_map.about and several and bool(heat_map.matching())


def thinned(heat_map: HeatMap) -> HeatMap:
    """Return the heat map with at most 12 steps, evenly spread from the first to the last, with a note in its title."""
    n = len(heat_map.rows)
    if not heat_map.about or n <= MAX_STEPS:
        return heat_map
    selected = [round(index * (n - 1) / (MAX_STEPS - 1)) for index in range(MAX_STEPS)]
    both = heat_map.rows == heat_map.columns

    def cut(table: Any) -> Any:
        return None if table is None else table[selected][:, selected] if both else table[selected]

    return dataclasses.replace(
        heat_map,
        values=cut(heat_map.values),
        errors=cut(heat_map.errors),
        spread=cut(heat_map.spread),
        rows=tuple(heat_map.rows[index] for index in selected),
        columns=tuple(heat_map.columns[index] for index in selected) if both else heat_map.columns,
        about=f"{heat_map.about} ({MAX_STEPS} of {n} steps)",
    )
