"""FONDUE as published."""

from __future__ import annotations

from polariscope.sizing.candidates import AbstractCandidates
from polariscope.sizing.goal import Goal
from polariscope.sizing.methods import method
from polariscope.sizing.published import search, trace_of
from polariscope.sizing.result import TRACE, SeedResult


@method(
    "fondue-published",
    statistic=TRACE,
    trains=True,
    needs_variances=True,
    with_trainer="grow",
    threshold="goal",
    interval="from the answer with one epoch fewer to the final answer",
    uses=("n_init", "cap", "steps", "epochs"),
)
def fondue_published(candidates: AbstractCandidates, goal: Goal) -> SeedResult:
    """Double from ``n_init`` until Σ E[σ²] exceeds the threshold, then bisect; models train for whole epochs.

    bonheme2023 Algorithms 1 and 2, threshold 1. By Theorem 8.3.3 a threshold below 1 keeps only active latents, and one
    from 1 on keeps non-passive ones. But many slightly noisy latents can also use up the threshold (33 at σ² = 0.03).
    As published, the search starts at the intrinsic dimension of the data (maximum likelihood, k = 20) unless
    ``n_init`` is set. Ours: the statistic without sampling noise, seeds, a cap, and more epochs until the answer no
    longer changes.

    :param candidates: trains and encodes a model for any number of latents.
    :param goal: the goal of the search, with its limits.
    """
    return search(candidates, goal, trace_of)
