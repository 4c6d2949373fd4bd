"""FONDUE, with as few gradient steps as the decision needs."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

from polariscope.analysis.convergence import best_step
from polariscope.sizing import (
    TRACE,
    AbstractCandidates,
    Basis,
    BasisCode,
    Curves,
    Decision,
    Found,
    Goal,
    OutOfTimeError,
    Trial,
    method,
)
from polariscope.sizing.support.closed_form import ClosedForm, closed_form, is_table
from polariscope.sizing.support.deciding import (
    FIRST,
    decide,
    may_still_cross_threshold,
    most_steps,
    passes,
    schedule,
)
from polariscope.sizing.support.forecast import LEAST_STEPS, Forecast, forecast
from polariscope.sizing.support.judge import BEGUN
from polariscope.sizing.support.search import CapError, no_surplus, notes_on, search_guided

WIDTH = 16
"""Latents of the first model, unless the guess is larger."""
FIRST_LOOK = 400
"""Steps before the first prediction."""
SPARE = 1
"""Latents that a model must have left over: with fewer it cannot say where the threshold is crossed, and is widened."""
FRESH = 1
"""Latents that models trained afresh may keep more, or fewer, than those that began with a wide one's."""
FIRST_NARROW = 600
"""Steps before the first verdict on a model that begins with a wide one's latents: they have learned already."""
TOO_WIDE = 8
"""A model so many times wider than what it predicts spreads its noise over all latents and is not believed."""


ALL_FIT = (
    "{}. With a learned γ no more can be asked for: one direction of the features, or of the samples, must be left to "
    "learn it from. Fix γ with the option variance to ask for more."
)
MOST = "the most that can be asked for with a learned γ"


@method(
    "fondue",
    statistic=TRACE,
    trains=True,
    needs_variances=True,
    finds_beta=True,
    is_careful=True,
    threshold="goal",
    interval="how the answer could change with more training or a fresh start",
    uses=("n_init", "cap", "steps", "minutes"),
)
def fondue(candidates: AbstractCandidates, goal: Goal) -> Found:
    r"""The largest n with Σ E[σ²] ≤ threshold: one wide model predicts it, narrow ones are trained until they decide.

    The published procedure (see ``fondue-published``) trains 4–8 models for whole epochs. Here

    1. one *wide* model predicts :math:`\hat g(n)` for every n
       (:func:`~polariscope.sizing.support.forecast.forecast`; exact for linear VAEs, with a learned variance of the
       decoder too). It is trained until more training is not expected to change the answer by more than one (or a
       tenth): no variance drifts across, and no latent woke for long. It is doubled in width if it has no latent to
       spare, and not believed if it is far too wide;
    2. *narrow* models on both sides of the predicted n begin with the wide one's most informative latents
       (:func:`~polariscope.models.narrowing.take_latents`) where its posterior has independent ones, and else afresh.
       Each is trained until the level and the trend of its latents say on which side of the threshold it stays
       (:func:`~polariscope.sizing.support.judge.judge`). If they disagree with the prediction, what they measured
       corrects it (:func:`~polariscope.sizing.support.search.search_guided`).

    So there is a model with n latents that fits, and one with n + 1 that does not; of several such n the answer is the
    smallest, since with a learned variance of the decoder the statistic may fall again when n nears the number of
    features. Models trained afresh may keep a latent more or fewer, and as many more as what half-awake latents of the
    wide model hold would fill. The interval takes that in, the latents that may still wake, and, unless both sides are
    sure, all that the wide model may come to and every narrow model that may still turn out otherwise; and where the
    wide model learns observations by heart, what it said before
    (:func:`~polariscope.analysis.convergence.best_step`). Data of which a model learns nothing need 0 latents, and a
    note says so. When ``minutes`` are over, the answer is the best there is, and the interval as wide as it has to be.

    For tables with a learned variance of the decoder the answer is the number that generalises. Linear models in closed
    form, cross-validated (:func:`~polariscope.analysis.linear_evidence.cross_validate`), are a check: if they have a
    clearly lower held-out loss than the wide model, and the rest of the data is noise to them, their number is the
    answer. Otherwise, if the wide model overfits, the answer is what it predicted at its lowest held-out loss. In both
    cases one model of this size is trained. :class:`~polariscope.sizing.Basis` names the evidence.

    What it cannot take in is another learning rate: large steps prune more. At 1e-3 the conv net gives up latents of
    sprites that it keeps at the published 1e-4; at 2e-4 they live and die as at 1e-4, in half the steps, so images
    are sized with 2e-4.

    :param candidates: trains and encodes a model for any number of latents.
    :param goal: what is sought, and within which limits.
    """
    trials: list[Trial] = []
    most = most_steps(candidates, goal)
    limit = candidates.most_latents
    is_limit_of_data = limit is not None and limit <= goal.cap
    if limit is not None and is_limit_of_data:
        goal = dataclasses.replace(goal, cap=limit)
    wide: Forecast | None = None
    try:
        for latest in wide_forecasts(candidates, goal, most, trials):
            wide = latest  # the last one, if the time is over before the next
        assert wide is not None
        linear = None if wide.held_out is None else closed_form(candidates, goal)
        if linear is not None and linear.evidence.has_noise_floor and linear.beats(wide.held_out):
            return _by_closed_form(candidates, goal, wide, linear, trials)
        if wide.best is not None and wide.best.value and is_table(candidates, goal):
            return _early_stopped(candidates, goal, wide, wide.best, linear, trials)
        begun = candidates.nearest_steps(len(wide.traces), wide.steps, learning_rate=goal.careful_rate())
        answer = _prove(candidates, goal, most, wide, begun, trials)
    except OutOfTimeError as error:
        if wide is None:
            early = f"There is no answer yet: the first comes after {FIRST_LOOK} steps of one model."
            raise OutOfTimeError(f"{early} {error}") from None
        return _cut_short(trials, wide, goal, str(error))
    except CapError:
        if not is_limit_of_data or wide is None:
            raise
        notes = [ALL_FIT.format(no_surplus(goal.cap).capitalize()), *_by_heart(wide, goal.cap)]
        low = min(goal.cap, wide.low, wide.low if wide.best is None else wide.best.value)
        return Found(goal.cap, (low, goal.cap), _shown(trials), tuple(notes))
    low, high, is_open = _reach(trials, answer, wide, goal, candidates.can_prune)
    faint = _n_faint(candidates, trials, answer, _training_of(candidates, answer, goal, wide, begun))
    end = (f"{goal.cap}, {MOST}" if is_limit_of_data else f"the cap, {goal.cap}") if is_open else ""
    notes = notes_of(trials, answer, end, faint, goal.threshold)
    notes += [] if wide.has_settled else [_unsettled(wide)]
    notes += _by_heart(wide, answer)
    if begun != wide.steps and candidates.can_prune:
        notes.append(
            f"In this folder the wide model had {begun:,} steps already, and narrow ones began with its latents as "
            f"they are now. For an answer of {wide.steps:,} steps take another folder."
        )
    return Found(answer, (low, high), _shown(trials), tuple(notes), basis=_basis(answer, wide, linear))


