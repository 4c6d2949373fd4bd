"""FONDUE, with as few gradient steps as the decision needs."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from polariscope.sizing import AbstractCandidates, Found, Goal, Trial, method
from polariscope.sizing.support.deciding import (
    MOST,
    SILENCE,
    decide,
    may_still_cross_threshold,
    passes,
    schedule,
)
from polariscope.sizing.support.judge import BEGUN, judge, predict
from polariscope.sizing.support.search import CapError, no_surplus, notes_on, search_outward

WIDTH = 16
"""Latents of the first model, unless the guess is larger."""
MOST_WIDE = 2000
"""Steps after which a wide model's prediction is taken as it is; narrow models check it anyway."""
FIRST_GUESS = 400
"""Steps before the first prediction."""
TOO_WIDE = 8
"""A model so many times wider than what it predicts spreads its noise over all latents and is not believed."""


@method(
    "fondue",
    statistic="Σ E[σ²]",
    trains=True,
    needs_variances=True,
    finds_beta=True,
    is_careful=True,
    threshold="goal",
    interval="how the answer could change with more training",
    uses=("n_init", "cap", "steps"),
)
def fondue(candidates: AbstractCandidates, goal: Goal) -> Found:
    r"""The largest n with Σ E[σ²] ≤ threshold: one wide model predicts it, narrow ones are trained until they decide.

    The published procedure (see ``fondue-published``) trains 4–8 models for whole epochs. Here

    1. one *wide* model predicts the answer: narrower models keep the latents that say most, so
       :math:`\hat g(n)` is the sum of its n smallest variances
       (:func:`~polariscope.sizing.support.judge.predict`; exact for linear VAEs). It is stopped as soon as the
       prediction stands still, doubled in width if it has no surplus, and not believed if it is far too wide. It may
       learn fast, since it is only a guess;
    2. *narrow* models at the predicted n and n + 1, trained afresh, prove it: each until the level and the trend
       of its latents say on which side of the threshold it stays
       (:func:`~polariscope.sizing.support.judge.judge`). If they disagree with the prediction, it searches outward
       away from it and bisects.

    The answer is therefore that of the definition, whatever the wide model said and whatever ``n_init`` was: a model
    with n latents that fits, and one with n + 1 that does not. The interval takes in every model that was tried and may
    still turn out otherwise. Data of which a model learns nothing need 0 latents, and a note says so.

    What it cannot take in is another learning rate: large steps prune more. At 1e-3 the conv net gives up latents of
    sprites that it keeps at the published 1e-4; at 2e-4 they live and die as at 1e-4, in half the steps, so images
    are proved with 2e-4. ``python benchmarks/fondue.py`` compares answers and steps with the published procedure's.
    What is left is the luck of a start: with t = 1 one latent that is given up leaves Σ E[σ²] just below or just above
    the threshold, and such models are trained to the end and said to be in doubt.

    :param candidates: trains and encodes a model for any number of latents.
    :param goal: what is sought, and within which limits.
    """
    trials: list[Trial] = []
    # A threshold of k lets about k surplus latents pass, so the wide model must have room for them.
    width = min(goal.cap, max(WIDTH, round(2 * goal.threshold) + WIDTH // 2))
    guess, has_begun = wide_guess(candidates, goal, width, trials)

    def fits(n: int) -> bool:
        trial = decide(candidates, n, goal.threshold, goal.steps, goal.careful_rate())
        if has_begun and trial.note.startswith(SILENCE):  # the data can be learned, as the wide model shows
            trial = dataclasses.replace(trial, projected=(0.0, max(goal.threshold, trial.statistic)))
        trials.append(trial)
        return passes(trial, goal.threshold)

    answer = search_outward(fits, guess, goal.cap)
    low, high = _reach(trials, answer, goal)
    faint = _n_faint(candidates, trials, answer, goal)
    return Found(answer, (low, high), tuple(trials), tuple(notes_of(trials, answer, high, faint, goal)))


def notes_of(trials: Sequence[Trial], answer: int, high: int, n_faint: int, goal: Goal) -> list[str]:
    """What to know about an answer; what could be read as another answer is joined into one note.

    :param trials: the models that were trained
    :param answer: the number of latents
    :param high: end of the interval
    :param n_faint: how many latents of the answer's model carry little
    :param goal: threshold and cap
    """
    narrow = [trial for trial in trials if trial.note != WIDE]
    notes = notes_on(narrow, [answer])
    notes += [
        f"{trial.n_latents} latent{'s' if trial.n_latents > 1 else ''}: {trial.note}."
        for trial in narrow
        if trial.note
    ]
    no_end = f"no model is sure to have too many latents, so the interval ends at the cap, {goal.cap}"
    if n_faint:
        which, them = ("carries", "it") if n_faint == 1 else ("carry", "them")
        faint = (
            f"{n_faint} of the {answer} latents {which} little information (E[σ²] above one half); the answer counts "
            f"{them}, since the sum stays within the threshold of {goal.threshold:g}"
        )
        choice = f"Choose {answer - n_faint} if every latent must be informative."
        # More than the answer and fewer than it are both advice: said apart they contradict each other.
        joined = (
            f"By the threshold alone the answer may be larger: {no_end}. But " if high >= goal.cap else ""
        )
        notes.append(f"{joined}{faint}. {choice}")
    elif high >= goal.cap:
        notes.append(f"{no_end[0].upper()}{no_end[1:]}.")
    return notes


def _reach(trials: Sequence[Trial], answer: int, goal: Goal) -> tuple[int, int]:
    """From what surely fits to the last before what surely does not, as far as models are in doubt.

    A model in doubt that may have too many says itself how many it keeps at worst.
    """
    doubtful = [
        trial
        for trial in trials
        if may_still_cross_threshold(trial, goal.threshold) or trial.decision == "undecided"
    ]
    sure = [trial for trial in trials if trial not in doubtful]
    fitting = [trial.n_latents for trial in sure if trial.decision == "fits" and trial.n_latents <= answer]
    surplus = [trial.n_latents for trial in sure if trial.decision == "too many" and trial.n_latents > answer]
    kept = [min(answer, trial.keeps or 0) for trial in doubtful if trial.n_latents <= answer]
    low = max(min(kept, default=answer), max(fitting, default=0))
    high = (
        min(surplus, default=goal.cap + 1) - 1
        if any(trial.n_latents > answer for trial in doubtful)
        else answer
    )
    return low, high


def _n_faint(candidates: AbstractCandidates, trials: Sequence[Trial], answer: int, goal: Goal) -> int:
    """How many latents the threshold lets pass: one that is given up adds less than 1. 0 when all are."""
    steps = [trial.steps for trial in trials if trial.n_latents == answer and trial.note != WIDE]
    if not steps:
        return 0
    variances = candidates.watch(answer, steps[-1], learning_rate=goal.careful_rate()).variances[-1]
    count = int((variances > BEGUN).sum())
    return 0 if count == answer else count


WIDE = "wide model, for a first guess"


def wide_guess(
    candidates: AbstractCandidates, goal: Goal, least: int, trials: list[Trial]
) -> tuple[int, bool]:
    """Predict the answer from one wide model, of ``least`` or as many latents as were guessed; and whether it learned.

    It is widened while it has no surplus; one that is far too wide is replaced by the least.
    """
    width = max(least, min(goal.cap, goal.n_init or 1))
    while True:
        most = min(MOST_WIDE, goal.steps or MOST_WIDE)
        for steps in schedule(most, FIRST_GUESS):
            curves = candidates.watch(width, steps, learning_rate=goal.rate())
            guess, lowest, highest = predict(curves.steps, curves.variances, goal.threshold)
            has_begun = bool((curves.variances[-1] < BEGUN).any())
            if has_begun and highest - lowest <= max(2, guess // 10):
                break
        trace = float(curves.variances[-1].sum())
        verdict = judge(curves.steps, curves.variances, goal.threshold, horizon=MOST)
        trials.append(
            Trial(
                width,
                candidates.seed,
                trace,
                "fits" if trace <= goal.threshold else "too many",
                steps,
                projected=verdict.projected,
                keeps=verdict.keeps,
                curve=curves.trace,
                note=WIDE,
            )
        )
        if TOO_WIDE * guess < width and width > least and len(trials) == 1:
            width = least
            continue
        if guess < width:
            return guess, has_begun
        if width >= goal.cap:
            raise CapError(
                f"{no_surplus(width)}, and cap is {goal.cap}; raise the cap, or check the threshold."
            )
        width = min(goal.cap, 2 * width)
