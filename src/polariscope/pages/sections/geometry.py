"""The decoder's geometry: how orthogonal its latents are, what noise costs, two latents moved at once."""

from __future__ import annotations

from typing import Any

from matplotlib import rc_context

from polariscope.geometry.figures import draw_orthogonality
from polariscope.geometry.summary import Geometry
from polariscope.pages.figures import STYLE, grids, to_svg
from polariscope.pages.views import Views


def geometry_view(geometry: Geometry, views: Views) -> dict[str, Any]:
    """What the template shows of the geometry."""
    found, plane, split = geometry.orthogonality, views.plane, geometry.split
    both = split.deterministic + split.stochastic
    chart = None
    if found is not None:
        with rc_context(STYLE):
            words = (
                f"Distance to orthogonality of {len(found.distances)} points, on average {found.value:.2f}, where "
                f"random rotations have {found.haar:.2f}; and cosines between the columns of the Jacobian."
            )
            chart = to_svg(draw_orthogonality(found), "orthogonality", words)
    return {
        "orthogonality": found,
        "chart": chart,
        "reason": geometry.reason,
        "split": split,
        "bar": round(100 * split.deterministic / both, 1) if both > 0 else 0.0,
        "plane": None if plane is None else grids.data_uri(grids.sheet(plane.outputs, views.display_range)),
        "pair": None if plane is None else plane.latents,
        "reach": 0.0 if plane is None else float(plane.values[-1]),
        "unit": {"codes": "their own spread over the data"}.get(views.scale, f"the {views.scale}"),
    }
