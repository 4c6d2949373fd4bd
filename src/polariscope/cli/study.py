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
    str, typer.Argument(metavar="FILE.toml", help="A study file, or a name from 'polariscope study list'.")
]


@command()
def list_studies() -> None:
    """List the studies that come with polariscope."""
    from polariscope.cli.console import printer, say
    from polariscope.studies.design import StudyDesign
    from polariscope.studies.shipped import shipped

    shown = TextTable("study", "runs", "description", numbers=("runs",), prose=("description",))
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
    """Number of workers that the hours are divided by."""


@command(options=PlanOptions)
def plan(file: File, options: PlanOptions) -> None:
    """Check a study, list its runs and estimate their cost.

    Also prints the settings that are chosen automatically. Training hours are estimated from earlier runs, or from 20
    steps for each combination of data, net and objective. The time of analyses is included if earlier runs have
    measured it.
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
    cost = estimate(ledger, progress=lambda name: say(f"Timing {name} …", errors=True))
    kinds = TextTable(
        "same kind as", "runs", "steps left", "per step", "from", numbers=("runs", "steps left", "per step")
    )
    for kind in cost.kinds:
        per_step = f"{1000 * kind.seconds_per_step:.3g} ms"
        kinds.add_row(kind.name, str(kind.runs), f"{kind.steps:,}", per_step, kind.source)
    printer().print(kinds)
    todo = "train" if any(run.given is None for run in ledger.runs) else "analyse"
    say(f"{plural(cost.n_runs, 'run')}, {cost.n_left} left to {todo}, {plural(cost.steps, 'step')} left.")
    if cost.n_beyond:
        say(
            f"{plural(cost.n_beyond, 'run')} beyond the limit of {ledger.study.limits.max_runs} will not be trained."
        )
    measured = "and analyses" if cost.analyses is not None else "without analyses"
    hours, workers = cost.hours(options.workers), plural(options.workers, "worker")
    say(f"{duration(3600 * hours)} of training {measured}, with {workers}; {file_size(cost.n_bytes)}.")
    limit = ledger.study.limits.max_hours
    if limit is not None and hours > limit:
        say(
            f"This exceeds max_hours = {limit:g}: the study will stop after {limit:g} hours and can be resumed."
        )


def _by_choice(runs: Sequence[StudyRun]) -> list[tuple[tuple[str, ...], list[str]]]:
    """Group the names of runs by the settings that were chosen for them automatically."""
    names: dict[tuple[str, ...], list[str]] = {}
    for run in runs:
        names.setdefault(run.chosen, []).append(run.name)
    return [(chosen, runs) for chosen, runs in names.items() if chosen]


class RunCommand(RecordCommand):
    """A command with flags whose value is optional: ``--ray`` means ``--ray local``, ``--slurm`` ``--slurm slurm``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, with_values(args))


