"""``polariscope study``: many runs from one file."""

from __future__ import annotations

import dataclasses
import itertools
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from annotated_types import Ge

from polariscope.cli.command import Flag, RecordCommand, command
from polariscope.cli.flags import read_settings
from polariscope.core.errors import Argument, InputError, PolariscopeError
from polariscope.core.options import checked
from polariscope.core.tables import TextTable
from polariscope.core.text import duration, file_size, listed, plural

if TYPE_CHECKING:
    from polariscope.studies.ledger import Ledger
    from polariscope.studies.planned_runs import StudyRun

File = Annotated[
    str, typer.Argument(metavar="FILE.toml", help="A study, or the name of one of 'polariscope study list'.")
]


@command()
def list_studies() -> None:
    """List the studies that come with polariscope."""
    from polariscope.cli.console import printer, say
    from polariscope.studies.design import StudyDesign
    from polariscope.studies.shipped import shipped

    shown = TextTable("study", "runs", "what", numbers=("runs",), prose=("what",))
    for name, file in shipped().items():
        study = StudyDesign.load(file)
        first = file.read_text(encoding="utf-8").splitlines()[0].removeprefix("# ")
        shown.add_row(name, str(len(study.points())), first)
    if len(shown):
        printer().print(shown)
    say(f"{plural(len(shown), 'study')} in all.")


@checked
@dataclasses.dataclass(frozen=True)
class PlanOptions:
    """Options of ``polariscope study plan``."""

    workers: Annotated[int, Ge(1)] = 1
    """Workers to divide the hours by."""


@command(options=PlanOptions)
def plan(file: File, options: PlanOptions) -> None:
    """Check a study, and print what is chosen for its runs and what it will cost.

    Hours are those of training, from the times of earlier runs, or from 20 steps of each distinct data, net and
    objective. Of the analyses they hold what earlier runs took.
    """
    from polariscope.cli.console import printer, say
    from polariscope.studies.estimate import estimate

    ledger = open_study(file)
    runs = TextTable("run", "folder", "steps", numbers=("steps",))
    for run in ledger.runs:
        runs.add_row(run.name, run.folder.name, f"{run.steps:,}")
    printer().print(runs)
    for chosen, names in _by_choice(ledger.runs):
        which = "all runs" if len(names) == len(ledger.runs) else listed(names, 1)
        say(f"Chosen for {which}: {'; '.join(chosen)}.")
    cost = estimate(ledger, progress=lambda name: say(f"A trial of {name} …", errors=True))
    kinds = TextTable(
        "same kind as", "runs", "steps left", "per step", "from", numbers=("runs", "steps left", "per step")
    )
    for kind in cost.kinds:
        per_step = f"{1000 * kind.seconds_per_step:.3g} ms"
        kinds.add_row(kind.name, str(kind.runs), f"{kind.steps:,}", per_step, kind.source)
    printer().print(kinds)
    say(f"{plural(cost.n_runs, 'run')}, {cost.n_left} to make, {plural(cost.steps, 'step')} left.")
    if cost.n_beyond:
        say(
            f"{plural(cost.n_beyond, 'run')} beyond the budget of {ledger.study.limits.max_runs} will not be made."
        )
    measured = "and of the analyses" if cost.analyses is not None else "without the analyses"
    hours, workers = cost.hours(options.workers), plural(options.workers, "worker")
    say(f"{duration(3600 * hours)} of training {measured}, with {workers}; {file_size(cost.n_bytes)}.")
    limit = ledger.study.limits.max_hours
    if limit is not None and hours > limit:
        say(
            f"That is more than the {limit:g} hours of max_hours; the study will stop there, and can be resumed."
        )


def _by_choice(runs: Sequence[StudyRun]) -> list[tuple[tuple[str, ...], list[str]]]:
    """Return what was chosen for the runs of a study, with the names of the runs that it was chosen for."""
    names: dict[tuple[str, ...], list[str]] = {}
    for run in runs:
        names.setdefault(run.chosen, []).append(run.name)
    return [(chosen, runs) for chosen, runs in names.items() if chosen]


