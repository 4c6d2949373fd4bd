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
    candidates: AbstractCandidates, goal: Goal, step_limit: int, trials: list[Trial]
) -> Iterator[Forecast]:
    """Yield the forecasts of one wide model until it has converged or reached ``step_limit``.

    Its width is doubled while it has no surplus. A model that is far too wide is replaced by one of minimum width.
    """
    # A threshold of k allows about k surplus latents, so the wide model must include them.
    min_width = min(
        goal.cap, max(SETTINGS.first_width, round(2 * goal.threshold) + SETTINGS.first_width // 2)
    )
    width = max(min_width, min(goal.cap, goal.n_init or 1))
    while True:
        # A width has one trial, which every verdict replaces.
        before = len(trials)
        for steps in schedule(step_limit, SETTINGS.first_look):
            curves = candidates.watch(width, steps, learning_rate=goal.careful_rate())
            latest = _predicted(curves, goal.threshold, candidates.n_gamma_values)
            trace = float(curves.variances[-1].sum())
            decision: Decision = "fits" if latest.value == width else "too many"
            trial = Trial(width, candidates.seed, trace, decision, steps, curve=curves.trace, role="wide")
            trials[before:] = [
                trial
            ]  # recorded now, because the time limit can be reached before the next verdict
            yield latest
            if latest.best is not None and is_table(candidates, goal):
                break  # more steps only overfit more
            # Without surplus latents it cannot predict the crossing of the threshold, even with more training.
            if latest.has_settled or (
                latest.value > width - SETTINGS.min_surplus and steps >= SETTINGS.first_look * 4
            ):
                break
        # Only for the first width, which the caller can have set; later ones were reached by doubling.
        if SETTINGS.max_width_ratio * max(1, latest.value) < width and width > min_width and len(trials) == 1:
            width = min_width
            continue
        max_value = width - SETTINGS.min_surplus
        if latest.value <= max_value or (latest.best is not None and latest.best.value <= max_value):
            return
        if width >= goal.cap:
            raise CapError(
                f"{no_surplus(width)}, and cap is {goal.cap}; raise the cap, or check the threshold."
            )
        width = min(goal.cap, 2 * width)


def _predicted(curves: Curves, threshold: float | int, n_features: int | None) -> Forecast:
    """Return the forecast of a wide model, with the forecast at its lowest held-out loss if it overfits."""

    def until(last: int) -> Forecast:
        rows = curves.steps <= last
        gammas = None if curves.gammas is None else curves.gammas[rows]
        return forecast(curves.steps[rows], curves.variances[rows], threshold, n_features, gammas)

    best = best_step(curves.held_out)
    latest = until(int(curves.steps[-1]))
    if curves.is_elbo and curves.held_out:
        latest = dataclasses.replace(latest, held_out=min(loss for _, loss, _ in curves.held_out))
    if best is None:
        return latest
    # Earlier, the last quarter has too few measurements for a line.
    return dataclasses.replace(latest, best=until(max(best, SETTINGS.first_look)))
