"""FONDUE with as few gradient steps as the decision requires."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from polariscope.core.text import capitalised, plural
from polariscope.sizing.bisection import CapError, no_surplus, notes_on
from polariscope.sizing.candidates import AbstractCandidates, OutOfTimeError
from polariscope.sizing.deciding import (
    decide,
    max_steps,
    passes,
)
from polariscope.sizing.fondue_settings import SETTINGS
from polariscope.sizing.goal import Goal
from polariscope.sizing.methods import method
from polariscope.sizing.methods.support.bound import bound, upper_end
from polariscope.sizing.methods.support.closed_form import ClosedForm, closed_form, is_table
from polariscope.sizing.methods.support.forecast import Forecast
from polariscope.sizing.methods.support.predict import wide_forecasts
from polariscope.sizing.methods.support.verify import count_faint, training_of, verify
from polariscope.sizing.result import TRACE, Basis, BasisCode, SeedResult
from polariscope.sizing.trial import Trial

ALL_FIT = (
    "{}. With a learned γ this is the maximum: at least one direction of the features, or of the samples, must remain "
    "to estimate γ. To try more latents, fix γ with the option variance."
)
MAXIMUM_OF_DATA = "the maximum with a learned γ"


@method(
    "fondue",
    statistic=TRACE,
    trains=True,
    needs_variances=True,
    finds_beta=True,
    with_trainer="guided",
    rate="sizing",
    threshold="goal",
    interval="how the answer could change with more training or if models were trained from scratch",
    uses=("n_init", "cap", "steps", "minutes"),
)
def fondue(candidates: AbstractCandidates, goal: Goal) -> SeedResult:
    r"""Return the largest n with Σ E[σ²] ≤ threshold: a wide model predicts it, narrow models verify it.

    The published procedure (``fondue-published``) trains 4–8 models for whole epochs. This one trains about three:

    1. *Predict.* One wide model predicts :math:`\hat g(n)` for every n
       (:func:`~polariscope.sizing.methods.support.forecast.forecast`; exact for linear VAEs, also with a learned
       variance of the decoder). It is trained until more training is not expected to change the answer by more than
       one, or by a tenth. Its width is doubled if all of its latents are in use, and it is rejected if it is far too
       wide.
    2. *Verify.* Narrow models on both sides of the predicted n are initialised from the wide model's most informative
       latents (:func:`~polariscope.models.narrowing.take_latents`) if its posterior is diagonal, and trained from
       scratch otherwise. Each is trained until level and trend of its latents decide on which side of the threshold it
       stays (:func:`~polariscope.sizing.judge.judge`). If they contradict the prediction, their measurements correct it
       (:func:`~polariscope.sizing.bisection.search_guided`). So a model with n latents fits, and one with n + 1 does
       not. If there are several such n, the answer is the smallest: with a learned variance of the decoder the
       statistic can fall again when n nears the number of features.
    3. *Bound.* The interval includes one latent more and fewer, because models trained from scratch can differ by one,
       and the number of latents that the partially active ones add up to. Unless both sides are decided, it also
       includes everything that the trends of the wide model and of undecided models lead to. If the wide model
       overfits, it begins at the number that was predicted at the lowest held-out loss
       (:func:`~polariscope.analysis.convergence.best_step`).

    If a model learns nothing from the data, the answer is 0, with a note. If the limit of ``minutes`` is reached, the
    answer is the best so far, and the interval is wider.

    For tables with a learned variance of the decoder the answer is the number that generalises. Linear models in closed
    form, cross-validated (:func:`~polariscope.analysis.linear_evidence.cross_validate`), are a check: if they have a
    clearly lower held-out loss than the wide model, and their residual is noise, their number is the answer. Otherwise,
    if the wide model overfits, the answer is its prediction at its lowest held-out loss. In both cases one model of
    this size is trained. :class:`~polariscope.sizing.result.Basis` names the evidence.

    The answer holds for its learning rate: larger steps prune more latents. At 1e-3 the conv net loses latents of
    sprites that it keeps at the published 1e-4; 2e-4 keeps the same latents as 1e-4 in half the steps, so images are
    sized with 2e-4.

    :param candidates: trains and encodes a model for any number of latents.
    :param goal: the goal of the search, with its limits.
    """
    trials: list[Trial] = []
    step_limit = max_steps(candidates, goal)
    limit = candidates.max_latents
    # A lower cap of the caller ends the search before the limit of the data.
    is_limit_of_data = limit is not None and limit <= goal.cap
    if limit is not None and is_limit_of_data:
        goal = dataclasses.replace(goal, cap=limit)
    wide: Forecast | None = None
    try:
        for latest in wide_forecasts(candidates, goal, step_limit, trials):
            wide = latest  # kept for _cut_short, if the time limit is reached before the next one
        assert wide is not None
        # Held-out losses are comparable with linear models only if the loss is −ELBO; otherwise they are None.
        linear = None if wide.held_out is None else closed_form(candidates, goal)
        if linear is not None and linear.evidence.has_noise_floor and linear.beats(wide.held_out):
            return _by_closed_form(candidates, goal, wide, linear, trials)
        if wide.best is not None and wide.best.value and is_table(candidates, goal):
            return _early_stopped(candidates, goal, wide, wide.best, linear, trials)
        # The checkpoint of this step is gone if an earlier search trained the wide model further.
        begun = candidates.nearest_steps(len(wide.traces), wide.steps, learning_rate=goal.careful_rate())
        answer = verify(candidates, goal, step_limit, wide, begun, trials)
    except OutOfTimeError as error:
        if wide is None:
            early = (
                f"There is no answer yet: the first one requires {SETTINGS.first_look} steps of one model."
            )
            raise OutOfTimeError(f"{early} {error}") from None
        return _cut_short(trials, wide, goal, str(error))
    except CapError:
        # The limit of the data is an answer, but reaching the caller's cap is an error.
        if not is_limit_of_data or wide is None:
            raise
        notes = [ALL_FIT.format(no_surplus(goal.cap).capitalize()), *_overfitting_note(wide, goal.cap)]
        low = min(goal.cap, wide.low, wide.low if wide.best is None else wide.best.value)
        return SeedResult(goal.cap, (low, goal.cap), _shown(trials), tuple(notes))
    low, high, is_open = bound(trials, answer, wide, goal, candidates.can_prune)
    faint = count_faint(candidates, trials, answer, training_of(candidates, answer, goal, wide, begun))
    end = (
        (f"{goal.cap}, {MAXIMUM_OF_DATA}" if is_limit_of_data else f"the cap, {goal.cap}") if is_open else ""
    )
    notes = notes_of(trials, answer, end, faint, goal.threshold)
    notes += [] if wide.has_settled else [_unsettled(wide)]
    notes += _overfitting_note(wide, answer)
    if begun != wide.steps and candidates.can_prune:
        notes.append(
            f"The wide model in this folder already has {begun:,} steps, and narrow models were initialised from its "
            f"present state. For the answer after {wide.steps:,} steps, use another folder."
        )
    basis = _basis(answer, wide, linear)
    return SeedResult(answer, (low, upper_end(high, basis, goal)), _shown(trials), tuple(notes), basis=basis)


def _by_closed_form(
    candidates: AbstractCandidates, goal: Goal, wide: Forecast, linear: ClosedForm, trials: list[Trial]
) -> SeedResult:
    """Return the number of latents of linear models that generalise, and train one model of this size.

    The interval contains the answers if one fold is left out, one more and one fewer.
    """
    number = linear.evidence.n_latents
    answer = min(max(1, number), goal.cap)
    trials.append(_fit(candidates, goal, answer, wide.steps if wide.best is None else wide.best.steps))
    low, high = linear.evidence.interval
    low, high = max(1, min(low, answer) - SETTINGS.seed_margin), max(high, answer) + SETTINGS.seed_margin
    basis = Basis("closed-form", closed_form=number)
    return SeedResult(answer, (low, min(high, goal.cap)), _shown(trials), basis=basis)


def _early_stopped(
    candidates: AbstractCandidates,
    goal: Goal,
    wide: Forecast,
    best: Forecast,
    linear: ClosedForm | None,
    trials: list[Trial],
) -> SeedResult:
    """Return the number of latents that the wide model predicted when its held-out loss was lowest.

    The interval contains the number it has come to since, one more and one fewer.
    """
    answer = min(best.value, goal.cap)
    trials.append(_fit(candidates, goal, answer, best.steps))
    basis = _basis(answer, wide, linear, "early-stopped", best.steps)
    low, high = max(1, answer - SETTINGS.seed_margin), max(answer, wide.value) + SETTINGS.seed_margin
    return SeedResult(answer, (low, upper_end(high, basis, goal)), _shown(trials), basis=basis)


def _fit(candidates: AbstractCandidates, goal: Goal, n_latents: int, steps: int) -> Trial:
    """Train a model from scratch for ``steps`` steps, within the limits of the search, and return its trial."""
    steps = min(max_steps(candidates, goal), max(SETTINGS.first_verdict, steps))
    # With the limit as first verdict, the model is trained for all steps and judged once.
    return decide(
        candidates, n_latents, goal.threshold, steps, first=steps, learning_rate=goal.careful_rate()
    )


def _basis(
    answer: int,
    wide: Forecast,
    linear: ClosedForm | None,
    code: BasisCode = "search",
    step: int | None = None,
) -> Basis:
    """Return the basis of an answer, with the number of latents of linear models next to it."""
    if linear is None or wide.held_out is None:
        return Basis(code, step)
    number = linear.evidence.n_latents
    return Basis(code, step, number, is_below=answer < number and linear.beats(wide.held_out))


def _cut_short(trials: Sequence[Trial], wide: Forecast, goal: Goal, why: str) -> SeedResult:
    """Return the best answer when the time limit is reached.

    The answer is the prediction of the wide model, limited by the models that were trained. If the wide model has not
    converged, more training could activate any of its latents, so the interval includes them all. If all latents of a
    wide model are in use, the upper end is the cap.
    """
    width = len(wide.traces)
    fitting = max((t.n_latents for t in trials if passes(t, goal.threshold)), default=0)
    surplus = min((t.n_latents for t in trials if not passes(t, goal.threshold)), default=goal.cap + 1)
    # The prediction, moved into the range that the trained models leave.
    answer = min(max(wide.value, fitting), surplus - 1)
    highest = max(wide.high, wide.value + wide.n_shared) if wide.has_settled else max(width, wide.high)
    full = max((t.n_latents for t in trials if t.role == "wide" and t.decision == "fits"), default=0)
    if full:
        highest = goal.cap
    low, high = min(wide.low, answer), max(min(highest, goal.cap), answer)
    # At least 1, unless the end is already 0.
    low = max(min(1, low), low - SETTINGS.seed_margin)
    notes = [why, *_overfitting_note(wide, answer)]
    low = low if wide.best is None else min(low, wide.best.value)
    if full and high == goal.cap:
        notes.append(
            f"The interval ends at the cap, {high}, because a model with {full} latents had no surplus."
        )
    elif high == width < goal.cap and not wide.has_settled:
        notes.append(
            f"The interval ends at {high} because no wider model was trained: the data might need more latents."
        )
    return SeedResult(answer, (low, high), _shown(trials), tuple(notes))


def _shown(trials: Sequence[Trial]) -> tuple[Trial, ...]:
    """Return the trials to list: a wide model that was also used as a narrow one appears once."""
    narrow = [trial.n_latents for trial in trials if trial.role != "wide"]
    width = max(trial.n_latents for trial in trials if trial.role == "wide")
    return tuple(
        trial for trial in trials if trial.role != "wide" or trial.n_latents < width or width not in narrow
    )


def _unsettled(wide: Forecast) -> str:
    """Return the note about a wide model that was stopped before it converged."""
    return (
        f"The wide model with {len(wide.traces)} latents had not converged after {wide.steps:,} steps, the limit. More "
        "steps could change the answer; the interval extrapolates its trends."
    )


def _overfitting_note(wide: Forecast, answer: int) -> list[str]:
    """Return a note if the wide model overfits and predicted fewer latents at its lowest held-out loss."""
    if wide.best is None or wide.best.value >= answer:
        return []
    return [
        f"The wide model overfits: its held-out loss was lowest after about {wide.best.steps:,} steps, when it "
        f"predicted {plural(wide.best.value, 'latent')}. The interval includes this number. More observations would "
        "resolve it."
    ]


def notes_of(
    trials: Sequence[Trial], answer: int, open_end: str, n_faint: int, threshold: float
) -> list[str]:
    """Return the notes on an answer; advice for more and for fewer latents is joined into one note.

    :param trials: the models that were trained
    :param answer: the number of latents
    :param open_end: description of the upper end of the interval if no model has clearly too many latents, otherwise ""
    :param n_faint: number of latents of the answer's model that carry little information
    :param threshold: maximum Σ E[σ²] of a model without surplus latents
    """
    narrow = [trial for trial in trials if trial.role != "wide"]
    notes = notes_on(narrow, [answer])
    notes += [f"{plural(trial.n_latents, 'latent')}: {trial.note}." for trial in narrow if trial.note]
    no_end = f"no model has clearly too many latents, so the interval ends at {open_end}"
    if n_faint:
        which, them = ("carries", "it") if n_faint == 1 else ("carry", "them")
        faint = (
            f"{n_faint} of the {answer} latents {which} little information (E[σ²] above one half); the answer counts "
            f"{them}, because the sum is within the threshold of {threshold:g}"
        )
        choice = f"Choose {answer - n_faint} if every latent must be informative."
        # As separate notes, the advice for more and the advice for fewer latents would contradict each other.
        joined = f"By the threshold alone the answer could be larger: {no_end}. But " if open_end else ""
        notes.append(f"{joined}{faint}. {choice}")
    elif open_end:
        notes.append(f"{capitalised(no_end)}.")
    return notes
