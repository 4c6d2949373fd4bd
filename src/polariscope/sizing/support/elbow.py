"""A curve over several widths, and its knee."""

from __future__ import annotations

import math
from collections.abc import Callable

from polariscope.core.errors import InputError
from polariscope.numerics.knee import LEAST_POINTS, knee
from polariscope.sizing import AbstractCandidates, Found, Goal, Trial

WIDTHS = (1, 2, 3, 4, 6, 8, 11, 16, 23, 32)
"""About √2 apart, so the knee is found to within a fifth."""


def elbow_of(candidates: AbstractCandidates, goal: Goal, measure: Callable[[int, int], float]) -> Found:
    """Measure models of several widths, and find where the curve bends."""
    steps = goal.fixed_steps
    trials = []
    widths = [width for width in WIDTHS if width <= goal.cap]
    if len(widths) < LEAST_POINTS:
        raise InputError(
            "cap",
            (f"be at least {WIDTHS[LEAST_POINTS - 1]} for an elbow, which needs {LEAST_POINTS} widths"),
            got=goal.cap,
        )
    for width in widths:
        value = measure(width, steps)
        trials.append(Trial(width, candidates.seed, value, "fits", steps))
    found = knee(widths, [trial.statistic for trial in trials], seed=candidates.seed)
    if found.value is None or found.interval is None:
        return Found(None, None, tuple(trials), found.notes)
    place = found.value
    decided = tuple(trial if trial.n_latents <= place else _too_many(trial) for trial in trials)
    low, high = found.interval
    return Found(round(found.value), (math.floor(low), math.ceil(high)), decided, found.notes)


def _too_many(trial: Trial) -> Trial:
    return Trial(trial.n_latents, trial.seed, trial.statistic, "too many", trial.steps)
