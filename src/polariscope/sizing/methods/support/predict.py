"""Predict: a wide model, trained until its prediction is stable."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from polariscope.analysis.convergence import best_step
from polariscope.sizing.bisection import CapError, no_surplus
from polariscope.sizing.candidates import AbstractCandidates, Curves
from polariscope.sizing.deciding import schedule
from polariscope.sizing.fondue_settings import SETTINGS
from polariscope.sizing.goal import Goal
from polariscope.sizing.methods.support.closed_form import is_table
from polariscope.sizing.methods.support.forecast import Forecast, forecast
from polariscope.sizing.trial import Decision, Trial


def wide_forecasts(
    candidates: AbstractCandidates, goal: Goal, most: int, trials: list[Trial]
) -> Iterator[Forecast]:
    """What one wide model predicts, of as many latents as are needed, until it has settled or had ``most`` steps.

    It is widened while it has no surplus; one that is far too wide is replaced by the least.
    """
    # A threshold of k lets about k surplus latents pass, so the wide model must have room for them.
    least = min(goal.cap, max(SETTINGS.first_width, round(2 * goal.threshold) + SETTINGS.first_width // 2))
    width = max(least, min(goal.cap, goal.n_init or 1))
    while True:
        before = len(trials)
        for steps in schedule(most, SETTINGS.first_look):
            curves = candidates.watch(width, steps, learning_rate=goal.careful_rate())
            found = _predicted(curves, goal.threshold, candidates.n_gamma_values)
            trace = float(curves.variances[-1].sum())
            decision: Decision = "fits" if found.value == width else "too many"
            seen = Trial(width, candidates.seed, trace, decision, steps, curve=curves.trace, role="wide")
            trials[before:] = [seen]  # the time may be over before the next look
            yield found
            if found.best is not None and is_table(candidates, goal):
                break  # more steps only overfit more
            # Without surplus it cannot say where the threshold is crossed, however long it is trained.
            if found.has_settled or (
                found.value > width - SETTINGS.min_surplus and steps >= SETTINGS.first_look * 4
            ):
                break
        if SETTINGS.max_width_ratio * max(1, found.value) < width and width > least and len(trials) == 1:
            width = least
            continue
        most_predicted = width - SETTINGS.min_surplus
        if found.value <= most_predicted or (found.best is not None and found.best.value <= most_predicted):
            return
        if width >= goal.cap:
            raise CapError(
                f"{no_surplus(width)}, and cap is {goal.cap}; raise the cap, or check the threshold."
            )
        width = min(goal.cap, 2 * width)


def _predicted(curves: Curves, threshold: float | int, n_features: int | None) -> Forecast:
    """What a wide model predicts, and if it learns observations by heart by now, what it predicted before that."""

    def until(last: int) -> Forecast:
        seen = curves.steps <= last
        gammas = None if curves.gammas is None else curves.gammas[seen]
        return forecast(curves.steps[seen], curves.variances[seen], threshold, n_features, gammas)

    best = best_step(curves.held_out)
    found = until(int(curves.steps[-1]))
    if curves.is_elbo and curves.held_out:
        found = dataclasses.replace(found, held_out=min(loss for _, loss, _ in curves.held_out))
    return found if best is None else dataclasses.replace(found, best=until(max(best, SETTINGS.first_look)))