class RunCommand(RecordCommand):
    """A command with flags whose value may be left out: ``--ray`` means ``--ray local``, ``--slurm`` SLURM itself."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, with_values(args))


def with_values(tokens: list[str]) -> list[str]:
    """Give flags whose value was left out the value that is meant.

    >>> with_values(["mine.toml", "--ray", "--workers", "2"])
    ['mine.toml', '--ray', 'local', '--workers', '2']
    >>> with_values(["--ray", "mine.toml"]), with_values(["--ray", "10.0.0.1:6379"])
    (['--ray', 'local', 'mine.toml'], ['--ray', '10.0.0.1:6379'])
    """
    expanded = []
    for word, following in itertools.zip_longest(tokens, tokens[1:], fillvalue=""):
        expanded.append(word)
        if word == "--ray" and not (following in ("auto", "local") or ":" in following):
            expanded.append("local")
        elif word == "--slurm" and following not in ("slurm", "local"):
            expanded.append("slurm")
    return expanded


@checked
@dataclasses.dataclass(frozen=True)
class RunOptions:
    """Options of ``polariscope study run``."""

    workers: Annotated[int, Ge(1), Flag(default="1; as many as a Ray cluster has room for")] | None = None
    """Number of processes that train at the same time, or of jobs."""
    on: Annotated[str, Flag("NAME")] = "local"
    """Kind of workers; 'polariscope list workers' shows all of them and their options."""
    settings: Annotated[tuple[str, ...], Flag("NAME.OPTION=VALUE", "--set", repeated=True)] = ()
    """An option of the workers, such as ray.address=auto; can be repeated."""
    ray: Annotated[str, Flag("[ADDRESS]")] | None = None
    """Short for '--on ray --set ray.address=ADDRESS'. Without an address, a cluster is started on this machine."""
    slurm: Annotated[str, Flag("[local]")] | None = None
    """Short for '--on slurm': submit SLURM jobs. With 'local', the jobs are processes of this machine."""
    slurm_option: Annotated[tuple[str, ...], Flag("NAME=VALUE", repeated=True)] = ()
    """An option of sbatch, such as partition=long or time=08:00:00; can be repeated."""
    wait: bool = False
    """With --slurm: wait until the jobs have ended."""


@command(RunCommand, options=RunOptions)
def run(file: File, options: RunOptions) -> None:
    """Make what is missing of a study.

    Kill it at any moment: the same command goes on. Several machines that share the study's folder may run it at the
    same time. Runs that failed are not tried again; see 'polariscope study retry'.
    """
    from polariscope.cli.console import quoted, say, say_next
    from polariscope.studies.workers import make_missing

    on, settings = _workers(options)
    ledger = open_study(file)
    try:
        outcome = make_missing(ledger, on, settings, options.workers, progress=True)
    except InputError as error:
        flags = {"sbatch": "slurm_option", "address": "ray"}
        names = {option: Argument(flag) for option, flag in flags.items() if getattr(options, flag)}
        raise error.renamed(names) from None
    counts = outcome.counts
    if (jobs := outcome.jobs) is not None:
        say(f"{plural(len(jobs.ids), 'job')}: {', '.join(jobs.ids)}. Scripts and logs are in {jobs.folder}")
        say_next((f"polariscope study status {quoted(Path(file))}", "show the progress"))
        return
    name = quoted(Path(file))
    if counts["waiting"]:
        say(f"{plural(counts['waiting'], 'run')} still waiting; the same command goes on.")
    failed = [failure for run in ledger.runs if (failure := ledger.failure(run))]
    expected = [each for each in failed if each["kind"] == "diverged" and ledger.study.diverged == "discard"]
    if expected:
        say(f"{plural(len(expected), 'run')} diverged, and will not be in the table.")
    if n_failed := len(failed) - len(expected):
        raise PolariscopeError(
            f"{n_failed} of {len(ledger.runs)} runs failed; 'polariscope study status {name}' says why."
        )
    say_next(
        (f"polariscope study table {name}", "all runs side by side"),
        (f"polariscope study report {name}", "the same as a page"),
    )


def _workers(options: RunOptions) -> tuple[str, dict[str, Any]]:
    """Return the kind of workers and its options; short flags stand for some of them."""
    from polariscope.studies.workers import family

    if options.slurm is None and (options.slurm_option or options.wait):
        extra = Argument("slurm_option" if options.slurm_option else "wait")
        raise InputError(
            problem=(extra, " was given without ", Argument("slurm")), remedy="give both, or none"
        )
    kinds = [name for name in ("ray", "slurm") if getattr(options, name) is not None]
    kinds += [options.on] if options.on != RunOptions().on else []
    if len(set(kinds)) > 1:
        first, second = (
            Argument(name) if getattr(options, name, None) else Argument("on") for name in kinds[:2]
        )
        raise InputError(problem=(first, " and ", second, " were both given"), remedy="choose one")
    on = kinds[0] if kinds else options.on
    settings = read_settings(family, options.settings)
    for other in sorted(set(settings) - {on}):
        option = Argument("set", f"{other}.{min(settings[other])}")
        raise InputError(problem=(option, f" was given, but the workers are {on!r}"), remedy="leave it out")
    short: dict[str, Any] = {}
    if options.ray is not None:
        short = {"address": options.ray}
    elif options.slurm is not None:
        short = {"cluster": options.slurm, "sbatch": options.slurm_option, "wait": options.wait}
    return on, {**short, **settings.get(on, {})}


@command()
def status(file: File) -> None:
    """Say which runs are waiting, running, done and failed, and why."""
    from polariscope.cli.console import printer, say

    ledger = open_study(file)
    shown = TextTable("run", "state", "steps", "of", "why", numbers=("steps", "of"), prose=("why",))
    for entry in ledger.entries():
        shown.add_row(entry.run.name, entry.state, f"{entry.step:,}", f"{entry.run.steps:,}", entry.message)
    printer().print(shown)
    say(", ".join(f"{count} {state}" for state, count in ledger.counts().items()) + ".")


@checked
@dataclasses.dataclass(frozen=True)
class PageOptions:
    """Options of ``polariscope study report``."""

    out: Annotated[Path, Flag("FILE", default="in the study's folder")] | None = None
    """Where to write it."""


@command(options=PageOptions)
def report(file: File, options: PageOptions) -> None:
    """Write a study on one HTML page: design, table, plots, what failed."""
    from polariscope.cli.report import tell_report
    from polariscope.pages.study import write_study_page

    tell_report(write_study_page(open_study(file), options.out))


@checked
@dataclasses.dataclass(frozen=True)
class RetryOptions:
    """Options of ``polariscope study retry``."""

    kind: Annotated[tuple[str, ...], Flag("KIND", repeated=True)] = ()
    """Only runs that failed in this way: diverged, timeout or error; can be repeated."""


@command(options=RetryOptions)
def retry(file: File, options: RetryOptions) -> None:
    """Let failed runs be tried again by the next 'polariscope study run'."""
    from polariscope.cli.console import quoted, say, say_next
    from polariscope.core.errors import check_word

    for word in options.kind:
        check_word("kind of failure", word, ("diverged", "timeout", "error"))
    tried = open_study(file).retry(options.kind)
    for each in tried:
        say(each.name)
    say(f"{plural(len(tried), 'run')} will be tried again.")
    if tried:
        say_next((f"polariscope study run {quoted(Path(file))}", "make them"))


@checked
@dataclasses.dataclass(frozen=True)
class CleanOptions:
    """Options of ``polariscope study clean``."""

    yes: bool = False
    """Delete them; without it they are only listed."""


@command(options=CleanOptions)
def clean(file: File, options: CleanOptions) -> None:
    """Delete run folders in the study's own place that no run of the design has: those of an earlier design."""
    from polariscope.cli.console import say

    folders = list(open_study(file).others())
    for folder in folders:
        say(str(folder))
        if options.yes:
            shutil.rmtree(folder)
    count = plural(len(folders), "folder")
    say(
        f"{count} deleted." if options.yes else f"{count} of an earlier design; --yes deletes what is listed."
    )


def open_study(file: str) -> Ledger:
    """The ledger of a study file, all of its runs checked."""
    from polariscope.studies.design import StudyDesign
    from polariscope.studies.ledger import Ledger

    return Ledger(StudyDesign.load(file))
