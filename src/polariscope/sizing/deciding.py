"""Train a candidate until it is clear on which side of the threshold it stays."""

from __future__ import annotations

from collections.abc import Mapping

from polariscope.core.types import OptionValue
from polariscope.sizing.candidates import AbstractCandidates, Curves
from polariscope.sizing.fondue_settings import SETTINGS
from polariscope.sizing.goal import Goal
from polariscope.sizing.judge import Verdict, judge
from polariscope.sizing.trial import Cause, Trial


def schedule(most: int, first: int = SETTINGS.first_verdict) -> list[int]:
    """Steps at which a verdict is sought, multiples of 50, which candidates are looked at often enough for.

    >>> schedule(1800)
    [900, 1100, 1400, 1750, 1800]
    """
    stops = [min(first, most)]
    while stops[-1] < most:
        stops.append(min(most, max(stops[-1] + 50, round(stops[-1] * SETTINGS.steps_growth / 50) * 50)))
    return stops


def max_steps(candidates: AbstractCandidates, goal: Goal) -> int:
    """The most steps one model is given: as asked for, else ten passes over the data, within bounds."""
    if goal.steps is not None:
        return goal.steps
    return min(
        SETTINGS.max_step_limit,
        max(SETTINGS.min_step_limit, SETTINGS.step_limit_epochs * candidates.steps_per_epoch),
    )


def decide(
    candidates: AbstractCandidates,
    n_latents: int,
    threshold: float,
    most: int,
    *,
    n_active: int | None = None,
    first: int = SETTINGS.first_verdict,
    has_descended: bool = False,
    **changes: OptionValue,
) -> Trial:
    """Train until the verdict of :func:`~polariscope.sizing.judge.judge` is clear, or steps run out.

    :param candidates: trains and encodes a model for any number of latents
    :param n_latents: of the model
    :param threshold: most Σ E[σ²] that counts as no surplus
    :param most: steps after which it is taken as it is
    :param n_active: (default None) how many latents will be awake in the end, where another model has shown it
    :param first: (default 900) steps before the first verdict
    :param has_descended: (default False) whether it begins with latents that another model has learned
    :param changes: of the recipe: the learning rate, and others
    """
    # Where the search has seen more of it already, as its wide model, that counts.
    for steps in schedule(most, max(first, candidates.n_watched(n_latents, **changes))):
        curves = candidates.watch(n_latents, steps, **changes)
        verdict = judge(
            curves.steps,
            curves.variances,
            threshold,
            SETTINGS.horizon_factor * steps,
            n_active,
            has_descended,
        )
        if verdict.decision != "undecided":
            break
    return _trial(candidates.seed, n_latents, steps, curves, verdict, threshold, changes)


def _trial(
    seed: int,
    n_latents: int,
    steps: int,
    curves: Curves,
    verdict: Verdict,
    threshold: float,
    changes: Mapping[str, OptionValue],
) -> Trial:
    cause: Cause | None = None
    decision = verdict.decision
    projected: tuple[float, float] | None = verdict.projected
    if verdict.decision == "undecided":
        is_below = verdict.level <= threshold
        cause = "below" if is_below else "above"
        if not verdict.has_settled:
            cause = "below-unsettled" if is_below else "above-unsettled"
        elif not verdict.has_begun:  # every latent is surplus, however small their sum
            cause = "silent"
            decision, projected = "too many", None
    beta = changes.get("beta")
    return Trial(
        n_latents,
        seed,
        verdict.level,
        decision,
        steps,
        beta=float(beta) if isinstance(beta, int | float) else None,
        projected=projected,
        # While the whole still falls, which latents will be pruned is not to be seen.
        keeps=0 if decision == "undecided" and verdict.projected[1] <= threshold else verdict.keeps,
        curve=curves.trace,
        cause=cause,
    )


def passes(trial: Trial, threshold: float) -> bool:
    """Which way the search goes on: the decision, or the level where there is none."""
    return trial.decision == "fits" or (trial.decision == "undecided" and trial.statistic <= threshold)


def may_still_cross_threshold(trial: Trial, threshold: float) -> bool:
    """Whether the statistic may yet end on the other side, or is too near to say."""
    if trial.projected is None:
        return False
    low, high = trial.projected
    return (
        low - SETTINGS.threshold_margin * threshold
        <= threshold
        <= high + SETTINGS.threshold_margin * threshold
    )
