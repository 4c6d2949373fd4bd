"""Count of latents in one wide model."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from polariscope.analysis.representation import Representation
from polariscope.core.seeds import generator
from polariscope.core.types import OptionValue
from polariscope.sizing.bisection import CapError
from polariscope.sizing.candidates import AbstractCandidates
from polariscope.sizing.goal import Goal
from polariscope.sizing.result import SeedResult
from polariscope.sizing.trial import Decision, Trial

WIDTH = 32
N_RESAMPLES = 200

Count = Callable[[Representation], int]


def count_in_wide_model(
    candidates: AbstractCandidates, goal: Goal, count: Count, **changes: OptionValue
) -> SeedResult:
    """Count latents of one wide model, whose width is doubled until not all of them count."""
    trials: list[Trial] = []
    width = min(goal.cap, max(WIDTH, goal.n_init or 1))
    steps = goal.fixed_steps
    while True:
        representation = candidates.representation(width, steps, learning_rate=goal.rate(), **changes)
        n_counted = count(representation)
        curve = candidates.watch(width, steps, learning_rate=goal.rate(), **changes).trace
        decision: Decision = "too many" if n_counted < width else "fits"
        trials.append(Trial(width, candidates.seed, float(n_counted), decision, steps, curve=curve))
        if n_counted < width:
            return SeedResult(n_counted, _interval(representation, count, candidates.seed), tuple(trials))
        if width >= goal.cap:
            raise CapError(f"all {width} latents are in use, and cap is {goal.cap}; raise the cap.")
        width = min(goal.cap, 2 * width)


def _interval(representation: Representation, count: Count, seed: int) -> tuple[int, int]:
    """Return the lowest and highest count over resamples of the samples."""
    draw = generator(seed, "wide")
    counts = []
    for _ in range(N_RESAMPLES):
        rows = draw.integers(representation.n_samples, size=min(1000, representation.n_samples))
        prior = representation.prior_variance
        counts.append(
            count(
                Representation(
                    representation.mean[rows],
                    representation.variance[rows],
                    representation.sampled[rows],
                    # A prior that depends on the sample has a row for each.
                    prior_variance=prior if prior is None or prior.ndim == 1 else prior[rows],
                )
            )
        )
    return int(np.min(counts)), int(np.max(counts))
