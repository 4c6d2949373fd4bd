"""Tables of sizing: every method, start and strength over seeds, with the cost of each search.

The tables of bonheme2023 chapter 8 (8.1 to 8.8 and D.5) have this form: the number of latents as mean ± standard
deviation over seeds, the time of one search, the models it trains and their epochs.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from polariscope.core.errors import Argument, InputError
from polariscope.core.frames import csv_of, frame_of
from polariscope.core.option_values import show
from polariscope.core.options import spelled_out
from polariscope.core.progress import Progress
from polariscope.core.records import AbstractRecord
from polariscope.core.text import numbered, plural, span
from polariscope.core.types import OptionValue
from polariscope.data.data_like import DataLike
from polariscope.sizing.bisection import CapError
from polariscope.sizing.candidates import AbstractCandidates
from polariscope.sizing.checks import check_bounds_used, used_by
from polariscope.sizing.fondue_settings import SETTINGS
from polariscope.sizing.goal import Goal
from polariscope.sizing.methods import family
from polariscope.sizing.published import MAX_EPOCHS, first_guess, has_settled
from polariscope.sizing.result import SeedResult
from polariscope.sizing.search import Question, Search, SearchSettings
from polariscope.storage.search_folder import SearchFolder
from polariscope.studies.analyses import Cell, Columns
from polariscope.studies.paper_table import SummaryTable, summary_table
from polariscope.studies.table import Table
from polariscope.training.plan import plan

if TYPE_CHECKING:
    from pandas import DataFrame

DIMENSION = "dimension"
"""Start at the intrinsic dimension of the data."""
LONG = 120.0
"""Seconds of a search above which times are shown in minutes."""


@dataclasses.dataclass(frozen=True)
class SearchResult:
    """One search with one seed: its answer and its cost."""

    data: str
    method: str
    setting: str
    """Option whose strength varies; "" for none."""
    strength: float | int | str | None
    start: int | str | None
    """First number of latents: a number, or "dimension" for the intrinsic dimension; None if the search has no
    start."""
    seed: int
    n_latents: int | None
    """The answer; None if there is none."""
    epochs: int | None
    """Smallest number of epochs after which the answer no longer changes, or the requested number; None if models are
    trained until they are decided."""
    models: int
    """Number of models that this search trains, each for this number of epochs."""
    steps: int
    """Gradient steps of these models."""
    seconds: float | None
    """Time to train and measure the models of this search alone; models shared by several searches count for each."""
    note: str = ""
    """Reason for a missing answer, or for one that might still change."""


@dataclasses.dataclass(frozen=True)
class SizeTable(AbstractRecord):
    """Searches over seeds, with export to text, papers and programs."""

    searches: tuple[SearchResult, ...]

    @property
    def unit(self) -> str:
        """Unit of the times: minutes if a search takes two or more."""
        longest = max((search.seconds or 0.0 for search in self.searches), default=0.0)
        return "min" if longest >= LONG else "s"

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on rows (answers of 0, models of few steps) and on searches with a missing or unstable answer."""
        rows: dict[str, list[SearchResult]] = {}
        for search in self.searches:
            rows.setdefault(_row_name(search), []).append(search)
        return (
            *(f"{name}: {note}" for name, searches in rows.items() for note in _row_notes(searches)),
            *(
                f"{_row_name(search)}, seed {search.seed}: {search.note}"
                for search in self.searches
                if search.note
            ),
        )

    def to_table(self) -> Table:
        """Return a table with one row for each search; its method ``aggregate`` computes means and intervals."""
        scale = 60.0 if self.unit == "min" else 1.0
        settings = list(dict.fromkeys(search.setting for search in self.searches if search.setting))
        rows: list[Columns] = []
        for number, search in enumerate(self.searches):
            row: dict[str, Cell] = {
                "run": f"search-{number}",
                "data": search.data,
                "method": search.method,
                **{name: search.strength for name in settings if name == search.setting},
                "start": search.start,
                "seed": search.seed,
                "n": search.n_latents,
                f"time ({self.unit})": None if search.seconds is None else search.seconds / scale,
                "models": search.models,
                "epochs": search.epochs,
                "steps": search.steps,
            }
            rows.append(row)
        varying = [
            name
            for name in ("data", "method", *settings, "start")
            if name == "method" or len({row.get(name) for row in rows}) > 1
        ]
        return Table(rows, (*varying, "seed"), self.notes)

    def to_summary(self) -> SummaryTable:
        """Return mean ± standard deviation of the number of latents over seeds, and means of time, models and epochs.

        The layout is that of bonheme2023 Tabs 8.1 to 8.8 and D.5; several datasets are shown side by side, as in Tab.
        8.2.
        """
        table = self.to_table()
        columns = ["n", f"time ({self.unit})", "models", "epochs"]
        columns = [name for name in columns if name in table.measured]
        across = ("data",) if "data" in table.settings else ()
        summary = summary_table(table, columns, across=across, digits=1)
        cells = tuple(
            tuple(
                # Only the number of latents is shown with its spread; the others are costs.
                cell if cell is None or head[-1] == "n" else dataclasses.replace(cell, sd=None)
                for cell, head in zip(row, summary.columns, strict=True)
            )
            for row in summary.cells
        )
        return dataclasses.replace(summary, cells=cells)

    def to_markdown(self) -> str:
        """Return the summary as a Markdown table."""
        return self.to_summary().to_markdown()

    def to_latex(self) -> str:
        """Return the summary as a LaTeX ``tabular``."""
        return self.to_summary().to_latex()

    def to_csv(self) -> str:
        """Return all searches, one row each, as comma-separated values."""
        return csv_of(self.to_frame())

    def to_frame(self) -> DataFrame:
        """Return all searches, one row each, as a pandas frame."""
        columns = [field.name for field in dataclasses.fields(SearchResult)]
        return frame_of([dataclasses.asdict(search) for search in self.searches], columns)

    def write(self, folder: str | Path) -> list[Path]:
        """Write the table as Markdown, LaTeX and comma-separated values.

        :param folder: folder of the files.
        """
        texts = {"md": self.to_markdown(), "tex": self.to_latex(), "csv": self.to_csv()}
        return SearchFolder(folder).write_tables(texts)

    def __str__(self) -> str:
        return self.to_markdown()