def _by_closed_form(
    candidates: AbstractCandidates, goal: Goal, wide: Forecast, linear: ClosedForm, trials: list[Trial]
) -> Found:
    """Return the number of latents of linear models that generalise, and train one model with so many.

    The interval contains the answers if one fold is left out, one more and one fewer.
    """
    number = linear.evidence.n_latents
    answer = min(max(1, number), goal.cap)
    trials.append(_fit(candidates, goal, answer, wide.steps if wide.best is None else wide.best.steps))
    low, high = linear.evidence.interval
    low, high = max(1, min(low, answer) - FRESH), max(high, answer) + FRESH
    basis = Basis("closed-form", closed_form=number)
    return Found(answer, (low, min(high, goal.cap)), _shown(trials), basis=basis)


def _early_stopped(
    candidates: AbstractCandidates,
    goal: Goal,
    wide: Forecast,
    best: Forecast,
    linear: ClosedForm | None,
    trials: list[Trial],
) -> Found:
    """Return the number of latents that the wide model predicted when its held-out loss was lowest.

    The interval contains the number it has come to since, one more and one fewer.
    """
    answer = min(best.value, goal.cap)
    trials.append(_fit(candidates, goal, answer, best.steps))
    low, high = max(1, answer - FRESH), max(answer, wide.value) + FRESH
    basis = _basis(answer, wide, linear, "early-stopped", best.steps)
    return Found(answer, (low, min(high, goal.cap)), _shown(trials), basis=basis)


def _fit(candidates: AbstractCandidates, goal: Goal, n_latents: int, steps: int) -> Trial:
    """Return the trial of a model that is trained from scratch for so many steps, within the limits of the search."""
    steps = min(most_steps(candidates, goal), max(FIRST, steps))
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


