"""Tables of sizing: every method, start and strength over seeds, with what each search takes.

The tables of bonheme2023 chapter 8 (8.1 to 8.8 and D.5) are of this form: the number of latents as mean ± standard
deviation over seeds, the time of one search, the models it trains and their epochs.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from polariscope.core import files
from polariscope.core.errors import Argument, InputError
from polariscope.core.frames import csv_of, frame_of
from polariscope.core.options import show
from polariscope.data.chain import Given, apply_variants, shorthands
from polariscope.data.dataset import AbstractDataset
from polariscope.data.missing import Missing
from polariscope.sizing import AbstractCandidates, Found, family
from polariscope.sizing.support.candidates import TrainedCandidates
from polariscope.sizing.support.checks import (
    check_bounds_used,
    check_seeds,
    check_units,
    check_varies,
    own_options,
    supported_options,
    trained_units,
    used_by,
)
from polariscope.sizing.support.forecast import LEAST_STEPS
from polariscope.sizing.support.published import MOST_EPOCHS, first_guess, has_settled
from polariscope.sizing.support.search import CapError
from polariscope.sizing.support.size import Listen, Question, ask, candidates_place, spoken
from polariscope.storage.search import SearchFolder
from polariscope.studies.analyses import Cell, Columns
from polariscope.studies.summary import SummaryTable, summary_table
from polariscope.studies.table import Table
from polariscope.training.plan import plan
from polariscope.training.threads import check_threads
from polariscope.training.train import choose_device

if TYPE_CHECKING:
    from pandas import DataFrame

DIMENSION = "dimension"
"""The start at the intrinsic dimension of the data."""
LONG = 120.0
"""Seconds of a search from which on times are in minutes."""


@dataclasses.dataclass(frozen=True)
class Search:
    """One search with one seed: its answer, and what it takes."""

    data: str
    method: str
    setting: str
    """Option whose strength varies; "" for none."""
    strength: float | int | str | None
    start: int | str | None
    """First number of latents: a number, "dimension" for that of the data; None where a search has no start."""
    seed: int
    n_latents: int | None
    """The answer; None where there is none."""
    epochs: int | None
    """The smallest number of epochs after which the answer stays, or the one that was given; None where models are
    trained until they are decided."""
    models: int
    """Models that this search trains, each for so many epochs."""
    steps: int
    """Gradient steps of these models."""
    seconds: float | None
    """Time to train and measure them, alone; models that several searches share count for each."""
    note: str = ""
    """Why there is no answer, or why it may still change."""


@dataclasses.dataclass(frozen=True)
class SizeTable:
    """Searches over seeds, as tables for people, papers and programs."""

    searches: tuple[Search, ...]

    @property
    def unit(self) -> str:
        """Of the times: minutes where a search takes two or more."""
        longest = max((search.seconds or 0.0 for search in self.searches), default=0.0)
        return "min" if longest >= LONG else "s"

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes of each row (answers of 0, models of few steps), and of searches without an answer that stays."""
        rows: dict[str, list[Search]] = {}
        for one in self.searches:
            rows.setdefault(_row_name(one), []).append(one)
        return (
            *(f"{name}: {note}" for name, own in rows.items() for note in _row_notes(own)),
            *(f"{_row_name(one)}, seed {one.seed}: {one.note}" for one in self.searches if one.note),
        )

    def to_table(self) -> Table:
        """One row for each search; :meth:`polariscope.studies.table.Table.aggregate` has means and intervals."""
        scale = 60.0 if self.unit == "min" else 1.0
        settings = list(dict.fromkeys(one.setting for one in self.searches if one.setting))
        rows: list[Columns] = []
        for number, one in enumerate(self.searches):
            row: dict[str, Cell] = {
                "run": f"search-{number}",
                "data": one.data,
                "method": one.method,
                **{name: one.strength for name in settings if name == one.setting},
                "start": one.start,
                "seed": one.seed,
                "n": one.n_latents,
                f"time ({self.unit})": None if one.seconds is None else one.seconds / scale,
                "models": one.models,
                "epochs": one.epochs,
                "steps": one.steps,
            }
            rows.append(row)
        varying = [
            name
            for name in ("data", "method", *settings, "start")
            if name == "method" or len({row.get(name) for row in rows}) > 1
        ]
        return Table(rows, (*varying, "seed"), self.notes)

    def to_summary(self) -> SummaryTable:
        """Number of latents as mean ± standard deviation over seeds; of time, models and epochs the mean.

        The layout of bonheme2023 Tabs 8.1 to 8.8 and D.5; of several data, one beside the other, as in Tab. 8.2.
        """
        table = self.to_table()
        columns = ["n", f"time ({self.unit})", "models", "epochs"]
        columns = [name for name in columns if name in table.measured]
        across = ("data",) if "data" in table.settings else ()
        found = summary_table(table, columns, across=across, digits=1)
        cells = tuple(
            tuple(
                cell if cell is None or head[-1] == "n" else dataclasses.replace(cell, sd=None)
                for cell, head in zip(row, found.columns, strict=True)
            )
            for row in found.cells
        )
        return dataclasses.replace(found, cells=cells)

    def to_markdown(self) -> str:
        """As a table of Markdown."""
        return self.to_summary().to_markdown()

    def to_latex(self) -> str:
        """As a ``tabular`` of LaTeX."""
        return self.to_summary().to_latex()

    def to_csv(self) -> str:
        """All searches, a row for each, as comma-separated values."""
        return csv_of(self.to_frame())

    def to_frame(self) -> DataFrame:
        """Return all searches, a row for each, as a frame of pandas."""
        columns = [field.name for field in dataclasses.fields(Search)]
        return frame_of([dataclasses.asdict(one) for one in self.searches], columns)

    def to_dict(self) -> dict[str, Any]:
        """Return all searches as plain values."""
        return {"searches": [dataclasses.asdict(one) for one in self.searches]}

    def write(self, folder: str | Path) -> list[Path]:
        """Write the table as Markdown, LaTeX and comma-separated values.

        :param folder: where to.
        """
        place = SearchFolder(folder)
        texts = {"md": self.to_markdown(), "tex": self.to_latex(), "csv": self.to_csv()}
        for ending, text in texts.items():
            files.write_text(place.table(ending), text)
        return [place.table(ending) for ending in texts]

    def __str__(self) -> str:
        return self.to_markdown()


