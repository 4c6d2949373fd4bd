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
    with_trainer="binary",
    threshold="goal",
    interval="from the answer with one epoch fewer to the final answer",
    uses=("cap", "steps", "epochs"),
)
def fondue_binary(candidates: AbstractCandidates, goal: Goal) -> SeedResult:
    """Search for the threshold of Σ E[σ²] by bisection over 1 … 200 latents (BS_FONDUE, bonheme2023 Algorithm 8).

    :param candidates: trains and encodes a model for any number of latents.
    :param goal: the goal of the search, with its limits.
    """
    return search(candidates, goal, trace_of, binary=True)