def _prove(
    candidates: AbstractCandidates, goal: Goal, most: int, wide: Forecast, begun: int, trials: list[Trial]
) -> int:
    """The largest n of which a narrow model fits, while one with a latent more does not.

    Narrow models begin with the latents of the wide one after ``begun`` steps.
    """
    n_wide = len(trials)

    def measured(n: int) -> tuple[bool, float]:
        n_awake = wide.n_awake if wide.has_settled else None
        how = _training_of(candidates, n, goal, wide, begun)
        is_pruned = "pruned_from" in how
        first = FIRST_NARROW if is_pruned else FIRST
        is_first = len(trials) == n_wide
        if is_first and candidates.gains_by_company and n < min(goal.cap, len(wide.traces) - 1):
            candidates.watch_together((n, n + 1), min(first, most), **how)  # the two that mostly decide
        has_descended = is_pruned and wide.steps >= LEAST_STEPS
        trial = decide(
            candidates,
            n,
            goal.threshold,
            most,
            n_awake=n_awake,
            first=first,
            has_descended=has_descended,
            **how,
        )
        # The data can be learned, as the wide model shows.
        if wide.n_awake and trial.cause == "silent":
            trial = dataclasses.replace(trial, projected=(0.0, max(goal.threshold, trial.statistic)))
        trials.append(trial)
        return passes(trial, goal.threshold), trial.statistic

    expected = wide.after(min(FIRST_NARROW, most) if candidates.can_prune else 0)
    return search_guided(measured, expected, goal.threshold, goal.cap)


def _training_of(
    candidates: AbstractCandidates, n: int, goal: Goal, wide: Forecast, begun: int
) -> dict[str, Any]:
    """How a narrow model is trained: from the wide one's latents, where it has them to spare."""
    width = len(wide.traces)
    pruned = {"pruned_from": (width, begun)} if candidates.can_prune and n < width else {}
    return {"learning_rate": goal.careful_rate(), **pruned}


def _cut_short(trials: Sequence[Trial], wide: Forecast, goal: Goal, why: str) -> Found:
    """The best answer when the time is over: what models bound, the wide one fills, if it stands.

    Otherwise more training may bring out any of its latents; and without a latent to spare it says nothing of more.
    """
    width = len(wide.traces)
    fitting = max((t.n_latents for t in trials if passes(t, goal.threshold)), default=0)
    surplus = min((t.n_latents for t in trials if not passes(t, goal.threshold)), default=goal.cap + 1)
    answer = min(max(wide.value, fitting), surplus - 1)
    most = max(wide.high, wide.value + wide.n_held) if wide.has_settled else max(width, wide.high)
    full = max((t.n_latents for t in trials if t.role == "wide" and t.decision == "fits"), default=0)
    if full:
        most = goal.cap
    low, high = min(wide.low, answer), max(min(most, goal.cap), answer)
    low = max(min(1, low), low - FRESH)
    notes = [why, *_by_heart(wide, answer)]
    low = low if wide.best is None else min(low, wide.best.value)
    if full and high == goal.cap:
        notes.append(f"The interval ends at the cap, {high}, because even {full} latents left none over.")
    elif high == width < goal.cap and not wide.has_settled:
        notes.append(
            f"The interval ends at {high} because no model had more latents yet: the data may need more."
        )
    return Found(answer, (low, high), _shown(trials), tuple(notes))


def _shown(trials: Sequence[Trial]) -> tuple[Trial, ...]:
    """Models as they are listed: a wide one that also decides, as n + 1, is there once."""
    narrow = [trial.n_latents for trial in trials if trial.role != "wide"]
    width = max(trial.n_latents for trial in trials if trial.role == "wide")
    return tuple(
        trial for trial in trials if trial.role != "wide" or trial.n_latents < width or width not in narrow
    )


def _unsettled(wide: Forecast) -> str:
    """What is said where the wide model was stopped before it stood."""
    return (
        f"The wide model, of {len(wide.traces)} latents, was still changing after {wide.steps:,} steps, the most it "
        "was given. More steps may change the answer; the interval takes in what its trends show."
    )


def _by_heart(wide: Forecast, answer: int) -> list[str]:
    """What is said where the wide model has learned more than helps with observations it was not trained on."""
    if wide.best is None or wide.best.value >= answer:
        return []
    return [
        f"The wide model learns single observations by heart: on held-out ones its loss was lowest after about "
        f"{wide.best.steps:,} steps, when it pointed at {wide.best.value} latents. The interval takes that in; with "
        "more observations it would be clear."
    ]


