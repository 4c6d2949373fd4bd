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
    """The interval, and whether no model bounds its upper end, which is then where the search ends.

    Narrow models bound it: from what surely fits to the last before what surely does not. Where they began with the
    wide one's latents, others that are trained afresh may keep one more or fewer, and as many more as half-awake
    latents hold. The wide model, which was trained afresh itself, says what more training may bring: of all that it
    may come to only the latents that may still wake, where it stands and narrow models on both sides are sure; what it
    foretells of the others has been measured then. Where it learns observations by heart, the interval begins at what
    it said before.
    """
    low, high, is_sure = _bounded([trial for trial in trials if trial.role != "wide"], answer, wide, goal)
    is_sure = is_sure and wide.has_settled
    if is_sure or not wide.is_sound:
        least, most = low, high + (wide.n_activating if is_sure else 0)
    else:
        least, most = wide.low, wide.high
    is_open = high >= goal.cap
    if is_pruned:
        held = max(answer, wide.value) + wide.n_shared  # by latents beyond what the wide model keeps
        low, high = max(min(1, low), low - SETTINGS.seed_margin), max(high + SETTINGS.seed_margin, held)
    least = least if wide.best is None else min(least, wide.best.value)
    return min(low, least), min(goal.cap, max(high, most)), is_open


def _bounded(narrow: Sequence[Trial], answer: int, wide: Forecast, goal: Goal) -> tuple[int, int, bool]:
    """From what surely fits to the last before what surely does not, and whether both ends are the answer.

    A model in doubt that may have too many says itself how many it keeps at worst, and so does the wide model; one
    that may fit after all says nothing of wider ones, which the wide model does, if it is sound, and otherwise only
    the cap.
    """
    doubtful = [
        trial
        for trial in narrow
        if may_still_cross_threshold(trial, goal.threshold) or trial.decision == "undecided"
    ]
    sure = [trial for trial in narrow if trial not in doubtful]
    fitting = [trial.n_latents for trial in sure if trial.decision == "fits" and trial.n_latents <= answer]
    surplus = [trial.n_latents for trial in sure if trial.decision == "too many" and trial.n_latents > answer]
    if answer in fitting and answer + 1 in surplus:
        return answer, answer, True
    at_least = wide.low if wide.is_sound else 0
    kept = [min(answer, max(trial.keeps or 0, at_least)) for trial in doubtful if trial.n_latents <= answer]
    low = max(min(kept, default=answer), max(fitting, default=0))
    high = answer
    if above := [trial.n_latents for trial in doubtful if trial.n_latents > answer]:
        most = max(above) if wide.is_sound else goal.cap
        high = min(surplus, default=most + 1) - 1
    return low, high, False


def upper_end(high: int, basis: Basis, goal: Goal) -> int:
    """Return the upper end of an interval: if linear models generalise better with more latents, it includes them."""
    most = high if not basis.is_below or basis.closed_form is None else max(high, basis.closed_form)
    return min(most, goal.cap)
