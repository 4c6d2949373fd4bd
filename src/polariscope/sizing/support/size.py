"""How many latents does this data need?"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from polariscope.core.errors import InputError
from polariscope.core.options import options_of
from polariscope.core.seeds import generator
from polariscope.data.chain import Given, apply_variants, shorthands
from polariscope.data.dataset import AbstractDataset
from polariscope.data.missing import Missing
from polariscope.sizing import (
    DIMENSION,
    INTERVALS,
    TRACE,
    AbstractCandidates,
    Basis,
    DataDimension,
    Found,
    Goal,
    Size,
    Target,
    family,
    median_answer,
)
from polariscope.sizing.support.beta import largest_beta
from polariscope.sizing.support.candidates import TrainedCandidates
from polariscope.sizing.support.checks import (
    BOUNDS,
    check_call,
    check_recipe,
    check_scale,
    check_used,
    check_varies,
    make_goal,
    split_options,
    trained_units,
)
from polariscope.sizing.support.search import check_threshold
from polariscope.storage.artefacts import Key
from polariscope.storage.folder import RunFolder
from polariscope.storage.search import SearchFolder
from polariscope.training.threads import check_threads
from polariscope.training.train import choose_device

N_FOR_DIMENSION = 2000
"""Observations from which the intrinsic dimension is estimated beside an answer: its time grows with their square."""


def size(
    data: object,
    method: str = "fondue",
    *,
    target: str = "latents",
    n_latents: int | None = None,
    seed: int = 0,
    seeds: int = 1,
    out: str | Path | None = None,
    device: object = "auto",
    threads: int | None = None,
    progress: bool | Callable[[int, int, int, float], None] = False,
    variants: Given = (),
    standardise: bool = False,
    scale: bool = False,
    keep_units: bool = False,
    missing: Missing = "refuse",
    **options: object,
) -> Size:
    """How many latents the data need, or with ``target="beta"`` how large β may be for ``n_latents``.

    With ``out`` nothing is trained twice: an interrupted search goes on where it stopped, and the answer is kept.

    :param data: a dataset, or an array of observations
    :param method: (default fondue) a name of :data:`polariscope.sizing`: ``fondue`` (the largest n whose Σ E[σ²]
        stays within ``threshold``, in few steps), the published searches, and rivals
    :param target: (default latents) what is sought: latents, or the largest beta
    :param n_latents: number of latents, with ``target="beta"``
    :param seed: (default 0) seed of the first models; the others have ``seed`` + 1, …
    :param seeds: (default 1) how many seeds; the answer is their median, the interval their range together with
        what each may still become
    :param out: folder in which every model is a run
    :param device: (default auto) as in :func:`polariscope.train`
    :param threads: (default: by the work in a step and the cores) as in :func:`polariscope.train`
    :param progress: a function called with (seed, n_latents, step, Σ E[σ²]), or True for a line on the terminal; where
        two models are trained at the same time it is called from their threads, by one at a time
    :param variants: (default none) variants of the data, as in :func:`polariscope.train`
    :param standardise: (default False) bring every feature of a table to mean 0 and standard deviation 1 first
    :param scale: (default False) bring every feature of a table to [0, 1] first
    :param keep_units: (default False) leave a table in the units it has, as in :func:`polariscope.train`
    :param missing: (default "refuse") what is done about missing values of an array, as in :func:`polariscope.train`
    :param threshold: (default 1) largest Σ E[σ²] that counts as no surplus
    :param n_init: (default: chosen by the method) first guess; it changes the time, and the answer hardly
    :param cap: (default 512) most latents that are tried
    :param steps: (default 2,000; fondue: ten passes over the data, 8,000 to 16,000) gradient steps of each model, for
        fondue at most
    :param minutes: (default: as long as it takes) time to answer in; the interval says how sure that can be
    :param epochs: (default: until the answer stays) passes over the data, for the published searches
    :param learning_rate: (default 1e-3; fondue on images 2e-4; linear nets 1e-2; published searches 1e-4) step size
        of the optimiser
    :param options: of the method, and of what is trained: ``objective``, ``net``, ``likelihood`` … as in
        :func:`polariscope.train`
    """
    dataset = apply_variants(data, variants, standardise=standardise, scale=scale, missing=missing)
    sought = check_call(method, target, n_latents, seeds, options)
    _, _, recipe = split_options(method, options)
    shorthands(standardise=standardise, scale=scale, keep_units=keep_units)
    dataset = trained_units(dataset, recipe, keep_units=keep_units)
    kept = {"keep_units": True} if keep_units else {}
    question = ask(dataset, method, {**options, **kept}, sought, n_latents)
    check_varies(dataset)
    check_scale(dataset, method, recipe)
    choose_device(device)
    check_threads(threads)
    with candidates_place(out) as folder, spoken(progress) as listen:
        result = search(
            question, dataset, folder, seed=seed, seeds=seeds, device=device, threads=threads, listen=listen
        )
        if sought == "latents" and family.traits(method)["statistic"] != DIMENSION:
            chosen = generator(seed, "dimension of the data").permutation(len(dataset))[:N_FOR_DIMENSION]
            rows = dataset.values(np.sort(chosen)).reshape(len(chosen), -1)
            result = dataclasses.replace(result, dimension=dimension_of(rows, seed))
        if out is not None:
            settings = {
                "data": {**dataset.describe(), "fingerprint": dataset.fingerprint},
                "method": method,
                "target": target,
                "seed": seed,
                "seeds": seeds,
                "goal": {name: getattr(question.goal, name) for name in BOUNDS},
                "options": question.own,
                "recipe": question.recipe,
                "chosen_for_you": list(question.chosen),
            }
            write_size(out, result, settings)
    return result


@dataclasses.dataclass(frozen=True)
class Question:
    """What is asked of a method, checked."""

    method: str
    goal: Goal
    own: Mapping[str, object]
    """The method's own options."""
    recipe: Mapping[str, object]
    """Of the models."""
    chosen: tuple[str, ...]
    """What nobody asked for by name, in words."""
    target: Target = "latents"
    n_latents: int | None = None
    """Of the models, where β is what is sought."""


