"""Figures of the pages: SVG elements of one style and one palette, with unique ids and no outside resource."""

from __future__ import annotations

import io
import re
from typing import Any

from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from polariscope.analysis.regime.types import VariableType

COLOURS: dict[VariableType, str] = {"active": "#0f8b8d", "mixed": "#e08e0b", "passive": "#9aa3ad"}
"""One colour per type of latent, told apart by readers of every kind of colour vision."""
TRAIN, VALIDATION = "#44546a", "#c2410c"
INK, QUIET, LINE = "#1f2933", "#5b6570", "#d8dee4"
DIVERGING = "RdBu_r"

STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "polariscope",  # the same figure has the same bytes
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
PANEL = (3.6, 2.3)
SMALL = (2.6, 1.7)


def to_svg(figure: Figure, key: str, alternative: str) -> Markup:
    """A figure as an SVG element as wide as its place; ``key`` makes its ids unique in the page."""
    file = io.StringIO()
    figure.savefig(file, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    text = file.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    key = re.sub(r"[^A-Za-z0-9_-]", "-", key)
    text = re.sub(r'\bid="([^"]+)"', rf'id="{key}-\1"', text)
    text = re.sub(r"url\(#([^)]+)\)", rf"url(#{key}-\1)", text)
    text = re.sub(r'xlink:href="#([^"]+)"', rf'href="#{key}-\1"', text)
    text = text.replace("xlink:href", "href")
    opening = text[: text.index(">") + 1]
    box = re.search(r'viewBox="[^"]+"', opening)
    assert box is not None
    start = Markup('<svg {} role="img" aria-label="{}">').format(Markup(box.group()), alternative)
    return start + Markup(text[len(opening) :].strip())


def panel(size: tuple[float, float], title: str) -> tuple[Figure, Axes]:
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.add_subplot()
    axes.set_title(title, parse_math=False)
    return figure, axes