def notes_of(
    trials: Sequence[Trial], answer: int, open_end: str, n_faint: int, threshold: float
) -> list[str]:
    """What to know about an answer; what could be read as another answer is joined into one note.

    :param trials: the models that were trained
    :param answer: the number of latents
    :param open_end: where the interval ends, in words, if no model has clearly too many latents; else ""
    :param n_faint: how many latents of the answer's model carry little
    :param threshold: most Σ E[σ²] that counts as no surplus
    """
    narrow = [trial for trial in trials if trial.role != "wide"]
    notes = notes_on(narrow, [answer])
    notes += [
        f"{trial.n_latents} latent{'s' if trial.n_latents > 1 else ''}: {trial.note}."
        for trial in narrow
        if trial.note
    ]
    no_end = f"no model has clearly too many latents, so the interval ends at {open_end}"
    if n_faint:
        which, them = ("carries", "it") if n_faint == 1 else ("carry", "them")
        faint = (
            f"{n_faint} of the {answer} latents {which} little information (E[σ²] above one half); the answer counts "
            f"{them}, since the sum stays within the threshold of {threshold:g}"
        )
        choice = f"Choose {answer - n_faint} if every latent must be informative."
        # More than the answer and fewer than it are both advice: said apart they contradict each other.
        joined = f"By the threshold alone the answer may be larger: {no_end}. But " if open_end else ""
        notes.append(f"{joined}{faint}. {choice}")
    elif open_end:
        notes.append(f"{no_end[0].upper()}{no_end[1:]}.")
    return notes


def _reach(
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
        least, most = low, high + (wide.n_waking if is_sure else 0)
    else:
        least, most = wide.low, wide.high
    is_open = high >= goal.cap
    if is_pruned:
        held = max(answer, wide.value) + wide.n_held  # by latents beyond what the wide model keeps
        low, high = max(min(1, low), low - FRESH), max(high + FRESH, held)
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


def _n_faint(
    candidates: AbstractCandidates, trials: Sequence[Trial], answer: int, how: dict[str, Any]
) -> int:
    """How many latents the threshold lets pass: one that is given up adds less than 1. 0 when all are."""
    steps = [trial.steps for trial in trials if trial.n_latents == answer and trial.role != "wide"]
    if not steps:
        return 0
    variances = candidates.watch(answer, steps[-1], **how).variances[-1]
    count = int((variances > BEGUN).sum())
    return 0 if count == answer else count


def wide_forecasts(
    candidates: AbstractCandidates, goal: Goal, most: int, trials: list[Trial]
) -> Iterator[Forecast]:
    """What one wide model predicts, of as many latents as are needed, until it has settled or had ``most`` steps.

    It is widened while it has no surplus; one that is far too wide is replaced by the least.
    """
    # A threshold of k lets about k surplus latents pass, so the wide model must have room for them.
    least = min(goal.cap, max(WIDTH, round(2 * goal.threshold) + WIDTH // 2))
    width = max(least, min(goal.cap, goal.n_init or 1))
    while True:
        before = len(trials)
        for steps in schedule(most, FIRST_LOOK):
            curves = candidates.watch(width, steps, learning_rate=goal.careful_rate())
            found = _foretold(curves, goal.threshold, candidates.n_learned_from)
            trace = float(curves.variances[-1].sum())
            decision: Decision = "fits" if found.value == width else "too many"
            seen = Trial(width, candidates.seed, trace, decision, steps, curve=curves.trace, role="wide")
            trials[before:] = [seen]  # the time may be over before the next look
            yield found
            if found.best is not None and is_table(candidates, goal):
                break  # more steps only overfit more
            # Without surplus it cannot say where the threshold is crossed, however long it is trained.
            if found.has_settled or (found.value > width - SPARE and steps >= FIRST_LOOK * 4):
                break
        if TOO_WIDE * max(1, found.value) < width and width > least and len(trials) == 1:
            width = least
            continue
        if found.value <= width - SPARE or (found.best is not None and found.best.value <= width - SPARE):
            return
        if width >= goal.cap:
            raise CapError(
                f"{no_surplus(width)}, and cap is {goal.cap}; raise the cap, or check the threshold."
            )
        width = min(goal.cap, 2 * width)


def _foretold(curves: Curves, threshold: float | int, n_features: int | None) -> Forecast:
    """What a wide model predicts, and if it learns observations by heart by now, what it predicted before that."""

    def until(last: int) -> Forecast:
        seen = curves.steps <= last
        gammas = None if curves.gammas is None else curves.gammas[seen]
        return forecast(curves.steps[seen], curves.variances[seen], threshold, n_features, gammas)

    best = best_step(curves.held_out)
    found = until(int(curves.steps[-1]))
    if curves.is_elbo and curves.held_out:
        found = dataclasses.replace(found, held_out=min(loss for _, loss, _ in curves.held_out))
    return found if best is None else dataclasses.replace(found, best=until(max(best, FIRST_LOOK)))
