"""FONDUE's statistic with a plain binary search."""

from __future__ import annotations

from polariscope.sizing.candidates import AbstractCandidates
from polariscope.sizing.goal import Goal
from polariscope.sizing.methods import method
from polariscope.sizing.published import search, trace_of
from polariscope.sizing.result import TRACE, SeedResult


@method(
    "fondue-binary",
    statistic=TRACE,
    trains=True,
    needs_variances=True,
    threshold="goal",
    interval="what it was an epoch before",
    uses=("cap", "steps", "epochs"),
)
def fondue_binary(candidates: AbstractCandidates, goal: Goal) -> SeedResult:
    """Binary search of Σ E[σ²] over 1 … 200 latents (BS_FONDUE, bonheme2023 Algorithm 8).

    :param candidates: trains and encodes a model for any number of latents.
    :param goal: what is sought, and within which limits.
    """
    return search(candidates, goal, trace_of, binary=True)