def ask(
    dataset: AbstractDataset,
    method: str,
    options: Mapping[str, object],
    target: Target = "latents",
    n_latents: int | None = None,
) -> Question:
    """Refuse what a method cannot be asked, before anything is trained.

    :param dataset: in the units in which models are trained.
    :param method: a name of ``polariscope.sizing``.
    :param options: bounds of the search, options of the method, and the recipe of the models.
    :param target: (default "latents") what is sought.
    :param n_latents: (default None) number of latents, where β is sought.
    """
    bounds, own, recipe = split_options(method, options)
    threshold = bounds.get("threshold", Goal.threshold)
    check_threshold(threshold, positive=family.traits(method)["statistic"] == TRACE)
    goal = make_goal(bounds, dataset, recipe)
    check_used(method, target, {name: getattr(goal, name) for name in BOUNDS})
    most = n_latents if target == "beta" else goal.cap
    if family.traits(method)["threshold"] == "goal" and most is not None and threshold >= most:
        raise InputError(
            "threshold", f"be below the {most} that so many latents can reach", got=f"{threshold:g}"
        )
    if goal.learning_rate is not None:
        recipe["learning_rate"] = goal.learning_rate
    return Question(method, goal, own, recipe, check_recipe(dataset, method, recipe), target, n_latents)


Listen = Callable[[int, int, int, float], None]
"""Told at every look the seed, the number of latents, the step and Σ E[σ²]."""


