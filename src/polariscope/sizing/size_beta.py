"""Search for the largest β for a fixed number of latents."""

from __future__ import annotations

import math

from polariscope.sizing.bisection import CapError
from polariscope.sizing.candidates import AbstractCandidates
from polariscope.sizing.deciding import decide, max_steps, may_still_cross_threshold, passes
from polariscope.sizing.goal import Goal
from polariscope.sizing.result import SeedResult
from polariscope.sizing.trial import Trial

SMALLEST, LARGEST = 2.0**-12, 2.0**12
PRECISION = 2**0.25
"""Ratio of neighbouring β at which the search stops."""


def largest_beta(
    candidates: AbstractCandidates, goal: Goal, n_latents: int, start: float = 1.0
) -> SeedResult:
    """Find the largest β for which ``n_latents`` have no surplus, Σ E[σ²] ≤ threshold, to within a fifth.

    β is doubled or halved from ``start`` until the decision changes, then bisected on a logarithmic scale. A larger
    β prunes more latents, so the statistic rises with it (for a linear VAE Σ min(1, βγ/λ_j)).

    Reference: proposed in bonheme2023 §8.9 and zietlow2022 §3.3.6.
    """
    trials: list[Trial] = []
    step_limit = max_steps(candidates, goal)

    def fits(beta: float) -> bool:
        trial = decide(
            candidates, n_latents, goal.threshold, step_limit, learning_rate=goal.careful_rate(), beta=beta
        )
        trials.append(trial)
        return passes(trial, goal.threshold)

    # 0 and infinity stand for ends that are not known yet.
    low, high = (start, math.inf) if fits(start) else (0.0, start)
    while math.isinf(high) or low == 0:
        beta = 2 * low if math.isinf(high) else high / 2
        if not SMALLEST <= beta <= LARGEST:
            n_open = sum(trial.decision == "undecided" for trial in trials)
            remedy = (
                f"{n_open} of {len(trials)} models were undecided after {trials[-1].steps:,} steps: allow more "
                "steps, or raise the learning rate"
                if n_open
                else f"change n_latents (it is {n_latents}) or the threshold"
            )
            raise CapError(
                f"Σ E[σ²] stays on one side of the threshold {goal.threshold:g} for every β between {SMALLEST:g} and "
                f"{LARGEST:g}; {remedy}."
            )
        low, high = (beta, high) if fits(beta) else (low, beta)
    # The tolerance prevents one more model if the ratio exceeds the precision by rounding only.
    while high / low > PRECISION * 1.0001:
        beta = math.sqrt(low * high)
        low, high = (beta, high) if fits(beta) else (low, beta)
    notes = [f"β = {trial.beta:.3g}: {trial.note}." for trial in trials if trial.note]
    # Near the threshold a decision can be off by one step of β, so the interval ends at clearly decided trials.
    sure = [
        trial
        for trial in trials
        if trial.decision != "undecided" and not may_still_cross_threshold(trial, goal.threshold)
    ]
    lowest = max((beta_of(trial) for trial in sure if beta_of(trial) <= low), default=SMALLEST)
    highest = min((beta_of(trial) for trial in sure if beta_of(trial) >= high), default=LARGEST)
    ends = {"small enough": lowest == SMALLEST, "too large": highest == LARGEST}
    if unsure := [end for end, is_open in ends.items() if is_open]:
        notes.append(
            f"No β is clearly {' or '.join(unsure)}, so the interval ends at the limit of the search there "
            f"({SMALLEST:g} to {LARGEST:g}); allow more steps."
        )
    return SeedResult(low, (min(lowest, low / PRECISION), highest), tuple(trials), tuple(notes))


def beta_of(trial: Trial) -> float:
    assert trial.beta is not None
    return trial.beta
