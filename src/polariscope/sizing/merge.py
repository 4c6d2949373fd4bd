"""Merging of the answers of several seeds, with the noise level and the fit of the answer's model."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from polariscope.sizing.candidates import AbstractCandidates
from polariscope.sizing.goal import Goal, Target
from polariscope.sizing.methods import family
from polariscope.sizing.result import Basis, SeedResult, Size, median_answer


def with_noise(result: SeedResult, candidates: AbstractCandidates) -> SeedResult:
    """Add γ to each trial of a result, and the noise level of the answer's model to the result.

    :param result: result of the method for one seed.
    :param candidates: the models that it trained.
    """
    # A closed form has set it itself.
    if result.noise is not None:
        return result
    trials, noise = [], None
    for trial in result.trials:
        its = candidates.noise(trial.n_latents, trial.steps, trial.beta)
        trials.append(
            trial if its is None or trial.gamma is not None else dataclasses.replace(trial, gamma=its.gamma)
        )
        # A search can return to a model with more steps, so the last trial counts.
        is_answer = result.value is not None and result.value in (trial.n_latents, trial.beta)
        noise = its if its is not None and is_answer else noise
    if noise is None and result.trials:  # for example a count in one wide model
        last = result.trials[-1]
        noise = candidates.noise(last.n_latents, last.steps, last.beta)
    return dataclasses.replace(result, trials=tuple(trials), noise=noise)


def with_fit(result: SeedResult, candidates: AbstractCandidates, target: Target) -> SeedResult:
    """Add the verdict on the model with as many latents as the answer to a result.

    :param result: result of the method for one seed.
    :param candidates: the models that it trained.
    :param target: quantity to find.
    """
    if result.verdict is not None or target == "beta":
        return result
    fits = [trial for trial in result.trials if trial.n_latents == result.value and trial.steps]
    if not fits:
        return result
    return dataclasses.replace(
        result, verdict=candidates.verdict(fits[-1].n_latents, fits[-1].steps, fits[-1].beta)
    )


def merge(results: Sequence[SeedResult], method: str, target: Target, goal: Goal, spent: int) -> Size:
    """Merge the results of several seeds: the median of the answers, and the range of all intervals."""
    values = [each.value for each in results if each.value is not None]
    ends = [end for each in results if each.interval is not None for end in each.interval]
    several = f"lowest and highest end of the intervals of {len(results)} seeds"
    traits = family.traits(method)
    meaning = "up to the nearest β that is decided" if target == "beta" else traits["interval"]
    meaning = results[0].basis.meaning_of_interval(meaning) if results else meaning
    single = f"{meaning}. It holds for this seed only; use several seeds to see how much they differ"
    single = single if traits["trains"] else meaning
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
        meaning_of_interval=several if len(results) > 1 else single,
        notes=tuple(notes),
        summary=family.summary(method),
        # The median is the answer of at least one seed; noise, verdict and basis are those of that seed.
        noise=next((each.noise for each in results if each.value == value and each.noise is not None), None),
        trains=traits["trains"],
        verdict=next(
            (each.verdict for each in results if each.value == value and each.verdict is not None), None
        ),
        basis=next((each.basis for each in results if each.value == value), Basis()),
    )
