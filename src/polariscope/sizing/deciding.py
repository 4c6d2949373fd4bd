"""Training of a candidate until it is decided on which side of the threshold its statistic stays."""

from __future__ import annotations

from collections.abc import Mapping

from polariscope.core.types import OptionValue
from polariscope.sizing.candidates import AbstractCandidates, Curves
from polariscope.sizing.fondue_settings import SETTINGS
from polariscope.sizing.goal import Goal
from polariscope.sizing.judge import Verdict, judge
from polariscope.sizing.trial import Cause, Trial


def schedule(step_limit: int, first: int = SETTINGS.first_verdict) -> list[int]:
    """Return the steps at which a verdict is sought: multiples of 50, at which posterior variances are logged.

    >>> schedule(1800)
    [900, 1100, 1400, 1750, 1800]
    """
    stops = [min(first, step_limit)]
    while stops[-1] < step_limit:
        longer = round(stops[-1] * SETTINGS.steps_growth / 50) * 50
        # Rounding can return the same step again.
        stops.append(min(step_limit, max(stops[-1] + 50, longer)))
    return stops


def max_steps(candidates: AbstractCandidates, goal: Goal) -> int:
    """Return the maximum number of steps of a model: as requested, or ten passes over the data within bounds."""
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
    step_limit: int,
    *,
    n_active: int | None = None,
    first: int = SETTINGS.first_verdict,
    has_descended: bool = False,
    **changes: OptionValue,
) -> Trial:
    """Train until :func:`~polariscope.sizing.judge.judge` decides, or the step limit is reached.

    :param candidates: trains and encodes a model for any number of latents
    :param n_latents: number of latents of the model
    :param threshold: maximum Σ E[σ²] of a model without surplus latents
    :param step_limit: maximum number of steps
    :param n_active: (default None) final number of active latents, if another model has shown it
    :param first: (default 900) steps before the first verdict
    :param has_descended: (default False) if True, the model is initialised with latents of a trained model
    :param changes: options of the model that differ from the recipe, such as the learning rate
    """
    # A model that was trained further before, as the wide model of the search, is judged from there.
    for steps in schedule(step_limit, max(first, candidates.n_watched(n_latents, **changes))):
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
        elif not verdict.has_begun:  # every latent is surplus, even if their sum is small
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
        # While the sum still falls, it is unknown which latents will be pruned.
        keeps=0 if decision == "undecided" and verdict.projected[1] <= threshold else verdict.keeps,
        curve=curves.trace,
        cause=cause,
    )


def passes(trial: Trial, threshold: float) -> bool:
    """Return True if a trial counts as fitting; an undecided one does if its statistic is within the threshold."""
    return trial.decision == "fits" or (trial.decision == "undecided" and trial.statistic <= threshold)


def may_still_cross_threshold(trial: Trial, threshold: float) -> bool:
    """Return True if the statistic could end on the other side of the threshold, or is too close to it."""
    if trial.projected is None:
        return False
    low, high = trial.projected
    return (
        low - SETTINGS.threshold_margin * threshold
        <= threshold
        <= high + SETTINGS.threshold_margin * threshold
    )
