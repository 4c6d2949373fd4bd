"""The searches of bonheme2023 chapter 8 as published: models train for whole epochs and are measured at the end."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from polariscope.core.errors import Argument, InputError
from polariscope.sizing.bisection import bisect, grow_and_bisect, notes_on
from polariscope.sizing.candidates import AbstractCandidates
from polariscope.sizing.goal import Goal
from polariscope.sizing.result import SeedResult
from polariscope.sizing.trial import Trial

MAX_EPOCHS = 8
K = 20
"""Number of neighbours for the intrinsic dimension at which the published searches start."""
BINARY_CAP = 200
"""Upper end of the published binary searches."""

Measure = Callable[[AbstractCandidates, int, int], float]
"""A function of the candidates, a number of latents and a number of steps that returns the statistic."""


def search(
    candidates: AbstractCandidates,
    goal: Goal,
    measure: Measure,
    *,
    binary: bool = False,
    threshold: float | None = None,
) -> SeedResult:
    """Search with models of e epochs; without ``goal.epochs``, for e = 1, 2, … until two successive answers agree.

    By the published rule the answer is that of the smallest e after which it stops changing. Models resume from e to
    e + 1 epochs and are not restarted. With ``goal.steps`` there is one search, whose models train for that many steps.
    A search that is not binary starts at ``goal.n_init`` or, by default and as published, at the intrinsic dimension of
    the data.
    """
    limit = goal.threshold if threshold is None else threshold
    trials: list[Trial] = []
    start, began = (0, ()) if binary else first_guess(candidates, goal)

    def answer_after(steps: int) -> int:
        def fits(n: int) -> bool:
            # The name of the function is part of a file name on disk, so renaming it discards measured values.
            value = candidates.remember(measure.__name__, n, steps, lambda: measure(candidates, n, steps))
            curve = candidates.watch(n, steps).trace
            trials.append(
                Trial(n, candidates.seed, value, "fits" if value <= limit else "too many", steps, curve=curve)
            )
            return value <= limit

        if binary:
            return bisect(fits, 1, min(goal.cap, BINARY_CAP))
        return grow_and_bisect(fits, start, goal.cap)

    steps = goal.steps if goal.epochs is None else goal.epochs * candidates.steps_per_epoch
    if steps is not None:
        answer = answer_after(steps)
        return SeedResult(answer, (answer, answer), tuple(trials), (*began, *notes_on(trials, [answer])))
    answers: list[int] = []
    while not has_settled(answers):
        if len(answers) == MAX_EPOCHS:
            # Two equal answers that do not count as settled are both 0, and notes_on explains that case.
            note = f"The answer has not settled after {MAX_EPOCHS} epochs: {answers}."
            notes = notes_on(trials, [0]) if answers[-1] == answers[-2] else [note]
            return SeedResult(answers[-1], (min(answers), max(answers)), tuple(trials), (*began, *notes))
        answers.append(answer_after((len(answers) + 1) * candidates.steps_per_epoch))
    # Notes on shorter trainings would be outdated.
    last = [trial for trial in trials if trial.steps == trials[-1].steps]
    notes = [
        *began,
        f"Epochs required: {len(answers) - 1}; one more epoch gives the same answer.",
        *notes_on(last, [answers[-1]]),
    ]
    return SeedResult(answers[-1], (answers[-2], answers[-1]), tuple(trials), tuple(notes))


def has_settled(answers: Sequence[int]) -> bool:
    """Return True if the last two answers with 1, 2, … epochs are equal.

    An answer of 0 does not count: models that have not begun to learn agree with each other.

    :param answers: answers in the order of the epochs.

    >>> has_settled([9]), has_settled([9, 11, 11]), has_settled([0, 0])
    (False, True, False)
    """
    return len(answers) > 1 and answers[-1] == answers[-2] != 0


def first_guess(candidates: AbstractCandidates, goal: Goal) -> tuple[int, tuple[str, ...]]:
    """Return the number of latents at which a published search starts, and a note if it was estimated.

    The default is the intrinsic dimension of the data by maximum likelihood with k = 20, rounded to the nearest integer
    (bonheme2023 §8.4.1: 4 for SymSol, 11 for dSprites, 22 for CelebA), at least 1 and at most the cap. The authors'
    code reads this number from its configuration; here it is estimated when the search begins. Data whose dimension
    cannot be estimated are rejected.

    :param candidates: source of the observations
    :param goal: ``n_init`` and cap
    """
    from polariscope.analysis.dimension.mle import mle

    if goal.n_init is not None:
        return goal.n_init, ()
    try:
        estimate = mle(candidates.observations(), k=K, seed=candidates.seed)
    except InputError as refusal:
        raise InputError(
            problem=(
                "the published search starts at the intrinsic dimension of the data, which cannot be estimated: "
                f"{str(refusal).removesuffix('.')}"
            ),
            remedy=("set the start with ", Argument("n_init")),
        ) from None
    start = min(estimate.rounded, goal.cap)
    note = f"The search started at {start}, the intrinsic dimension of the data (maximum likelihood, k = {K})"
    return start, (f"{note}." if start == estimate.rounded else f"{note} limited by the cap.",)


def trace_of(candidates: AbstractCandidates, n_latents: int, steps: int) -> float:
    """Return Σ E[σ²] over 10,000 samples."""
    from polariscope.sizing.surplus import trace

    return trace(candidates.representation(n_latents, steps))


def information_of(candidates: AbstractCandidates, n_latents: int, steps: int) -> float:
    """Return H(z) − I(x, x̂) with Rényi entropies of order 2, each truncated to two decimals first, as published."""
    from polariscope.numerics.renyi import information_gap

    sampled = candidates.representation(n_latents, steps).sampled
    pairs = candidates.reconstructions(n_latents, steps)
    return information_gap(sampled, *pairs, batch=min(1000, len(sampled)), decimals=2)