def _row_name(search: SearchResult) -> str:
    return ", ".join(filter(None, (search.data, search.method, _description(search))))


def _row_notes(searches: Sequence[SearchResult]) -> list[str]:
    """Return notes on the mean over the seeds of one row."""
    notes = []
    zeros = [search.seed for search in searches if search.n_latents == 0]
    if zeros:
        seeds = numbered("seed", zeros)
        notes.append(
            f"the answer is 0 latents for {seeds}: no number of latents meets the criterion. The mean includes "
            f"{'these zeros' if len(zeros) > 1 else 'this zero'}."
        )
    # Methods without epochs choose the length of training themselves.
    lengths = [
        search.steps // search.models for search in searches if search.epochs is not None and search.models
    ]
    if lengths and min(lengths) < SETTINGS.min_steps:
        steps = span(min(lengths), max(lengths), ",", " to ")
        notes.append(
            f"models were trained for {steps} steps, fewer than the {SETTINGS.min_steps:,} from which a model can have "
            "converged: the answer depends on the length of training."
        )
    return notes


def _description(search: SearchResult) -> str:
    parts = [f"{search.setting} = {show(search.strength)}"] if search.setting else []
    return ", ".join([*parts, *([f"start {search.start}"] if search.start is not None else [])])


def published_methods() -> tuple[str, ...]:
    """Return the searches that train all models for whole epochs: FONDUE as published, and related methods."""
    return tuple(name for name in family if "epochs" in family.traits(name)["uses"])


