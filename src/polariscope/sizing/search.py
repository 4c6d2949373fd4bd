"""A search: the checked data, units, options, seeds and folder that all sizing functions share.

:func:`~polariscope.sizing.size.size`, :func:`~polariscope.sizing.compare.compare_sizes`,
:func:`~polariscope.sizing.curve.size_curve` and ``size_table`` prepare a :class:`Search` and run methods through it.
"""

from __future__ import annotations

import dataclasses
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from polariscope.core.deprecation import warn_deprecated
from polariscope.core.errors import InputError
from polariscope.core.paths import user_path
from polariscope.core.progress import AnyProgress, Progress, in_stage, reporting
from polariscope.core.text import plural
from polariscope.core.types import OptionValue
from polariscope.data.chain import VariantsLike, apply_variants, shorthands
from polariscope.data.data_like import DataLike
from polariscope.data.dataset import AbstractDataset
from polariscope.data.missing import Missing
from polariscope.data.observations import Part, Subset
from polariscope.models.protocol import DeviceLike
from polariscope.sizing.bisection import check_threshold
from polariscope.sizing.candidates import AbstractCandidates
from polariscope.sizing.checks import (
    BOUNDS,
    check_recipe,
    check_seeds,
    check_units,
    check_used,
    check_varies,
    make_goal,
    own_options,
    split_options,
    supported_options,
    trained_units,
)
from polariscope.sizing.goal import Goal, Target
from polariscope.sizing.merge import merge, with_fit, with_noise
from polariscope.sizing.methods import family
from polariscope.sizing.result import TRACE, SeedResult, Size
from polariscope.sizing.search_progress import candidate_arguments
from polariscope.sizing.size_beta import largest_beta
from polariscope.sizing.trained import TrainedCandidates
from polariscope.storage.search_folder import SearchFolder
from polariscope.training.threads import check_threads
from polariscope.training.train import choose_device


@dataclasses.dataclass(frozen=True)
class Question:
    """A method with its goal and options, checked."""

    method: str
    goal: Goal
    own: Mapping[str, object]
    """The method's own options."""
    recipe: Mapping[str, object]
    """Options of the models."""
    chosen: tuple[str, ...]
    """Descriptions of the options that were chosen automatically."""
    target: Target = "latents"
    n_latents: int | None = None
    """Number of latents of the models, if the target is β."""


def ask(
    dataset: AbstractDataset,
    method: str,
    options: Mapping[str, object],
    target: Target = "latents",
    n_latents: int | None = None,
) -> Question:
    """Check the options of a method before anything is trained, and return them as a question.

    :param dataset: data in the units in which models are trained.
    :param method: a name of ``polariscope.sizing``.
    :param options: options of the goal, of the method and of the models.
    :param target: (default "latents") quantity to find.
    :param n_latents: (default None) number of latents, if the target is β.
    """
    bounds, own, recipe = split_options(method, options)
    threshold = bounds.get("threshold", Goal.threshold)
    check_threshold(threshold, positive=family.traits(method)["statistic"] == TRACE)
    goal = make_goal(bounds, dataset, recipe)
    check_used(method, target, {name: getattr(goal, name) for name in BOUNDS})
    max_trace = n_latents if target == "beta" else goal.cap
    # Each latent adds at most 1 to Σ E[σ²], so a larger threshold is never exceeded.
    if family.traits(method)["threshold"] == "goal" and max_trace is not None and threshold >= max_trace:
        raise InputError(
            "threshold",
            f"be below {max_trace}, the largest value with {plural(max_trace, 'latent')}",
            got=f"{threshold:g}",
        )
    if goal.learning_rate is not None:
        recipe["learning_rate"] = goal.learning_rate
    return Question(method, goal, own, recipe, check_recipe(dataset, method, recipe, goal), target, n_latents)


