"""The data's intrinsic dimension, without any model."""

from __future__ import annotations

from polariscope.analysis.dimension.support.stability import intrinsic_dimension
from polariscope.sizing import AbstractCandidates, Found, Goal, method


@method(
    "id",
    statistic="intrinsic dimension",
    trains=False,
    needs_variances=False,
    threshold=None,
    interval="sampling of the points, not bias",
    uses=(),
)
def intrinsic(candidates: AbstractCandidates, goal: Goal) -> Found:  # noqa: ARG001 (every method is given one)
    """Intrinsic dimension of the data, rounded: no training, and no regard to what a network can learn.

    A manifold of dimension d may need more than d latents to be flattened (a circle needs 2), and noise has a
    dimension too: published values differ from FONDUE's by factors (bonheme2023: 4 against 19 on SymSol).

    :param candidates: trains and encodes a model for any number of latents.
    :param goal: what is sought, and within which limits.
    """
    found = intrinsic_dimension(candidates.observations(), seed=candidates.seed)
    low, high = found.interval
    return Found(found.rounded, (round(low), round(high)), (), found.notes)