def _row_name(one: Search) -> str:
    return ", ".join(filter(None, (one.data, one.method, _words(one))))


def _row_notes(searches: Sequence[Search]) -> list[str]:
    """Return what to know about the mean over the seeds of one row."""
    found = []
    zeros = [one.seed for one in searches if one.n_latents == 0]
    if zeros:
        seeds = f"seed{'s' if len(zeros) > 1 else ''} {', '.join(map(str, zeros))}"
        found.append(
            f"the answer is 0 latents for {seeds}: no number of latents meets the criterion. The mean includes "
            f"{'these zeros' if len(zeros) > 1 else 'this zero'}."
        )
    # Methods without epochs decide themselves how long a model is trained.
    lengths = [one.steps // one.models for one in searches if one.epochs is not None and one.models]
    if lengths and min(lengths) < LEAST_STEPS:
        low, high = min(lengths), max(lengths)
        steps = f"{low:,}" if low == high else f"{low:,} to {high:,}"
        found.append(
            f"models were trained for {steps} steps, fewer than the {LEAST_STEPS:,} from which a model can have "
            "converged: the answer depends on the length of training."
        )
    return found


def _words(one: Search) -> str:
    parts = [f"{one.setting} = {show(one.strength)}"] if one.setting else []
    return ", ".join([*parts, *([f"start {one.start}"] if one.start is not None else [])])


def published_methods() -> tuple[str, ...]:
    """The searches that train all models for whole epochs: FONDUE as published, and its kin."""
    return tuple(name for name in family if "epochs" in family.traits(name)["uses"])


def size_table(
    data: object,
    methods: Sequence[str] | None = None,
    *,
    starts: Sequence[int | str] = (DIMENSION,),
    strengths: Mapping[str, Sequence[object]] | None = None,
    seed: int = 0,
    seeds: int = 10,
    out: str | Path | None = None,
    device: object = "auto",
    threads: int | None = None,
    progress: bool | Listen = False,
    begin: Callable[[str], None] | None = None,
    variants: Given = (),
    standardise: bool = False,
    scale: bool = False,
    keep_units: bool = False,
    missing: Missing = "refuse",
    **options: object,
) -> SizeTable:
    """Size with several methods, starts and strengths over seeds, and say what each search takes.

    The published searches train models of 1, 2, … epochs until the answer stays; the smallest such number is reported,
    with the models and the time of the search that it belongs to (bonheme2023 §8.4). ``epochs`` fixes it. Other
    methods are run as :func:`polariscope.size` does. Searches share the models of the same data, recipe, strength and
    seed, so nothing is trained twice; times are what each search would take alone, on this machine as busy as it was.

    :param data: a dataset, an array of observations, or several of these by name.
    :param methods: (default: all published searches) names of ``polariscope.sizing``.
    :param starts: (default: the dimension of the data) first numbers of latents: "dimension" or numbers, for the
        methods that have a start.
    :param strengths: (default none) one option of the models and its values, ``{"beta": (0.5, 2, 4)}``.
    :param seed: (default 0) the first seed.
    :param seeds: (default 10) how many.
    :param out: (default None: nothing is written) folder for the models and the tables.
    :param device: (default "auto") as in :func:`polariscope.train`.
    :param threads: (default: by the work in a step and the cores) as in :func:`polariscope.train`.
    :param progress: (default False) a function called with (seed, n_latents, step, Σ E[σ²]), or True for a line on the
        terminal.
    :param begin: (default None) called with the data, the strength and the epochs that come next, in words.
    :param variants: (default none) variants of the data, as in :func:`polariscope.train`.
    :param standardise: (default False) bring every feature of a table to mean 0 and standard deviation 1 first.
    :param scale: (default False) bring every feature of a table to [0, 1] first.
    :param keep_units: (default False) leave a table in the units it has, as in :func:`polariscope.train`.
    :param missing: (default "refuse") what is done about missing values of an array, as in :func:`polariscope.train`.
    :param options: bounds and options of the methods as in :func:`size`, and of the models as in
        :func:`polariscope.train`.
    """
    shorthands(standardise=standardise, scale=scale, keep_units=keep_units)
    check_seeds(seeds)
    setting, values = _strength(strengths)
    chosen = tuple(published_methods() if methods is None else methods)
    if not chosen or len(set(chosen)) < len(chosen):
        raise InputError("methods", "be one or more names, each once", got=f"{methods!r}")
    kept = {"keep_units": True} if keep_units else {}
    several = data if isinstance(data, Mapping) else {"": data}
    jobs = []
    for name, given in several.items():
        dataset = apply_variants(given, variants, standardise=standardise, scale=scale, missing=missing)
        for value in values:
            recipe = {**options, **kept, **({} if not setting else {setting: value})}
            jobs.append(_plan(dataset, str(name), setting, value, chosen, starts, recipe))
    choose_device(device)
    check_threads(threads)
    where = {"device": device, "threads": threads}
    searches: list[Search] = []
    with candidates_place(out) as folder, spoken(progress) as listen:
        for job in jobs:
            for number in range(seed, seed + seeds):
                told = None if listen is None else functools.partial(listen, number)
                searches += _searches(job, folder, number, where, told, begin)
    order = {id(one): place for place, one in enumerate(searches)}
    searches.sort(key=lambda one: (chosen.index(one.method), order[id(one)]))
    table = SizeTable(tuple(searches))
    if out is not None:
        table.write(out)
    return table


@dataclasses.dataclass(frozen=True)
class _Job:
    """The searches of one dataset and one strength, checked."""

    data: AbstractDataset
    name: str
    setting: str
    strength: Any
    questions: tuple[tuple[Question, int | str | None], ...]
    """What is asked, and the start in words."""
    steps_per_epoch: int

    @property
    def folder(self) -> str:
        """Where its models are, in the folder of the table."""
        parts = [self.name, f"{self.setting}-{show(self.strength)}" if self.setting else ""]
        return "/".join(filter(None, parts))


def _strength(strengths: Mapping[str, Sequence[object]] | None) -> tuple[str, Sequence[object]]:
    if not strengths:
        return "", (None,)
    if len(strengths) > 1:
        raise InputError(
            "strengths", "have one option", got=", ".join(strengths), remedy="make a table for each"
        )
    ((setting, values),) = strengths.items()
    if isinstance(values, str) or not values or len({show(cast("Cell", v)) for v in values}) < len(values):
        raise InputError("strengths", "have one or more values of an option, each once", got=f"{values!r}")
    return setting, values


def _plan(
    dataset: AbstractDataset,
    name: str,
    setting: str,
    strength: Any,
    methods: Sequence[str],
    starts: Sequence[int | str],
    options: Mapping[str, Any],
) -> _Job:
    """Refuse what cannot be trained or asked, before anything is trained."""
    if "n_init" in options:
        raise InputError(
            problem=(Argument("n_init"), " is one start"), remedy=("give ", Argument("starts"), " instead")
        )
    check_bounds_used(options, methods)
    theirs = {key for method in methods for key in (*used_by(method), *own_options(method))}
    recipe = {key: value for key, value in options.items() if key not in theirs}
    dataset = trained_units(dataset, recipe, keep_units=recipe.get("keep_units", False))
    check_varies(dataset)
    check_units(dataset, recipe)
    _check_starts(starts)
    questions: list[tuple[Question, int | str | None]] = []
    for method in methods:
        its = supported_options(method, options, methods)
        for start in starts if "n_init" in used_by(method) else (None,):
            first = {} if start is None or start == DIMENSION else {"n_init": start}
            questions.append((ask(dataset, method, {**its, **first}), start))
    models: dict[str, Any] = dict(questions[0][0].recipe)
    per_epoch = plan(dataset, n_latents=1, **{**models, "epochs": 1}).settings.steps
    return _Job(dataset, name, setting, strength, tuple(questions), per_epoch)


def _check_starts(starts: object) -> None:
    is_list = isinstance(starts, Sequence) and not isinstance(starts, str)
    given = list(cast("Sequence[object]", starts)) if is_list else []
    wrong = [
        start
        for start in given
        if start != DIMENSION and (isinstance(start, bool) or not isinstance(start, Integral) or start < 1)
    ]
    if not given or wrong or len(set(given)) < len(given):
        raise InputError(
            "starts",
            f"be {DIMENSION!r} or integers from 1, each once, at least one of them",
            got=f"{starts!r}",
        )


def _searches(
    job: _Job,
    folder: Path,
    seed: int,
    where: Mapping[str, Any],
    listen: Callable[[int, int, float], None] | None,
    begin: Callable[[str], None] | None,
) -> list[Search]:
    """All searches with one seed. Those with epochs go on together, so each model is measured before it goes on."""

    def candidates_of(question: Question) -> AbstractCandidates:
        by_epochs = "epochs" in used_by(question.method)
        place = folder / job.folder / ("epochs" if by_epochs else "steps")
        recipe = {**question.recipe, **where}
        if by_epochs:  # so a search that is asked later finds models as they were
            recipe |= {"keep_checkpoints": "all", "checkpoint_every": max(1000, job.steps_per_epoch)}
        return TrainedCandidates(job.data, SearchFolder(place).seed(seed).path, seed, recipe, listen)

    goal = job.questions[0][0].goal
    is_fixed = goal.epochs is not None or goal.steps is not None
    found: dict[int, Search] = {}
    before: dict[int, Search] = {}
    answers: dict[int, list[int]] = {place: [] for place in range(len(job.questions))}
    first = functools.cache(lambda: _dimension(candidates_of(job.questions[0][0]), job.questions[0][0]))
    for epochs in range(1, MOST_EPOCHS + 1):
        pending = [place for place in answers if place not in found]
        if not pending:
            break
        if begin is not None:
            length = "" if is_fixed else f"{epochs} epoch{'s' if epochs > 1 else ''}"
            if words := ", ".join(filter(None, (job.folder, length))):
                begin(words)
        for place in pending:
            question, start = job.questions[place]
            candidates = candidates_of(question)
            goal, own = question.goal, dict(question.own)
            if start == DIMENSION:
                goal = dataclasses.replace(goal, n_init=min(first(), goal.cap))
            is_open = "epochs" in used_by(question.method) and goal.epochs is None and goal.steps is None
            if is_open:
                goal = dataclasses.replace(goal, epochs=epochs)
            try:
                answer = family[question.method](candidates, goal, **own)
            except CapError as error:
                found[place] = _search(job, question, start, candidates, None, goal.epochs, str(error))
                continue
            one = _search(job, question, start, candidates, answer, goal.epochs)
            if not is_open:
                found[place] = one
                continue
            answers[place].append(-1 if answer.value is None else int(answer.value))
            if has_settled(answers[place]):
                found[place] = before[place]
            elif epochs == MOST_EPOCHS:
                note = f"The answer has not settled after {MOST_EPOCHS} epochs: {answers[place]}."
                found[place] = dataclasses.replace(one, note=note)
            before[place] = one
    return [found[place] for place in sorted(found)]


def _dimension(candidates: AbstractCandidates, question: Question) -> int:
    """The intrinsic dimension of the data, once for all searches of a seed."""
    return first_guess(candidates, dataclasses.replace(question.goal, n_init=None, cap=10**9))[0]


def _search(
    job: _Job,
    question: Question,
    start: int | str | None,
    candidates: AbstractCandidates,
    answer: Found | None,
    epochs: int | None,
    note: str = "",
) -> Search:
    value = None if answer is None or answer.value is None else int(answer.value)
    if answer is not None and value is None:
        note = " ".join(answer.notes)
    return Search(
        data=job.name,
        method=question.method,
        setting=job.setting,
        strength=job.strength,
        start=start,
        seed=candidates.seed,
        n_latents=value,
        epochs=epochs,
        models=candidates.n_models,
        steps=candidates.n_steps,
        seconds=candidates.n_seconds,
        note=note,
    )
