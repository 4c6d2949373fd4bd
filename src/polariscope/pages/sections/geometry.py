"""The decoder's geometry: how orthogonal its latents are, what noise costs, two latents moved at once."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from matplotlib import rc_context

from polariscope.analysis.regime.regime import Regime
from polariscope.analysis.representation import Representation
from polariscope.core.errors import InputError
from polariscope.data.dataset import AbstractDataset
from polariscope.geometry.figures import draw_orthogonality
from polariscope.geometry.loss_split import LossSplit, split_reconstruction
from polariscope.geometry.orthogonality import N_POINTS, Orthogonality, decoder_orthogonality
from polariscope.geometry.ranges import Scale, range_of
from polariscope.geometry.traversals import MOST_VALUES, Plane, central_sample, traverse_plane
from polariscope.models.model import Model
from polariscope.pages.figures import grids
from polariscope.pages.figures.svg import STYLE, to_svg
from polariscope.pages.views import Views

N_OBSERVATIONS = 200
N_STEPS = 9


@dataclasses.dataclass(frozen=True, eq=False)
class Geometry:
    """What is said of a decoder beyond its traversals."""

    orthogonality: Orthogonality | None
    reason: str
    """Why there is no orthogonality; empty when there is."""
    split: LossSplit
    plane: Plane | None
    """Two latents that say most, moved over a grid; None for flat data and with fewer than two latents in use."""
    scale: Scale
    """In whose standard deviations the plane is measured."""


def geometry_of(
    model: Model, dataset: AbstractDataset, representation: Representation, regime: Regime, seed: int
) -> Geometry | None:
    """Orthogonality at some codes, loss split of some observations and a plane of images; None without a decoder."""
    if model.decoder is None:
        return None
    in_use = [j for j in regime.order if regime.types[j] != "passive"]
    orthogonality, reason = _orthogonality(model, representation, in_use, seed)
    centre, deviation, scale = range_of(model, representation, seed)
    plane = None
    if len(in_use) > 1 and len(model.blueprint.shape) == 3:
        code = representation.mean[central_sample(representation, centre, deviation)]
        n_steps = max(3, min(N_STEPS, math.isqrt(MOST_VALUES // dataset.n_features)))
        pair = (in_use[0], in_use[1])
        plane = traverse_plane(model, code, pair, n_steps=n_steps, centre=centre, deviation=deviation)
    split = split_reconstruction(model, dataset, n_samples=N_OBSERVATIONS, seed=seed)
    return Geometry(orthogonality, reason, split, plane, scale)


def _orthogonality(
    model: Model, representation: Representation, in_use: list[int], seed: int
) -> tuple[Orthogonality | None, str]:
    if len(in_use) < 2:
        count = "no latent is" if not in_use else f"only latent {in_use[0]} is"
        return None, f"{count} in use, and an angle needs two."
    try:
        codes = representation.mean
        return decoder_orthogonality(model, codes, keep=sorted(in_use), n_points=N_POINTS, seed=seed), ""
    except InputError as error:
        return None, str(error)


def geometry_view(geometry: Geometry, views: Views) -> dict[str, Any]:
    """What the template shows of the geometry."""
    found, plane, split = geometry.orthogonality, geometry.plane, geometry.split
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
        "unit": {"codes": "their own spread over the data"}.get(geometry.scale, f"the {geometry.scale}"),
    }
