"""The layers of the run with each other, or with those of other runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from matplotlib import rc_context

from polariscope.core.figure_style import STYLE
from polariscope.core.figures import to_svg
from polariscope.pages.sections import AbstractSection, Subject, section

if TYPE_CHECKING:
    from polariscope.layers.comparison import Comparison
    from polariscope.pages.record import ReportRecord


@section("similarity", title="Similarity", order=90)
class SimilaritySection(AbstractSection):
    """Layers compared."""

    def measure(self, subject: Subject) -> Comparison | None:
        """The newest comparison of a run."""
        stored = subject.newest("comparison")
        if stored is None:
            return None
        from polariscope.layers.comparison import Comparison

        return Comparison.from_dict(stored)

    def applies(self, record: ReportRecord) -> bool:
        """A run that was not compared says how to do it."""
        return record.settings is not None or super().applies(record)

    def view(self, record: ReportRecord) -> dict[str, Any]:
        """Heat maps and a list of layers of the same name."""
        part: Comparison | None = self.part(record)
        return {"comparison": None} if part is None else similarity_view(part)


def similarity_view(comparison: Comparison) -> dict[str, Any]:
    """What the template shows of the similarity; of checkpoints a dozen steps at most, as in the terminal."""
    from polariscope.layers.comparison import has_matching, sentence, thinned
    from polariscope.layers.figure import draw_steps

    heat_map = thinned(comparison.headline())
    lowest = f"scores from {heat_map.values.min():.2f} to {heat_map.values.max():.2f}"
    steps = None
    # The figures have their own style; only how text is written is the page's, and how fine maps of many cells are.
    style: dict[Any, Any] = {name: STYLE[name] for name in ("svg.fonttype", "svg.hashsalt")}
    with rc_context({**style, "savefig.dpi": 200}):
        chart = to_svg(heat_map.figure(), "similarity", f"{sentence(heat_map)}; {lowest}.")
        if comparison.is_course:
            maps = {layer: thinned(comparison.between_steps(layer)) for layer in comparison.layers}
            alternative = f"{heat_map.measure} of each layer, step against step: {', '.join(maps)}."
            steps = to_svg(draw_steps(maps), "similarity-steps", alternative)
    pairs = heat_map.matching() if has_matching(heat_map) else {}
    return {"comparison": comparison, "heat_map": heat_map, "chart": chart, "steps": steps, "matching": pairs}
