"""Geometry of the decoder: orthogonality, error added by posterior noise, and a grid over two latents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from matplotlib import rc_context

from polariscope.core.figure_style import STYLE
from polariscope.core.figures import to_svg
from polariscope.core.pictures import data_uri, sheet
from polariscope.pages.sections import AbstractSection, Subject, section

if TYPE_CHECKING:
    from polariscope.geometry.summary import Geometry
    from polariscope.pages.record import ReportRecord
    from polariscope.pages.sections.decoder import Views


@section("geometry", title="Geometry", order=80)
class GeometrySection(AbstractSection):
    """Geometry of the decoder."""

    def measure(self, subject: Subject) -> Geometry | None:
        """Return the geometry, cached for a run; None without a decoder."""
        if subject.model is None or not subject.model.has_decoder or subject.data is None:
            return None
        if subject.run is not None:
            return subject.run.geometry(subject.regime.alpha, **subject.where)
        from polariscope.geometry.summary import summarise

        return summarise(
            subject.model, subject.data, subject.representation, subject.regime, seed=subject.seed
        )

    def view(self, record: ReportRecord) -> dict[str, Any]:
        """Return the results, a chart, and the grid over two latents."""
        assert record.views is not None
        return geometry_view(self.part(record), record.views)


def geometry_view(geometry: Geometry, views: Views) -> dict[str, Any]:
    """Return the values for the template."""
    from polariscope.geometry.geometry_figures import draw_orthogonality

    orthogonality, plane, split = geometry.orthogonality, views.plane, geometry.split
    both = split.deterministic + split.stochastic
    chart = None
    if orthogonality is not None:
        with rc_context(STYLE):
            alternative = (
                f"Distance to orthogonality of {len(orthogonality.distances)} points, on average "
                f"{orthogonality.value:.2f}, compared with {orthogonality.haar:.2f} for random rotations; "
                "and cosines between the columns of the Jacobian."
            )
            chart = to_svg(draw_orthogonality(orthogonality), "orthogonality", alternative)
    return {
        "orthogonality": orthogonality,
        "chart": chart,
        "reason": geometry.reason,
        "split": split,
        "bar": round(100 * split.deterministic / both, 1) if both > 0 else 0.0,
        "plane": None if plane is None else data_uri(sheet(plane.outputs, views.display_range)),
        "pair": None if plane is None else plane.latents,
        "reach": 0.0 if plane is None else float(plane.values[-1]),
        "unit": {"codes": "their distribution over the data"}.get(views.scale, f"the {views.scale}"),
    }