@dataclasses.dataclass(frozen=True)
class SearchSettings:
    """Seeds, folder, device and units of a search: arguments that all sizing functions share."""

    seed: int = 0
    """First seed; further ones are seed + 1, seed + 2, …"""
    seeds: int = 1
    """Number of seeds; the answer is their median, and the interval includes all of them."""
    out: str | Path | None = None
    """Folder for the models and the results; with it no model is trained twice. None: they are deleted afterwards."""
    device: DeviceLike = "auto"
    """Device of the training, as in :func:`polariscope.train`."""
    threads: int | None = None
    """Threads of the training; None: chosen from the work per step and the number of cores."""
    progress: bool | AnyProgress = False
    """If True, progress is printed while models train. It can also be a function that is called with (seed, n_latents,
    step, Σ E[σ²]), or with an event if its argument is a :class:`polariscope.core.progress.ProgressEvent`. If two
    models are trained in parallel, it is called from their threads, one call at a time."""
    variants: VariantsLike = ()
    """Variants of the data, as in :func:`polariscope.train`."""
    standardise: bool = False
    """If True, every feature of a table is first rescaled to mean 0 and standard deviation 1."""
    scale: bool = False
    """If True, every feature of a table is first rescaled to [0, 1]."""
    keep_units: bool = False
    """If True, a table keeps its units, as in :func:`polariscope.train`."""
    missing: Missing = "refuse"
    """Treatment of missing values of an array, as in :func:`polariscope.train`."""


SETTINGS_OF_SEARCH = tuple(field.name for field in dataclasses.fields(SearchSettings))
"""Names of the arguments that all searches share."""


