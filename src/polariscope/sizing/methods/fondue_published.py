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
    threshold="goal",
    interval="what it was an epoch before",
    uses=("n_init", "cap", "steps", "epochs"),
)
def fondue_published(candidates: AbstractCandidates, goal: Goal) -> SeedResult:
    """Double from ``n_init`` until Σ E[σ²] exceeds the threshold, then bisect; models of whole epochs.

    bonheme2023 Algorithms 1 and 2, threshold 1. Theorem 8.3.3: below 1 only active latents are kept, from 1 on
    non-passive ones; but many slightly noisy latents use up the threshold too (33 at σ² = 0.03). As published it
    starts at the intrinsic dimension of the data (maximum likelihood, k = 20) unless ``n_init`` says otherwise. Ours:
    the statistic without sampling noise, seeds, a cap, and epochs raised until the answer stays.

    :param candidates: trains and encodes a model for any number of latents.
    :param goal: what is sought, and within which limits.
    """
    return search(candidates, goal, trace_of)