def search(
    question: Question,
    dataset: AbstractDataset,
    folder: Path,
    *,
    seed: int = 0,
    seeds: int = 1,
    device: object = "auto",
    threads: int | None = None,
    listen: Listen | None = None,
) -> Size:
    """The answer of a method over several seeds, with models that are kept in a folder.

    :param question: what is asked.
    :param dataset: in the units in which models are trained.
    :param folder: of the models; each seed has a folder in it, where those trained before are found again.
    :param seed: (default 0) the first seed.
    :param seeds: (default 1) how many.
    :param device: (default "auto") as in :func:`polariscope.train`.
    :param threads: (default: by the work in a step and the cores) as in :func:`polariscope.train`.
    :param listen: (default None) told at every look how far it is.
    """
    found: list[Found] = []
    spent, goal = 0, question.goal
    end = None if goal.minutes is None else time.monotonic() + 60 * goal.minutes
    for number in range(seed, seed + seeds):
        candidates = TrainedCandidates(
            dataset,
            SearchFolder(folder).seed(number).path,
            number,
            {**question.recipe, "device": device, "threads": threads},
            None if listen is None else functools.partial(listen, number),
            deadline=None if end is None else _share(end, seed + seeds - number),
        )
        if question.target == "beta":
            assert question.n_latents is not None
            answer = largest_beta(candidates, goal, question.n_latents)
        else:
            answer = family[question.method](candidates, goal, **question.own)
        found.append(with_fit(with_noise(answer, candidates), candidates, question.target))
        spent += candidates.n_steps
    return merge(found, question.method, question.target, goal, spent)


def _show_options(function: Callable[..., Any]) -> None:
    """Let ``help`` and completion see the options of every search, which are declared in :class:`Goal` alone."""
    signature = inspect.signature(function)
    *named, rest = signature.parameters.values()
    known = options_of(Goal)
    fields = [
        inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=known[name].annotation
        )
        for name, default in BOUNDS.items()
    ]
    function.__signature__ = signature.replace(parameters=[*named, *fields, rest])  # type: ignore[attr-defined]


_show_options(size)


def with_noise(found: Found, candidates: AbstractCandidates) -> Found:
    """What a method found, with γ of each model, and that of the answer's model apart.

    :param found: by the method.
    :param candidates: whose models it trained.
    """
    if found.noise is not None:
        return found
    trials, noise = [], None
    for trial in found.trials:
        its = candidates.noise(trial.n_latents, trial.steps, trial.beta)
        trials.append(
            trial if its is None or trial.gamma is not None else dataclasses.replace(trial, gamma=its.gamma)
        )
        # A search may come back to a model with more steps: the last word counts.
        is_answer = found.value is not None and found.value in (trial.n_latents, trial.beta)
        noise = its if its is not None and is_answer else noise
    if noise is None and found.trials:  # one wide model, say
        last = found.trials[-1]
        noise = candidates.noise(last.n_latents, last.steps, last.beta)
    return dataclasses.replace(found, trials=tuple(trials), noise=noise)


def with_fit(found: Found, candidates: AbstractCandidates, target: Target) -> Found:
    """Return what a method found, with the verdict on the model that has as many latents as the answer.

    :param found: by the method.
    :param candidates: whose models it trained.
    :param target: what is sought.
    """
    if found.verdict is not None or target == "beta":
        return found
    own = [trial for trial in found.trials if trial.n_latents == found.value and trial.steps]
    if not own:
        return found
    return dataclasses.replace(
        found, verdict=candidates.verdict(own[-1].n_latents, own[-1].steps, own[-1].beta)
    )


def dimension_of(rows: Float[np.ndarray, "sample feature"], seed: int) -> DataDimension:
    """Return the intrinsic dimension of observations as method ``id`` estimates it, or why there is none.

    :param rows: observations, (sample, feature).
    :param seed: seed of its resamples.
    """
    from polariscope.analysis.dimension.support.stability import intrinsic_dimension

    try:
        found = intrinsic_dimension(rows, seed=seed)
    except InputError as refusal:
        return DataDimension(None, problem=str(refusal))
    return DataDimension(found.value, found.interval, found.n_points)


