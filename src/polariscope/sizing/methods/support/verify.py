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
    candidates: AbstractCandidates, goal: Goal, most: int, wide: Forecast, begun: int, trials: list[Trial]
) -> int:
    """The largest n of which a narrow model fits, while one with a latent more does not.

    Narrow models begin with the latents of the wide one after ``begun`` steps.
    """
    n_wide = len(trials)

    def measured(n: int) -> tuple[bool, float]:
        n_active = wide.n_active if wide.has_settled else None
        how = training_of(candidates, n, goal, wide, begun)
        is_pruned = "pruned_from" in how
        first = SETTINGS.first_look_narrow if is_pruned else SETTINGS.first_verdict
        is_first = len(trials) == n_wide
        if is_first and candidates.benefits_from_parallel and n < min(goal.cap, len(wide.traces) - 1):
            candidates.watch_together((n, n + 1), min(first, most), **how)  # the two that mostly decide
        has_descended = is_pruned and wide.steps >= SETTINGS.min_steps
        trial = decide(
            candidates,
            n,
            goal.threshold,
            most,
            n_active=n_active,
            first=first,
            has_descended=has_descended,
            **how,
        )
        # The data can be learned, as the wide model shows.
        if wide.n_active and trial.cause == "silent":
            trial = dataclasses.replace(trial, projected=(0.0, max(goal.threshold, trial.statistic)))
        trials.append(trial)
        return passes(trial, goal.threshold), trial.statistic

    expected = wide.after(min(SETTINGS.first_look_narrow, most) if candidates.can_prune else 0)
    return search_guided(measured, expected, goal.threshold, goal.cap)


def training_of(
    candidates: AbstractCandidates, n: int, goal: Goal, wide: Forecast, begun: int
) -> dict[str, Any]:
    """How a narrow model is trained: from the wide one's latents, where it has them to spare."""
    width = len(wide.traces)
    pruned = {"pruned_from": (width, begun)} if candidates.can_prune and n < width else {}
    return {"learning_rate": goal.careful_rate(), **pruned}


def count_faint(
    candidates: AbstractCandidates, trials: Sequence[Trial], answer: int, how: dict[str, Any]
) -> int:
    """How many latents the threshold lets pass: one that is given up adds less than 1. 0 when all are."""
    steps = [trial.steps for trial in trials if trial.n_latents == answer and trial.role != "wide"]
    if not steps:
        return 0
    variances = candidates.watch(answer, steps[-1], **how).variances[-1]
    count = int((variances > SETTINGS.active_below).sum())
    return 0 if count == answer else count
