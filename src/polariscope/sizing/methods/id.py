"""Intrinsic dimension of the data, without a model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from annotated_types import Predicate

from polariscope.analysis.dimension import family as estimators
from polariscope.analysis.intrinsic_dimension import intrinsic_dimension
from polariscope.core.errors import InputError
from polariscope.core.options import check_options
from polariscope.sizing.candidates import AbstractCandidates
from polariscope.sizing.goal import Goal
from polariscope.sizing.methods import method
from polariscope.sizing.result import DIMENSION, SeedResult


def is_estimator(dimension: str | Mapping[str, object]) -> bool:
    """Return True if an estimator with these options exists; otherwise an error describes the problem.

    :param dimension: a name, or a mapping with a name and options
    """
    estimator_of(dimension)
    return True


def estimator_of(dimension: str | Mapping[str, object]) -> tuple[str, dict[str, Any]]:
    """Return the name of an estimator and its options, checked.

    :param dimension: a name, or a mapping with a name and options
    """
    options = {"name": dimension} if isinstance(dimension, str) else dict(dimension)
    if "name" not in options:
        raise InputError(problem="dimension requires a 'name' if it is a mapping", got=sorted(options))
    name = str(options.pop("name"))
    return name, check_options(f"{estimators.noun} {name!r}", estimators[name], options)


@method(
    "id",
    statistic=DIMENSION,
    trains=False,
    needs_variances=False,
    threshold=None,
    interval="sampling of the points, not bias",
    uses=(),
)
def intrinsic(
    candidates: AbstractCandidates,
    goal: Goal,  # noqa: ARG001 (part of the signature of every method)
    *,
    dimension: Annotated[str | Mapping[str, object], Predicate(is_estimator)] | None = None,
) -> SeedResult:
    """Estimate the intrinsic dimension of the data, rounded; no model is trained.

    The estimate does not depend on the network. A manifold of dimension d can require more than d latents to be
    flattened (a circle requires 2), and noise has a dimension too. Published values differ much from FONDUE's answers
    (bonheme2023: 4 and 19 on SymSol).

    :param candidates: source of the observations
    :param goal: the goal of the search, which is not used
    :param dimension: (default none) estimator of the dimension, by name or with its options, as
        {"name": "mle", "k": 20}; none: maximum likelihood in its stable range of k, checked by TwoNN
    """
    if dimension is None:
        estimate = intrinsic_dimension(candidates.observations(), seed=candidates.seed)
    else:
        name, options = estimator_of(dimension)
        estimate = estimators[name](candidates.observations(), **{"seed": candidates.seed, **options})
    low, high = estimate.interval
    return SeedResult(estimate.rounded, (round(low), round(high)), (), estimate.notes)