def merge(found: Sequence[Found], method: str, target: Target, goal: Goal, spent: int) -> Size:
    """One answer of several seeds: the median, and the range of all that each may be."""
    values = [each.value for each in found if each.value is not None]
    ends = [end for each in found if each.interval is not None for end in each.interval]
    several = f"lowest and highest of {len(found)} seeds, with what each may still become"
    traits = family.traits(method)
    meant = "as far as the nearest β that is sure" if target == "beta" else traits["interval"]
    meant = INTERVALS.get(found[0].basis.code, meant) if found else meant
    alone = (
        f"{meant}, for this seed only; several seeds show how much it varies between them"
        if traits["trains"]
        else meant
    )
    notes = [
        f"Seed {each.trials[0].seed}: {note}" if len(found) > 1 and each.trials else note
        for each in found
        for note in each.notes
    ]
    if len(values) < len(found) and len(found) > 1:
        notes.append(f"{len(found) - len(values)} of {len(found)} seeds have no answer.")
    value = median_answer(values) if values else None
    return Size(
        value=value,
        interval=(min(ends), max(ends)) if ends else None,
        method=method,
        target=target,
        statistic=traits["statistic"],
        threshold=goal.threshold if traits["threshold"] == "goal" else traits["threshold"],
        per_seed=tuple(values),
        trials=tuple(trial for each in found for trial in each.trials),
        n_steps=spent,
        meaning_of_interval=several if len(found) > 1 else alone,
        notes=tuple(notes),
        summary=family.summary(method),
        noise=next((each.noise for each in found if each.value == value and each.noise is not None), None),
        trains=traits["trains"],
        verdict=next(
            (each.verdict for each in found if each.value == value and each.verdict is not None), None
        ),
        basis=next((each.basis for each in found if each.value == value), Basis()),
    )


def write_size(folder: str | Path, size: Size, settings: dict[str, object]) -> None:
    """Keep an answer beside its settings."""
    SearchFolder(folder).write_answer(size.to_dict(), settings)


def read_size(folder: str | Path) -> Size:
    """The answer that a search left in its folder, checked."""
    return Size.from_dict(SearchFolder(folder).read_answer()[0])


def settings_of_models(folder: str | Path) -> dict[str, Any] | None:
    """Return the settings of a model that a search trained, the one with as many latents as the answer if it is there.

    :param folder: that of the search; None is returned if its method trained nothing.
    """
    answer = read_size(folder).value
    models = [model for seed in SearchFolder(folder).seeds() for model in seed.models() if model.is_begun]
    fitting = [model for model in models if model.settings["model"]["n_latents"] == answer]
    return (fitting or models)[0].settings if models else None


def keep_size(folder: str | Path, run: str | Path) -> None:
    """Keep the answer of a search beside a run, where its report finds it."""
    answer, settings = SearchFolder(folder).read_answer()
    kept = RunFolder(run)
    kept.artefacts.keep(Key("size", None, settings["data"]["fingerprint"], settings=settings), answer)


def _share(end: float, n_seeds: int) -> float:
    """When the first of so many seeds has had its part of the time that is left."""
    now = time.monotonic()
    return now + (end - now) / n_seeds


@contextmanager
def candidates_place(out: str | Path | None) -> Iterator[Path]:
    """The folder of the candidates; without ``out`` one that is deleted afterwards."""
    if out is not None:
        yield Path(out)
        return
    with tempfile.TemporaryDirectory(prefix="polariscope-size-") as folder:
        yield Path(folder)


@contextmanager
def spoken(progress: Any) -> Iterator[Listen | None]:
    if progress is not True:
        yield progress or None
        return
    from rich.console import Console

    console = Console(stderr=True)
    with console.status("sizing …") as status:
        yield lambda *candidate: status.update(candidate_line(*candidate))


def candidate_line(seed: int, n_latents: int, step: int, trace: float) -> str:
    """A candidate in one breath; one without posterior variances has no Σ E[σ²].

    >>> candidate_line(0, 16, 1200, 1.0812)
    'seed 0: 16 latents, step 1,200, Σ E[σ²] 1.08'
    >>> candidate_line(0, 1, 1200, 0.0)
    'seed 0: 1 latent, step 1,200'
    """
    noun = "latent" if n_latents == 1 else "latents"
    words = f"seed {seed}: {n_latents} {noun}, step {step:,}"
    return f"{words}, {TRACE} {trace:.2f}" if trace else words
