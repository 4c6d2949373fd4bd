"""The searches of bonheme2023 chapter 8 as published: models of whole epochs, one statistic at the end of each."""

from __future__ import annotations

from collections.abc import Callable

from polariscope.sizing import AbstractCandidates, Found, Goal, Trial
from polariscope.sizing.support.search import bisect, grow_and_bisect, notes_on

MOST_EPOCHS = 8
N_INIT = 10
BINARY_CAP = 200
"""Upper end of the published binary searches."""

Measure = Callable[[AbstractCandidates, int, int], float]
"""The statistic of a model of so many latents after so many steps."""


def search(
    candidates: AbstractCandidates,
    goal: Goal,
    measure: Measure,
    *,
    binary: bool = False,
    threshold: float | None = None,
) -> Found:
    """Search with models of e epochs; without ``goal.epochs``, for e = 1, 2, … until two answers in a row agree.

    The published rule: the answer is that of the smallest e after which it stops changing. Models are continued
    from e to e + 1 epochs, not restarted. ``goal.steps`` instead of epochs makes it one search of so many steps.
    """
    limit = goal.threshold if threshold is None else threshold
    trials: list[Trial] = []

    def answer_after(steps: int) -> int:
        def fits(n: int) -> bool:
            value = candidates.remember(measure.__name__, n, steps, lambda: measure(candidates, n, steps))
            curve = candidates.watch(n, steps).trace
            trials.append(
                Trial(n, candidates.seed, value, "fits" if value <= limit else "too many", steps, curve=curve)
            )
            return value <= limit

        if binary:
            return bisect(fits, 1, min(goal.cap, BINARY_CAP))
        return grow_and_bisect(fits, min(goal.n_init or N_INIT, goal.cap), goal.cap)

    steps = goal.steps if goal.epochs is None else goal.epochs * candidates.steps_per_epoch
    if steps is not None:
        answer = answer_after(steps)
        return Found(answer, (answer, answer), tuple(trials), tuple(notes_on(trials, [answer])))
    answers: list[int] = []
    # 0 is no answer yet: models that have not begun to learn agree with each other.
    while len(answers) < 2 or answers[-1] != answers[-2] or answers[-1] == 0:
        if len(answers) == MOST_EPOCHS:
            note = f"The answer has not settled after {MOST_EPOCHS} epochs: {answers}."
            return Found(answers[-1], (min(answers), max(answers)), tuple(trials), (note,))
        answers.append(answer_after((len(answers) + 1) * candidates.steps_per_epoch))
    last = [trial for trial in trials if trial.steps == trials[-1].steps]
    notes = [
        f"Epochs that suffice: {len(answers) - 1}; one more gives the same answer.",
        *notes_on(last, [answers[-1]]),
    ]
    return Found(answers[-1], (answers[-2], answers[-1]), tuple(trials), tuple(notes))


def trace_of(candidates: AbstractCandidates, n_latents: int, steps: int) -> float:
    """Σ E[σ²] of 10,000 samples."""
    from polariscope.sizing.support.search import trace

    return trace(candidates.representation(n_latents, steps))


def information_of(candidates: AbstractCandidates, n_latents: int, steps: int) -> float:
    """H(z) − I(x, x̂) with Rényi entropies of order 2, H and I each cut to two decimals first, as published."""
    from polariscope.numerics.renyi import information_gap

    sampled = candidates.representation(n_latents, steps).sampled
    pairs = candidates.reconstructions(n_latents, steps)
    return information_gap(sampled, *pairs, batch=min(1000, len(sampled)), decimals=2)