def with_values(tokens: list[str]) -> list[str]:
    """Insert the default value after flags whose value is optional.

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

    workers: (
        Annotated[int, Ge(1), Flag(default="1; with Ray, as many as the cluster has room for")] | None
    ) = None
    """Number of processes that train at the same time, or of jobs."""
    on: Annotated[str, Flag("NAME", default="local")] | None = None
    """Kind of workers; 'polariscope list workers' shows all of them and their options."""
    settings: Annotated[tuple[str, ...], Flag("NAME.OPTION=VALUE", "--set", repeated=True)] = ()
    """An option of the workers, such as ray.address=auto; can be repeated."""
    ray: Annotated[str, Flag("[ADDRESS]")] | None = None
    """Short for '--on ray --set ray.address=ADDRESS'. Without an address, a cluster is started on this machine."""
    slurm: Annotated[str, Flag("[local]")] | None = None
    """Short for '--on slurm': submit SLURM jobs. With 'local', the jobs are processes of this machine."""
    slurm_option: Annotated[tuple[str, ...], Flag("NAME=VALUE", repeated=True)] = ()
    """An option of sbatch, such as partition=long or time=08:00:00; can be repeated."""
    allow_import: bool = False
    """Allow the study to import models by the name of a function, which runs its code."""
    wait: bool = False
    """With --slurm, wait until all jobs have ended."""


@command(RunCommand, options=RunOptions)
def run(file: File, options: RunOptions) -> None:
    """Train and analyse the missing runs of a study.

    The command can be interrupted at any time; run it again to resume. Several machines that share the study's folder
    can run it at the same time. Failed runs are not repeated; see 'polariscope study retry'.
    """
    from polariscope.cli.console import quoted, say, say_next
    from polariscope.studies.workers import make_missing

    on, settings = _workers(options)
    ledger = open_study(file)
    ledger.allow_import = options.allow_import
    try:
        outcome = make_missing(ledger, on, settings, options.workers, progress=True)
    except InputError as error:
        # Messages name the options of the workers; here they get the flags that the user typed.
        flags = {"sbatch": "slurm_option", "address": "ray", "cluster": "slurm"}
        names = {option: Argument(flag) for option, flag in flags.items() if getattr(options, flag)}
        raise error.renamed(names) from None
    counts = outcome.counts
    if (jobs := outcome.jobs) is not None:
        say(f"{plural(len(jobs.ids), 'job')}: {', '.join(jobs.ids)}. Scripts and logs are in {jobs.folder}")
        say_next((f"polariscope study status {quoted(Path(file))}", "show the progress"))
        return
    name = quoted(Path(file))
    if counts["waiting"]:
        say(f"{plural(counts['waiting'], 'run')} still waiting; run the same command again to resume.")
    failed = [entry for entry in ledger.entries() if entry.state == "failed"]
    expected = [entry for entry in failed if entry.kind == "diverged" and ledger.study.diverged == "discard"]
    if expected:
        say(f"{plural(len(expected), 'run')} diverged and will not be in the table.")
    if n_failed := len(failed) - len(expected):
        raise PolariscopeError(
            f"{n_failed} of {len(ledger.runs)} runs failed; 'polariscope study status {name}' shows the reasons."
        )
    say_next(
        (f"polariscope study table {name}", "compare all runs"),
        (f"polariscope study report {name}", "the same as an HTML page"),
    )


def _workers(options: RunOptions) -> tuple[str, dict[str, Any]]:
    """Return the kind of workers and its options; short flags set some of them."""
    from polariscope.studies.workers import family

    flags = [name for name in ("ray", "slurm") if getattr(options, name) is not None]
    kinds = [*flags, *([options.on] if options.on is not None else [])]
    if len(set(kinds)) > 1:
        named = [*map(Argument, flags), Argument("on", str(options.on))][:2]
        raise InputError(
            problem=(named[0], " and ", named[1], " cannot be combined"), remedy="use one of them"
        )
    on = kinds[0] if kinds else "local"
    if on != "slurm" and (options.slurm_option or options.wait):
        extra = Argument("slurm_option" if options.slurm_option else "wait")
        raise InputError(problem=(extra, " requires ", Argument("slurm")), remedy="use both or neither")
    settings = read_settings(family, options.settings)
    for other in sorted(set(settings) - {on}):
        option = Argument("set", f"{other}.{min(settings[other])}")
        raise InputError(problem=(option, f" does not apply to {on!r} workers"), remedy="leave it out")
    short = {
        "address": ("ray", options.ray),
        "cluster": ("slurm", options.slurm),
        "sbatch": ("slurm_option", options.slurm_option or None),
        "wait": ("wait", options.wait or None),
    }
    by_flag = {option: value for option, (_, value) in short.items() if value is not None}
    for name in sorted(set(by_flag) & set(settings.get(on, {}))):
        first, second = Argument(short[name][0]), Argument("set", f"{on}.{name}")
        raise InputError(problem=(first, " and ", second, " cannot be combined"), remedy="use one of them")
    return on, {**by_flag, **settings.get(on, {})}


@command()
def status(file: File) -> None:
    """Show the state of each run, and the reasons of failed runs and of trained runs that are not done.

    A run is waiting, running, done or failed.
    """
    from polariscope.cli.console import printer, say

    ledger = open_study(file)
    shown = TextTable("run", "state", "steps", "of", "reason", numbers=("steps", "of"), prose=("reason",))
    for entry in ledger.entries():
        shown.add_row(entry.run.name, entry.state, f"{entry.step:,}", f"{entry.run.steps:,}", entry.message)
    printer().print(shown)
    say(", ".join(f"{count} {state}" for state, count in ledger.counts().items()) + ".")


@checked
@dataclasses.dataclass(frozen=True)
class PageOptions:
    """Options of ``polariscope study report``."""

    out: Annotated[Path, Flag("FILE", default="in the study's folder")] | None = None
    """File to write."""


@command(options=PageOptions)
def report(file: File, options: PageOptions) -> None:
    """Write an HTML report on a study: design, table, plots, failures."""
    from polariscope.cli.report import say_report
    from polariscope.pages.study import write_study_page

    say_report(write_study_page(open_study(file), options.out))


@checked
@dataclasses.dataclass(frozen=True)
class RetryOptions:
    """Options of ``polariscope study retry``."""

    kind: Annotated[tuple[str, ...], Flag("KIND", repeated=True)] = ()
    """Only runs with this kind of failure: diverged, timeout or error; can be repeated."""


@command(options=RetryOptions)
def retry(file: File, options: RetryOptions) -> None:
    """Mark failed runs to be repeated by the next 'study run'."""
    from polariscope.cli.console import quoted, say, say_next
    from polariscope.core.errors import check_word

    for word in options.kind:
        check_word("kind of failure", word, ("diverged", "timeout", "error"))
    marked = open_study(file).retry(options.kind)
    for each in marked:
        say(each.name)
    say(f"{plural(len(marked), 'run')} will be repeated.")
    if marked:
        say_next((f"polariscope study run {quoted(Path(file))}", "repeat them"))


@checked
@dataclasses.dataclass(frozen=True)
class CleanOptions:
    """Options of ``polariscope study clean``."""

    yes: bool = False
    """Delete the folders; without this flag they are only listed."""


@command(options=CleanOptions)
def clean(file: File, options: CleanOptions) -> None:
    """Delete run folders that are not part of the study's design.

    They are left over from earlier versions of the study file.
    """
    from polariscope.cli.console import say

    folders = list(open_study(file).others())
    for folder in folders:
        say(str(folder))
        if options.yes:
            shutil.rmtree(folder)
    count = plural(len(folders), "folder")
    if not folders:
        say("Nothing to delete: all run folders are part of the study's design.")
    elif options.yes:
        say(f"{count} deleted.")
    else:
        say(f"{count} not part of the study's design; --yes deletes {'it' if len(folders) == 1 else 'them'}.")


def open_study(file: str) -> Ledger:
    """Return the ledger of a study file; the settings of all runs are checked."""
    from polariscope.studies.design import StudyDesign
    from polariscope.studies.ledger import Ledger

    return Ledger(StudyDesign.load(file))
