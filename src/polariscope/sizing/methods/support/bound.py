"""Bound: the interval of an answer, from the models on both sides and the trends of the wide one."""

from __future__ import annotations

from collections.abc import Sequence

from polariscope.sizing.deciding import may_still_cross_threshold
from polariscope.sizing.fondue_settings import SETTINGS
from polariscope.sizing.goal import Goal
from polariscope.sizing.methods.support.forecast import Forecast
from polariscope.sizing.result import Basis
from polariscope.sizing.trial import Trial


def bound(
    trials: Sequence[Trial], answer: int, wide: Forecast, goal: Goal, is_pruned: bool
) -> tuple[int, int, bool]:
    """Return both ends of the interval, and True if no model bounds the upper end, which is the cap then.

    Narrow models bound the interval: it begins at the largest number that is decided to fit, and ends before the
    smallest that is decided not to. If they were initialised from the wide model, the interval also includes one latent
    more and fewer, because models trained from scratch can differ, and the number of latents that the partially active
    ones add up to. The forecast of the wide model, which was trained from scratch, is included as well. If the wide
    model has converged and the models on both sides are decided, only the latents that can still become active are
    added; the rest has been measured. If the wide model overfits, the interval begins at its prediction at the lowest
    held-out loss.
    """
    low, high, is_sure = _bounded([trial for trial in trials if trial.role != "wide"], answer, wide, goal)
    is_sure = is_sure and wide.has_settled
    if is_sure or not wide.is_sound:
        lowest, highest = low, high + (wide.n_activating if is_sure else 0)
    else:
        lowest, highest = wide.low, wide.high
    # Decided before the margin is added, which could reach the cap by itself.
    is_open = high >= goal.cap
    if is_pruned:
        with_shared = max(answer, wide.value) + wide.n_shared
        low, high = (
            max(min(1, low), low - SETTINGS.seed_margin),
            max(high + SETTINGS.seed_margin, with_shared),
        )
    lowest = lowest if wide.best is None else min(lowest, wide.best.value)
    return min(low, lowest), min(goal.cap, max(high, highest)), is_open


def _bounded(narrow: Sequence[Trial], answer: int, wide: Forecast, goal: Goal) -> tuple[int, int, bool]:
    """Return the interval that narrow models give, and True if both of its ends are the answer.

    An undecided model up to the answer gives a lower bound: the latents that it, or the wide model, keeps in the worst
    case. An undecided model above the answer could still fit, so the interval extends to the last number before a
    model with too many latents; without such a model, to the widest undecided one if the wide model is sound, and
    otherwise to the cap.
    """
    undecided = [
        trial
        for trial in narrow
        if may_still_cross_threshold(trial, goal.threshold) or trial.decision == "undecided"
    ]
    sure = [trial for trial in narrow if trial not in undecided]
    fitting = [trial.n_latents for trial in sure if trial.decision == "fits" and trial.n_latents <= answer]
    surplus = [trial.n_latents for trial in sure if trial.decision == "too many" and trial.n_latents > answer]
    if answer in fitting and answer + 1 in surplus:
        return answer, answer, True
    at_least = wide.low if wide.is_sound else 0
    worst = [min(answer, max(trial.keeps or 0, at_least)) for trial in undecided if trial.n_latents <= answer]
    low = max(min(worst, default=answer), max(fitting, default=0))
    high = answer
    if above := [trial.n_latents for trial in undecided if trial.n_latents > answer]:
        highest = max(above) if wide.is_sound else goal.cap
        high = min(surplus, default=highest + 1) - 1
    return low, high, False


def upper_end(high: int, basis: Basis, goal: Goal) -> int:
    """Return the upper end of an interval; it includes the size of larger linear models that generalise better."""
    end = high if not basis.is_below or basis.closed_form is None else max(high, basis.closed_form)
    return min(end, goal.cap)
