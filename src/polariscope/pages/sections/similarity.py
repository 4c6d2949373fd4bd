"""Similarity of the layers of the run with each other, or with those of other runs."""

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
    """Similarity of layers."""

    def measure(self, subject: Subject) -> Comparison | None:
        """Return the newest cached comparison of a run."""
        stored = subject.newest("comparison")
        if stored is None:
            return None
        from polariscope.layers.comparison import Comparison

        return Comparison.from_dict(stored)

    def applies(self, record: ReportRecord) -> bool:
        """Return whether there is a comparison, or a run that can be compared."""
        return record.settings is not None or super().applies(record)

    def view(self, record: ReportRecord) -> dict[str, Any]:
        """Return heat maps, and the similarity of layers of the same name."""
        part: Comparison | None = self.part(record)
        return {"comparison": None} if part is None else similarity_view(part)


def similarity_view(comparison: Comparison) -> dict[str, Any]:
    """Return the values for the template; as on the terminal, at most a dozen checkpoints are shown."""
    from polariscope.layers.figure import draw_steps
    from polariscope.layers.labels import has_matching, sentence, thinned

    heat_map = thinned(comparison.headline())
    lowest = f"scores from {heat_map.values.min():.2f} to {heat_map.values.max():.2f}"
    steps = None
    # The figures set their own style. The page only determines how text is embedded and the resolution of large maps.
    style: dict[Any, Any] = {name: STYLE[name] for name in ("svg.fonttype", "svg.hashsalt")}
    with rc_context({**style, "savefig.dpi": 200}):
        chart = to_svg(heat_map.figure(), "similarity", f"{sentence(heat_map)}; {lowest}.")
        if comparison.is_course:
            maps = {layer: thinned(comparison.between_steps(layer)) for layer in comparison.layers}
            alternative = f"{heat_map.measure} of each layer between steps: {', '.join(maps)}."
            steps = to_svg(draw_steps(maps), "similarity-steps", alternative)
    pairs = heat_map.matching() if has_matching(heat_map) else {}
    return {"comparison": comparison, "heat_map": heat_map, "chart": chart, "steps": steps, "matching": pairs}
