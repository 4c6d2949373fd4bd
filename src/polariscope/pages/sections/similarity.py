"""The layers of the run with each other, or with those of other runs."""

from __future__ import annotations

from typing import Any

from matplotlib import rc_context

from polariscope.layers.comparison import Comparison
from polariscope.layers.figure import draw_steps
from polariscope.layers.printing import has_matching, sentence, thinned
from polariscope.pages.figures import STYLE, to_svg


def similarity_view(comparison: Comparison) -> dict[str, Any]:
    """What the template shows of the similarity; of checkpoints a dozen steps at most, as in the terminal."""
    found = thinned(comparison.headline())
    lowest = f"scores from {found.values.min():.2f} to {found.values.max():.2f}"
    steps = None
    # The figures have their own style; only how text is written is the page's, and how fine maps of many cells are.
    style: dict[Any, Any] = {name: STYLE[name] for name in ("svg.fonttype", "svg.hashsalt")}
    with rc_context({**style, "savefig.dpi": 200}):
        chart = to_svg(found.figure(), "similarity", f"{sentence(found)}; {lowest}.")
        if comparison.is_course:
            maps = {layer: thinned(comparison.between_steps(layer)) for layer in comparison.layers}
            words = f"{found.measure} of each layer, step against step: {', '.join(maps)}."
            steps = to_svg(draw_steps(maps), "similarity-steps", words)
    pairs = found.matching() if has_matching(found) else {}
    return {"comparison": comparison, "found": found, "chart": chart, "steps": steps, "matching": pairs}
