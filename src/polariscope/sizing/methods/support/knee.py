"""Knee of a curve over several widths."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

from polariscope.core.errors import InputError
from polariscope.numerics.knee import MIN_POINTS, knee
from polariscope.sizing.candidates import AbstractCandidates
from polariscope.sizing.goal import Goal
from polariscope.sizing.result import SeedResult
from polariscope.sizing.trial import Trial

WIDTHS = (1, 2, 3, 4, 6, 8, 11, 16, 23, 32)
"""Widths with ratios of about √2, so the knee is located to within a fifth."""


def elbow_of(candidates: AbstractCandidates, goal: Goal, measure: Callable[[int, int], float]) -> SeedResult:
    """Measure models of several widths and find the knee of the curve."""
    steps = goal.fixed_steps
    trials = []
    widths = [width for width in WIDTHS if width <= goal.cap]
    if len(widths) < MIN_POINTS:
        raise InputError(
            "cap",
            (f"be at least {WIDTHS[MIN_POINTS - 1]} for an elbow, which requires {MIN_POINTS} widths"),
            got=goal.cap,
        )
    for width in widths:
        value = measure(width, steps)
        # The decision is provisional until the knee is known.
        trials.append(Trial(width, candidates.seed, value, "fits", steps))
    bend = knee(widths, [trial.statistic for trial in trials], seed=candidates.seed)
    if bend.value is None or bend.interval is None:
        return SeedResult(None, None, tuple(trials), bend.notes)
    decided = tuple(
        trial if trial.n_latents <= bend.value else dataclasses.replace(trial, decision="too many")
        for trial in trials
    )
    low, high = bend.interval
    return SeedResult(round(bend.value), (math.floor(low), math.ceil(high)), decided, bend.notes)
