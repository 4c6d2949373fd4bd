"""Curves over the number of latents: losses and codes of models of each width, and the answers of sizing methods."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from numbers import Integral
from pathlib import Path
from typing import Any

from polariscope.core.errors import Argument, InputError, PolariscopeError
from polariscope.core.options import options_of, spelled_out
from polariscope.core.records import from_plain, to_plain
from polariscope.core.types import OptionValue
from polariscope.data.data_like import DataLike
from polariscope.data.dataset import AbstractDataset
from polariscope.data.observations import Part, Subset
from polariscope.sizing.checks import BOUNDS, check_bounds_used, check_models, make_goal, supported_options
from polariscope.sizing.compare import needs_factors
from polariscope.sizing.curve_point import measure_point
from polariscope.sizing.curve_result import CurvePoint, SizeCurve
from polariscope.sizing.goal import Goal
from polariscope.sizing.methods import family
from polariscope.sizing.result import Size
from polariscope.sizing.search import Question, Search, SearchSettings, ask
from polariscope.sizing.trained import TrainedCandidates, max_latents
from polariscope.storage.search_folder import SearchFolder
from polariscope.training.plan import FAMILIES, concept_of, plan
from polariscope.training.planner import IMAGES, Planned

VARIATIONAL = "vae"
"""Objective of the models that methods use if those of the curves have no posterior variances; also their folder."""
WIDTHS = Argument("n_latents")
"""Name of the numbers of latents in messages."""
LENGTH = ("steps", "epochs")
"""Options for the length of training of the models of the curves."""


@spelled_out(SearchSettings, Goal, open_ended=True)
def size_curve(
    data: DataLike,
    n_latents: Sequence[int],
    *,
    methods: Sequence[str] = ("fondue",),
    seeds: int = 5,
    part: Part = Subset.part,
    announce: Callable[[CurvePlan], None] | None = None,
    **options: OptionValue,
) -> SizeCurve:
    """Measure loss, probe accuracy, traces, intrinsic dimensions and types of latents as the number of latents grows.

    One model is trained for each number of latents and each seed. All of them train for ``steps`` gradient steps
    (default 2,000), or ``epochs`` passes over the training data, at the learning rate of ``fondue``. With ``out`` no
    model is trained twice: models of :func:`polariscope.size` in the same folder are reused, and an interrupted call
    can be resumed. Losses are measured on held-out samples, codes on 10,000 samples of ``part``. Quantities that an
    objective does not have (for an autoencoder the types and everything sampled) are left out, with a note.

    ``methods`` run with the same seeds in the same folder, so they reuse its models. Options such as ``threshold`` and
    ``cap`` apply to them; ``steps`` and ``epochs`` do not. If the models have no posterior variances, methods that
    require them size the VAE with the same nets, as in bonheme2023 Fig. 8.6.

    Reference: bonheme2023 Figs 8.1, 8.5 to 8.10, 8.12 and D.1 to D.4.

    :param data: a dataset, or an array of observations.
    :param n_latents: numbers of latents, ascending.
    :param methods: (default fondue) names of ``polariscope.sizing`` whose answers are shown with the curves.
    :param seeds: (default 5) number of seeds.
    :param part: (default "all") part of the split that is encoded: "all", "train", "validation" or "test".
    :param announce: (default None) function called with the plan before training starts.
    :param options: options of the methods as in :func:`polariscope.size`, and of the models (``objective``, ``net`` …)
        as in :func:`polariscope.train`.
    """
    search = Search.prepare(data, methods, {**options, "seeds": seeds}, trains=True)
    job = plan_curve(search, n_latents, part)
    if announce is not None:
        announce(job)
    with search.session() as (folder, progress):
        points = []
        for seed in search.seeds:
            candidates = search.candidates(folder, seed, job.recipe, progress, part=part)
            assert isinstance(candidates, TrainedCandidates)
            points += [_cached_point(candidates, n, job) for n in job.n_latents]
        answers = []
        for question in job.questions:
            # Models of another objective have their own folder, because the names of models do not contain it.
            models = folder if question.recipe == job.recipe else folder / VARIATIONAL
            try:
                answer = search.answer(question, models, search.enter(question.method, progress))
            except PolariscopeError as error:  # a method without an answer does not stop the others
                statistic = family.traits(question.method)["statistic"]
                answer = Size(None, None, question.method, statistic=statistic, notes=(str(error),))
            answers.append(answer)
    points.sort(key=lambda point: (point.n_latents, point.seed))
    curve = SizeCurve(
        tuple(points),
        tuple(answers),
        job.objective,
        job.steps,
        job.steps / job.steps_per_epoch,
        job.n_samples,
        part,
        (*job.notes, *_missing(points)),
    )
    if search.out is not None:
        _write(search, curve, job)
    return curve


@dataclasses.dataclass(frozen=True)
class CurvePlan:
    """Checked plan of the models and methods of a curve; nothing is written yet."""

    data: AbstractDataset
    """The data in the units in which models are trained."""
    n_latents: tuple[int, ...]
    recipe: Mapping[str, Any]
    """Options of the models."""
    changes: Mapping[str, Any]
    """Options of the models that differ from the recipe, the same as in the methods."""
    objective: str
    steps: int
    """Gradient steps of each model."""
    steps_per_epoch: int
    part: Part
    """Part of the split whose observations are encoded."""
    n_samples: int
    """Number of observations that are encoded."""
    questions: tuple[Question, ...]
    """Methods with their options."""
    chosen: tuple[str, ...]
    """Descriptions of the options that were chosen automatically."""
    notes: tuple[str, ...]
    """Quantities that are left out, with the reason."""


def plan_curve(search: Search, n_latents: Sequence[int], part: Part) -> CurvePlan:
    """Plan the models and methods of a curve, and check the options.

    :param search: data, methods and options.
    :param n_latents: numbers of latents, ascending.
    :param part: part of the split that is encoded.
    """
    dataset, options, recipe = search.data, search.options, search.recipe
    goal = make_goal({name: value for name, value in options.items() if name in BOUNDS}, dataset, recipe)
    check_widths(n_latents, goal.cap)
    check_bounds_used(options, search.methods, (*LENGTH, "cap", "learning_rate"))
    if goal.learning_rate is not None:
        recipe["learning_rate"] = goal.learning_rate
    pace = {"learning_rate": goal.careful_rate(), "batch_size": IMAGES.batch_size}
    job = plan(dataset, n_latents=1, **{"steps": goal.fixed_steps, **pace, **recipe})
    planned = Planned({name: pace[name] for name in pace if name not in recipe}, {})
    check_models(job, recipe)
    limit = max_latents(job)
    if limit is not None and max(n_latents) > limit:
        raise InputError(
            WIDTHS,
            f"be at most {limit}: γ is learned, and with more latents it cannot be estimated from "
            f"{dataset.n_features:,} features of {len(dataset):,} samples",
            got=max(n_latents),
            remedy=("use fewer, or fix γ with ", Argument("variance")),
        )
    # A plan of one epoch is resolved to the number of its steps.
    per_epoch = plan(dataset, n_latents=1, **{**recipe, "epochs": 1}).settings.steps
    split = functools.partial(job.settings.split_of, dataset)
    n_samples = len(Subset(part=part).choose(len(dataset), split))
    has_density = job.blueprint.posterior.has_density
    notes = [] if dataset.factor_names else ["Probe accuracy is left out: the data have no known factors."]
    if not has_density:
        notes.append(
            "KL, types, Σ E[σ²] and everything sampled are left out: the encoder is deterministic, so there are no "
            "posterior variances."
        )
    questions = []
    for name in search.methods:
        question, note = _question(search, name, recipe, has_density=has_density)
        questions.append(question)
        notes += [note] if note else []
    objective = FAMILIES["objective"].name_of(job.objective)
    return CurvePlan(
        dataset,
        tuple(int(n) for n in n_latents),
        recipe,
        {"learning_rate": goal.careful_rate()},
        objective,
        goal.fixed_steps if goal.epochs is None else goal.epochs * per_epoch,
        per_epoch,
        part,
        n_samples,
        tuple(questions),
        (*job.chosen, *planned.in_words),
        tuple(notes),
    )


def check_widths(n_latents: object, cap: int) -> None:
    """Check that the numbers of latents are integers in ascending order, up to a cap.

    :param n_latents: numbers of latents.
    :param cap: maximum number of latents.
    """
    numbers = list(n_latents) if isinstance(n_latents, Sequence) and not isinstance(n_latents, str) else []
    if not numbers or any(isinstance(n, bool) or not isinstance(n, Integral) or n < 1 for n in numbers):
        raise InputError(
            WIDTHS, "be integers from 1, as in (3, 6, 8, 10), at least one", got=f"{n_latents!r}"
        )
    if any(after <= before for before, after in pairwise(numbers)):
        raise InputError(WIDTHS, "be in ascending order, without repetition", got=f"{n_latents!r}")
    if numbers[-1] > cap:
        raise InputError(
            WIDTHS, ("be at most ", Argument("cap")), got=f"{numbers[-1]} and {cap}", remedy="raise the cap"
        )


def _question(
    search: Search, method: str, recipe: Mapping[str, Any], *, has_density: bool
) -> tuple[Question, str]:
    """Return a method with its options and a note; it sizes VAEs if the models of the curves have no variances."""
    dataset, options = search.data, search.options
    if needs_factors(method) and not dataset.factor_names:
        raise InputError(
            problem=f"method {method!r} requires data with known factors, and these have none",
            remedy=("leave it out of ", Argument("methods")),
        )
    models, note = dict(recipe), ""
    if family.traits(method)["needs_variances"] and not has_density:
        # Options of the replaced objective and posterior have no meaning for a VAE.
        theirs = {*options_of(concept_of("objective", recipe["objective"])), "objective", "posterior"}
        models = {
            name: value
            for name, value in recipe.items()
            if name.removeprefix("objective_") not in theirs and not name.startswith("posterior_")
        }
        models["objective"] = VARIATIONAL
        note = (
            f"{method} requires posterior variances, so its answer is for the VAE with the same nets. According to "
            "bonheme2023 Fig. 8.6 the same number of latents suits autoencoders."
        )
    # The length of training applies to the models of the curves, not to those of the methods.
    shared = {name: options[name] for name in options if name not in LENGTH and name not in recipe}
    # plan_curve has moved the learning rate to the recipe, but for a method it is an option of the goal.
    shared |= {name: recipe[name] for name in ("learning_rate",) if name in recipe}
    options_of_models = {name: value for name, value in models.items() if name != "learning_rate"}
    question = ask(
        dataset, method, {**supported_options(method, shared, search.methods), **options_of_models}
    )
    # The recipe selects the folder of the models, also for methods that do not train.
    return dataclasses.replace(question, recipe=models), note


def _cached_point(candidates: TrainedCandidates, n_latents: int, job: CurvePlan) -> CurvePoint:
    """Return the stored point, or measure and store it."""
    about = {**job.changes, "part": job.part, "n_samples": job.n_samples}
    key = ", ".join([f"{n_latents} latents", f"{job.steps} steps", *(f"{k} {v}" for k, v in about.items())])
    stored = candidates.folder.points().get(key)
    if stored is not None:
        return from_plain(CurvePoint, stored, "delete it, and make the curves again")
    changes = dict(job.changes)
    if candidates.has_gone_beyond(n_latents, job.steps, **changes):
        # A search trained this model further, so it is trained again next to it. This option only changes its name.
        changes["checkpoint_every"] = job.steps
    point = measure_point(candidates, n_latents, job.steps, **changes)
    candidates.folder.keep_point(key, to_plain(point))
    return point


def _missing(points: Sequence[CurvePoint]) -> list[str]:
    """Return notes if intrinsic dimensions could not be estimated."""
    notes = []
    for name, kind in (("dimension_mean", "mean"), ("dimension_sampled", "sampled")):
        if kind == "sampled" and all(point.rate is None for point in points):
            continue  # there is a note about deterministic encoders already
        widths = sorted({point.n_latents for point in points if getattr(point, name) is None})
        if widths:
            notes.append(
                f"The intrinsic dimension of the {kind} representation cannot be estimated for some models with "
                f"{', '.join(map(str, widths))} latents: codes hardly vary, or there are too few."
            )
    return notes


def _write(search: Search, curve: SizeCurve, job: CurvePlan) -> None:
    """Write the curves with their settings, and tables of their numbers."""
    assert search.out is not None
    folder = SearchFolder(search.out)
    settings = {
        "data": {**job.data.describe(), "fingerprint": job.data.fingerprint},
        "n_latents": job.n_latents,
        "methods": [question.method for question in job.questions],
        "seed": search.settings.seed,
        "seeds": search.settings.seeds,
        "recipe": job.recipe,
        "goals": {question.method: to_plain(question.goal) for question in job.questions},
        "chosen_for_you": list(job.chosen),
    }
    folder.write_curve(curve.to_dict(), settings, bands=curve.to_csv(), models=curve.models_csv())


def read_curve(folder: str | Path) -> SizeCurve:
    """Read the curves from a folder and check them.

    :param folder: the argument ``out`` of :func:`size_curve`.
    """
    return SizeCurve.from_dict(SearchFolder(folder).read_curve()[0])
