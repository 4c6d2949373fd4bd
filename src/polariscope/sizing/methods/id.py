"""The data's intrinsic dimension, without any model."""

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
    """Whether there is such an estimator with such options; refused in words where there is not.

    :param dimension: a name, or a table with a name and options
    """
    estimator_of(dimension)
    return True


def estimator_of(dimension: str | Mapping[str, object]) -> tuple[str, dict[str, Any]]:
    """The name of an estimator, and its options, checked.

    :param dimension: a name, or a table with a name and options
    """
    given = {"name": dimension} if isinstance(dimension, str) else dict(dimension)
    if "name" not in given:
        raise InputError(problem="dimension given as a table needs a 'name'", got=sorted(given))
    name = str(given.pop("name"))
    return name, check_options(f"{estimators.noun} {name!r}", estimators[name], given)


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
    goal: Goal,  # noqa: ARG001 (every method is given one)
    *,
    dimension: Annotated[str | Mapping[str, object], Predicate(is_estimator)] | None = None,
) -> SeedResult:
    """Intrinsic dimension of the data, rounded: no training, and no regard to what a network can learn.

    A manifold of dimension d may need more than d latents to be flattened (a circle needs 2), and noise has a
    dimension too: published values differ from FONDUE's by factors (bonheme2023: 4 against 19 on SymSol).

    :param candidates: whose observations are looked at
    :param goal: what is asked of every method; nothing of it is used
    :param dimension: (default none) estimator of the dimension, by name or with its options, as
        {"name": "mle", "k": 20}; none: maximum likelihood where it is stable, checked by TwoNN
    """
    if dimension is None:
        estimate = intrinsic_dimension(candidates.observations(), seed=candidates.seed)
    else:
        name, options = estimator_of(dimension)
        estimate = estimators[name](candidates.observations(), **{"seed": candidates.seed, **options})
    low, high = estimate.interval
    return SeedResult(estimate.rounded, (round(low), round(high)), (), estimate.notes)
