"""Style of all figures: colours that colour-blind readers can distinguish, and settings of matplotlib."""

from __future__ import annotations

from typing import Any

INK, QUIET, LINE = "#1f2933", "#5b6570", "#d8dee4"
TEAL, ORANGE, GREY, SLATE, RUST = "#0f8b8d", "#e08e0b", "#9aa3ad", "#44546a", "#c2410c"
TRAIN, VALIDATION = SLATE, RUST
"""Colours of training and validation, and of other pairs."""
DIVERGING, SEQUENTIAL, CYCLIC = "RdBu_r", "viridis", "twilight"
PALETTE = (TEAL, ORANGE, "#2b2f77", "#a8320a", "#86cdf0", "#c77cff", "#e8d94a")
"""Colours of lines and points, in the order of their use; after the last the first is used again."""
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
"""Marker shapes paired with the colours, so figures are readable in greyscale."""

STYLE: dict[Any, Any] = {
    # Text stays text, so it can be selected and searched.
    "svg.fonttype": "none",
    "svg.hashsalt": "polariscope",  # makes the bytes of a figure reproducible
    "font.family": "sans-serif",
    "font.size": 8.5,
    "axes.titlesize": 9.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": LINE,
    "axes.labelcolor": QUIET,
    "axes.titlecolor": INK,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#eef1f4",
    "xtick.color": QUIET,
    "ytick.color": QUIET,
    "xtick.major.size": 0,
    "ytick.major.size": 0,
    "ytick.minor.size": 0,
    "lines.linewidth": 1.5,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "path.simplify": True,
}
"""Settings for figures on pages."""
PRINT: dict[Any, Any] = {
    **STYLE,
    "pdf.fonttype": 42,  # embeds text as text, as journals require
    "font.size": 8,
    "axes.titlesize": 8.5,
    "axes.edgecolor": QUIET,
    "axes.labelcolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "xtick.minor.size": 0,
    "lines.linewidth": 1.3,
    "lines.markersize": 3.5,
    "legend.fontsize": 7.5,
}
"""Settings for printed figures: text is embedded as text, in the size of captions in papers."""