@spelled_out(SearchSettings, Goal, open_ended=True)
def size_table(
    data: DataLike | Mapping[str, DataLike],
    methods: Sequence[str] | None = None,
    *,
    starts: Sequence[int | str] = (DIMENSION,),
    strengths: Mapping[str, Sequence[OptionValue]] | None = None,
    seeds: int = 10,
    announce: Callable[[tuple[str, ...]], None] | None = None,
    **options: OptionValue,
) -> SizeTable:
    """Size data with several methods, starts and strengths over seeds, and record the cost of each search.

    The published searches train models for 1, 2, … epochs until the answer no longer changes. The smallest such number
    is reported, with the models and the time of that search (bonheme2023 §8.4). ``epochs`` fixes it. Other methods run
    as in :func:`polariscope.size`. Searches share models with the same data, recipe, strength and seed, so nothing is
    trained twice. Times are those of each search alone, measured on this machine under its load at the time.

    :param data: a dataset, an array of observations, or a mapping from names to several of these.
    :param methods: (default: all published searches) members of ``polariscope.sizing``.
    :param starts: (default: the dimension of the data) first numbers of latents, "dimension" or integers, for methods
        that have a start.
    :param strengths: (default none) one option of the models and its values, ``{"beta": (0.5, 2, 4)}``.
    :param seeds: (default 10) number of seeds.
    :param announce: (default None) called before training with the automatic choices for the models (net, likelihood,
        units, learning rate, batch size).
    :param options: options of the methods as in :func:`polariscope.size`, and of the models as in
        :func:`polariscope.train`.
    """
    setting, values = _strength(strengths)
    methods = tuple(published_methods() if methods is None else methods)
    if not methods or len(set(methods)) < len(methods):
        raise InputError("methods", "be one or more names, each once", got=f"{methods!r}")
    if "n_init" in options:
        raise InputError(
            problem=(Argument("n_init"), " is a single start"),
            remedy=("use ", Argument("starts"), " instead"),
        )
    check_bounds_used(options, methods)
    _check_starts(starts)
    several = data if isinstance(data, Mapping) else {"": data}
    jobs = [
        _plan(
            Search.prepare(
                each,
                methods,
                {**options, "seeds": seeds, **({setting: value} if setting else {})},
                trains=True,
            ),
            str(name),
            setting,
            value,
            starts,
        )
        for name, each in several.items()
        for value in values
    ]
    if announce is not None:
        announce(_all_choices(jobs))
    results: list[SearchResult] = []
    # All jobs share one folder and one display.
    with jobs[0].search.session() as (folder, progress):
        for job in jobs:
            for seed in job.search.seeds:
                results += _searches(job, folder, seed, progress)
    # Sorting is stable, so the searches of one method keep their order.
    results.sort(key=lambda each: methods.index(each.method))
    table = SizeTable(tuple(results))
    if jobs[0].search.out is not None:
        table.write(jobs[0].search.out)
    return table


@dataclasses.dataclass(frozen=True)
class _Job:
    """The searches for one dataset and one strength, after checking."""

    search: Search
    name: str
    setting: str
    strength: Any
    questions: tuple[tuple[Question, int | str | None], ...]
    """Questions to answer, each with its start: a number, "dimension" or None."""
    steps_per_epoch: int
    chosen: tuple[str, ...]
    """Short descriptions of the automatic choices for the models."""

    @property
    def folder(self) -> str:
        """Name of the folder of its models, inside the folder of the table."""
        parts = [self.name, f"{self.setting}-{show(self.strength)}" if self.setting else ""]
        return "/".join(filter(None, parts))


def _strength(strengths: Mapping[str, Sequence[OptionValue]] | None) -> tuple[str, Sequence[OptionValue]]:
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


def _plan(search: Search, name: str, setting: str, strength: Any, starts: Sequence[int | str]) -> _Job:
    """Return the searches for one dataset and one strength, after checking them."""
    questions: list[tuple[Question, int | str | None]] = []
    for method in search.methods:
        for start in starts if "n_init" in used_by(method) else (None,):
            first: dict[str, Any] = {} if start is None or start == DIMENSION else {"n_init": start}
            questions.append((search.question(method, **first), start))
    models: dict[str, Any] = dict(questions[0][0].recipe)
    per_epoch = plan(search.data, n_latents=1, **{**models, "epochs": 1}).settings.steps
    chosen = _choices([question for question, _ in questions])
    return _Job(search, name, setting, strength, tuple(questions), per_epoch, chosen)


def _choices(questions: Sequence[Question]) -> tuple[str, ...]:
    """Return the automatic choices for the models of one dataset, with the names of methods if they differ."""
    by_method = {each.method: each.chosen for each in questions if family.traits(each.method)["trains"]}
    choices = []
    for choice in dict.fromkeys(each for part in by_method.values() for each in part):
        methods = [method for method, part in by_method.items() if choice in part]
        choices.append(choice if len(methods) == len(by_method) else f"{choice} ({', '.join(methods)})")
    return tuple(choices)


