"""One answer from several seeds, with the noise and the fit of its model."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from polariscope.sizing.candidates import AbstractCandidates
from polariscope.sizing.goal import Goal, Target
from polariscope.sizing.methods import family
from polariscope.sizing.result import Basis, SeedResult, Size, median_answer


def with_noise(result: SeedResult, candidates: AbstractCandidates) -> SeedResult:
    """Return the result of a method with γ of each model, and that of the answer's model apart.

    :param result: result of the method for one seed.
    :param candidates: whose models it trained.
    """
    if result.noise is not None:
        return result
    trials, noise = [], None
    for trial in result.trials:
        its = candidates.noise(trial.n_latents, trial.steps, trial.beta)
        trials.append(
            trial if its is None or trial.gamma is not None else dataclasses.replace(trial, gamma=its.gamma)
        )
        # A search may come back to a model with more steps: the last word counts.
        is_answer = result.value is not None and result.value in (trial.n_latents, trial.beta)
        noise = its if its is not None and is_answer else noise
    if noise is None and result.trials:  # one wide model, say
        last = result.trials[-1]
        noise = candidates.noise(last.n_latents, last.steps, last.beta)
    return dataclasses.replace(result, trials=tuple(trials), noise=noise)


def with_fit(result: SeedResult, candidates: AbstractCandidates, target: Target) -> SeedResult:
    """Return the result of a method, with the verdict on the model that has as many latents as the answer.

    :param result: result of the method for one seed.
    :param candidates: whose models it trained.
    :param target: what is sought.
    """
    if result.verdict is not None or target == "beta":
        return result
    own = [trial for trial in result.trials if trial.n_latents == result.value and trial.steps]
    if not own:
        return result
    return dataclasses.replace(
        result, verdict=candidates.verdict(own[-1].n_latents, own[-1].steps, own[-1].beta)
    )


def merge(results: Sequence[SeedResult], method: str, target: Target, goal: Goal, spent: int) -> Size:
    """One answer of several seeds: the median, and the range of all that each may be."""
    values = [each.value for each in results if each.value is not None]
    ends = [end for each in results if each.interval is not None for end in each.interval]
    several = f"lowest and highest of {len(results)} seeds, with what each may still become"
    traits = family.traits(method)
    meant = "as far as the nearest β that is sure" if target == "beta" else traits["interval"]
    meant = results[0].basis.meaning_of_interval(meant) if results else meant
    alone = (
        f"{meant}, for this seed only; several seeds show how much it varies between them"
        if traits["trains"]
        else meant
    )
    notes = [
        f"Seed {each.trials[0].seed}: {note}" if len(results) > 1 and each.trials else note
        for each in results
        for note in each.notes
    ]
    if len(values) < len(results) and len(results) > 1:
        notes.append(f"{len(results) - len(values)} of {len(results)} seeds have no answer.")
    value = median_answer(values) if values else None
    return Size(
        value=value,
        interval=(min(ends), max(ends)) if ends else None,
        method=method,
        target=target,
        statistic=traits["statistic"],
        threshold=goal.threshold if traits["threshold"] == "goal" else traits["threshold"],
        per_seed=tuple(values),
        trials=tuple(trial for each in results for trial in each.trials),
        n_steps=spent,
        meaning_of_interval=several if len(results) > 1 else alone,
        notes=tuple(notes),
        summary=family.summary(method),
        noise=next((each.noise for each in results if each.value == value and each.noise is not None), None),
        trains=traits["trains"],
        verdict=next(
            (each.verdict for each in results if each.value == value and each.verdict is not None), None
        ),
        basis=next((each.basis for each in results if each.value == value), Basis()),
    )