@dataclasses.dataclass(frozen=True)
class Search:
    """A search whose data and options are checked; no model is trained yet."""

    data: AbstractDataset
    """The data in the units in which models are trained."""
    options: Mapping[str, Any]
    """Options of the goal, of the methods and of the models."""
    methods: tuple[str, ...]
    """Names of the methods to run."""
    settings: SearchSettings
    stage: str = ""
    """Stage of all progress events, such as one of several methods; empty if the search has no stages."""
    begin: Callable[[str], None] | None = None
    """Deprecated argument of 0.2.0: function called with the name of each stage."""

    @classmethod
    def prepare(
        cls,
        data: DataLike,
        methods: Sequence[str],
        options: Mapping[str, OptionValue],
        *,
        trains: bool = False,
    ) -> Search:
        """Rescale the data to the units of the models, and check that models can be trained on them.

        :param data: a dataset, or an array of observations.
        :param methods: names of the methods to run.
        :param options: fields of :class:`SearchSettings`, and options of the goal, of the methods and of the models.
        :param trains: (default False) if True, models are trained besides those of the methods.
        """
        named: dict[str, Any] = {name: options[name] for name in options if name in SETTINGS_OF_SEARCH}
        settings = SearchSettings(**named)
        begin: Any = options.get("begin")
        if begin is not None:
            warn_deprecated("begin", "progress, whose events have a stage,", "0.3", stacklevel=3)
        check_seeds(settings.seeds)
        units = {"standardise": settings.standardise, "scale": settings.scale}
        shorthands(**units, keep_units=settings.keep_units)
        dataset = apply_variants(data, settings.variants, **units, missing=settings.missing)
        apart = (*SETTINGS_OF_SEARCH, "begin")
        others = {name: value for name, value in options.items() if name not in apart}
        others |= {"keep_units": True} if settings.keep_units else {}
        recipe = recipe_of(methods, others)
        dataset = trained_units(dataset, recipe, keep_units=settings.keep_units)
        check_varies(dataset)
        if trains or any(family.traits(method)["trains"] for method in methods):
            check_units(dataset, recipe)
        # Called for their errors, before anything is trained.
        choose_device(settings.device)
        check_threads(settings.threads)
        return cls(dataset, others, tuple(methods), settings, begin=begin)

    @property
    def seeds(self) -> range:
        """The seeds, in order."""
        return range(self.settings.seed, self.settings.seed + self.settings.seeds)

    @property
    def out(self) -> Path | None:
        """Folder of the models and results; None if they are deleted afterwards."""
        return None if self.settings.out is None else user_path(self.settings.out, "out")

    def within(self, folder: str) -> Search:
        """Return the same search with a subfolder as its folder and its name as the stage.

        :param folder: name of the subfolder.
        """
        out = None if self.out is None else self.out / folder
        return dataclasses.replace(self, settings=dataclasses.replace(self.settings, out=out), stage=folder)

    def enter(self, stage: str, progress: Progress | None) -> Progress | None:
        """Return the function for the progress events of a stage.

        :param stage: name of the stage.
        :param progress: function called with all events, or None.
        """
        if self.begin is not None:
            self.begin(stage)
        return in_stage(progress, stage)

    @property
    def recipe(self) -> dict[str, Any]:
        """Options of the models."""
        return recipe_of(self.methods, self.options)

    def question(
        self, method: str, target: Target = "latents", n_latents: int | None = None, **bounds: OptionValue
    ) -> Question:
        """Return the question for one of several methods, with the options that it uses.

        :param method: name of the method.
        :param target: (default "latents") quantity to find.
        :param n_latents: (default None) number of latents, if the target is β.
        :param bounds: options of the goal that replace those of the search.
        """
        options = supported_options(method, self.options, self.methods)
        return ask(self.data, method, {**options, **bounds}, target, n_latents)

    def candidates(
        self,
        folder: Path,
        seed: int,
        recipe: Mapping[str, Any],
        progress: Progress | None = None,
        *,
        deadline: float | None = None,
        part: Part = Subset.part,
    ) -> AbstractCandidates:
        """Return the models of one seed; each is trained when a method first requires it.

        :param folder: folder of the models, with a subfolder for each seed.
        :param seed: the seed.
        :param recipe: options of the models.
        :param progress: (default None) function called with an event of each model at every logging step.
        :param deadline: (default None) time after which training stops, by ``time.monotonic``.
        :param part: (default "all") part of the split whose observations are encoded.
        """
        return TrainedCandidates(
            self.data,
            SearchFolder(folder).seed(seed).path,
            seed,
            {**recipe, "device": self.settings.device, "threads": self.settings.threads},
            progress,
            deadline=deadline,
            part=part,
        )

    def answer(self, question: Question, folder: Path, progress: Progress | None = None) -> Size:
        """Run a method with all seeds and merge its answers; models that are in the folder are reused.

        :param question: the method with its options.
        :param folder: folder of the models.
        :param progress: (default None) function called with an event of each model at every logging step.
        """
        results: list[SeedResult] = []
        spent, goal = 0, question.goal
        end = None if goal.minutes is None else time.monotonic() + 60 * goal.minutes
        for seed in self.seeds:
            # Time that an early seed leaves is shared by those that follow.
            deadline = None if end is None else _share(end, self.seeds.stop - seed)
            candidates = self.candidates(folder, seed, question.recipe, progress, deadline=deadline)
            if question.target == "beta":
                assert question.n_latents is not None
                result = largest_beta(candidates, goal, question.n_latents)
            else:
                result = family[question.method](candidates, goal, **question.own)
            results.append(with_fit(with_noise(result, candidates), candidates, question.target))
            spent += candidates.n_steps
        return merge(results, question.method, question.target, goal, spent)

    @contextmanager
    def session(self) -> Iterator[tuple[Path, Progress | None]]:
        """Open the folder of the models and the function that reports progress."""
        with (
            models_folder(self.out) as folder,
            reporting(self.settings.progress, candidate_arguments) as progress,
        ):
            yield folder, self.enter(self.stage, progress) if self.stage else progress


def recipe_of(methods: Sequence[str], options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of the models: those that belong neither to the goal nor to a method.

    :param methods: names of the methods to run.
    :param options: options of the goal, of the methods and of the models.
    """
    others = {*BOUNDS}.union(*map(own_options, methods))
    return {name: value for name, value in options.items() if name not in others}


def _share(end: float, n_seeds: int) -> float:
    """Return the deadline of the next seed if the remaining time is divided equally among ``n_seeds``."""
    now = time.monotonic()
    return now + (end - now) / n_seeds


@contextmanager
def models_folder(out: str | Path | None) -> Iterator[Path]:
    """Open the folder of the models; without ``out`` it is temporary and deleted afterwards."""
    if out is not None:
        yield user_path(out, "out")
        return
    with tempfile.TemporaryDirectory(prefix="polariscope-size-") as folder:
        yield Path(folder)