def _all_choices(jobs: Sequence[_Job]) -> tuple[str, ...]:
    """Return the choices of all datasets, with the names of the datasets if they differ."""
    if len({job.chosen for job in jobs}) == 1:
        return jobs[0].chosen
    choices = [f"{each} ({job.name})" if job.name else each for job in jobs for each in job.chosen]
    return tuple(dict.fromkeys(choices))


def _check_starts(starts: object) -> None:
    is_list = isinstance(starts, Sequence) and not isinstance(starts, str)
    values = list(cast("Sequence[object]", starts)) if is_list else []
    wrong = [
        start
        for start in values
        if start != DIMENSION and (isinstance(start, bool) or not isinstance(start, Integral) or start < 1)
    ]
    if not values or wrong or len(set(values)) < len(values):
        raise InputError(
            "starts",
            f"be {DIMENSION!r} or integers from 1, each once, at least one of them",
            got=f"{starts!r}",
        )


def _searches(
    job: _Job,
    folder: Path,
    seed: int,
    progress: Progress | None,
) -> list[SearchResult]:
    """Return all searches with one seed.

    Searches by epochs take turns, so each model is measured before it is trained further.
    """

    def candidates_of(question: Question, progress: Progress | None) -> AbstractCandidates:
        by_epochs = "epochs" in used_by(question.method)
        models = folder / job.folder / ("epochs" if by_epochs else "steps")
        recipe = dict(question.recipe)
        if by_epochs:  # all checkpoints, so a later search can use the models at earlier epochs
            recipe |= {"keep_checkpoints": "all", "checkpoint_every": max(1000, job.steps_per_epoch)}
        return job.search.candidates(models, seed, recipe, progress)

    goal = job.questions[0][0].goal
    is_fixed = goal.epochs is not None or goal.steps is not None
    results: dict[int, SearchResult] = {}
    before: dict[int, SearchResult] = {}
    answers: dict[int, list[int]] = {index: [] for index in range(len(job.questions))}
    main = job.questions[0][0]
    # Computed only if a search starts at the dimension, and then once.
    first = functools.cache(lambda: _dimension(candidates_of(main, progress), main))
    for epochs in range(1, MAX_EPOCHS + 1):
        pending = [index for index in answers if index not in results]
        if not pending:
            break
        length = "" if is_fixed else plural(epochs, "epoch")
        stage = ", ".join(filter(None, (job.folder, length)))
        events = job.search.enter(stage, progress) if stage else progress
        for index in pending:
            question, start = job.questions[index]
            candidates = candidates_of(question, events)
            goal, options = question.goal, dict(question.own)
            if start == DIMENSION:
                goal = dataclasses.replace(goal, n_init=min(first(), goal.cap))
            is_open = "epochs" in used_by(question.method) and goal.epochs is None and goal.steps is None
            if is_open:
                goal = dataclasses.replace(goal, epochs=epochs)
            try:
                answer = family[question.method](candidates, goal, **options)
            except CapError as error:
                results[index] = _search(job, question, start, candidates, None, goal.epochs, str(error))
                continue
            result = _search(job, question, start, candidates, answer, goal.epochs)
            if not is_open:
                results[index] = result
                continue
            # No answer counts as different from every number of latents.
            answers[index].append(-1 if answer.value is None else int(answer.value))
            if has_settled(answers[index]):
                # The answers of this and the shorter training agree, so the shorter one is reported.
                results[index] = before[index]
            elif epochs == MAX_EPOCHS:
                # Equal answers that have not settled are 0; the note on the row explains them.
                is_zero = answers[index][-1] == answers[index][-2]
                note = f"The answer has not settled after {MAX_EPOCHS} epochs: {answers[index]}."
                results[index] = result if is_zero else dataclasses.replace(result, note=note)
            before[index] = result
    return [results[index] for index in sorted(results)]


def _dimension(candidates: AbstractCandidates, question: Question) -> int:
    """Return the intrinsic dimension of the data, computed once for all searches of a seed."""
    # Without a cap, because each search applies its own.
    return first_guess(candidates, dataclasses.replace(question.goal, n_init=None, cap=10**9))[0]


def _search(
    job: _Job,
    question: Question,
    start: int | str | None,
    candidates: AbstractCandidates,
    answer: SeedResult | None,
    epochs: int | None,
    note: str = "",
) -> SearchResult:
    value = None if answer is None or answer.value is None else int(answer.value)
    if answer is not None and value is None:
        note = " ".join(answer.notes)
    return SearchResult(
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
