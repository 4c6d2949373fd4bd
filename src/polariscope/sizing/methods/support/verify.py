"""Verify: narrow models on both sides of the prediction, trained until they are decided."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from polariscope.sizing.bisection import search_guided
from polariscope.sizing.candidates import AbstractCandidates
from polariscope.sizing.deciding import decide, passes
from polariscope.sizing.fondue_settings import SETTINGS
from polariscope.sizing.goal import Goal
from polariscope.sizing.methods.support.forecast import Forecast
from polariscope.sizing.trial import Trial


def verify(
    candidates: AbstractCandidates,
    goal: Goal,
    step_limit: int,
    wide: Forecast,
    begun: int,
    trials: list[Trial],
) -> int:
    """Return an n such that a narrow model with n latents fits and one with n + 1 does not.

    Narrow models are initialised from the wide one after ``begun`` steps.
    """
    n_wide = len(trials)

    def measured(n: int) -> tuple[bool, float]:
        # Only a converged model shows how many latents end up active.
        n_active = wide.n_active if wide.has_settled else None
        how = training_of(candidates, n, goal, wide, begun)
        is_pruned = "pruned_from" in how
        first = SETTINGS.first_look_narrow if is_pruned else SETTINGS.first_verdict
        is_first = len(trials) == n_wide
        # n + 1 latents must also be within the cap and narrower than the wide model.
        if is_first and candidates.benefits_from_parallel and n < min(goal.cap, len(wide.traces) - 1):
            candidates.watch_together((n, n + 1), min(first, step_limit), **how)  # mostly these two decide
        has_descended = is_pruned and wide.steps >= SETTINGS.min_steps
        trial = decide(
            candidates,
            n,
            goal.threshold,
            step_limit,
            n_active=n_active,
            first=first,
            has_descended=has_descended,
            **how,
        )
        # The wide model has learned from these data, so a narrow one that has not is undecided.
        if wide.n_active and trial.cause == "silent":
            trial = dataclasses.replace(trial, projected=(0.0, max(goal.threshold, trial.statistic)))
        trials.append(trial)
        return passes(trial, goal.threshold), trial.statistic

    # Models that are trained from scratch do not continue from the wide one.
    expected = wide.after(min(SETTINGS.first_look_narrow, step_limit) if candidates.can_prune else 0)
    return search_guided(measured, expected, goal.threshold, goal.cap)


def training_of(
    candidates: AbstractCandidates, n: int, goal: Goal, wide: Forecast, begun: int
) -> dict[str, Any]:
    """Return the options of a narrow model, which is initialised from the wide one if possible."""
    width = len(wide.traces)
    pruned = {"pruned_from": (width, begun)} if candidates.can_prune and n < width else {}
    return {"learning_rate": goal.careful_rate(), **pruned}


def count_faint(
    candidates: AbstractCandidates, trials: Sequence[Trial], answer: int, how: dict[str, Any]
) -> int:
    """Return the number of latents of the answer's model that are not active; 0 if none of them is active.

    The threshold allows them, because a pruned latent can add less than 1.
    """
    steps = [trial.steps for trial in trials if trial.n_latents == answer and trial.role != "wide"]
    if not steps:
        return 0
    variances = candidates.watch(answer, steps[-1], **how).variances[-1]
    count = int((variances > SETTINGS.active_below).sum())
    return 0 if count == answer else count
