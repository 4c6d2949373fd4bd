"""The commands and what they have in common."""

from __future__ import annotations

import importlib
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from polariscope import __version__
from polariscope.cli.command import add_command
from polariscope.cli.interrupts import StoppedError
from polariscope.core.errors import Argument, Call, InputError

if TYPE_CHECKING:
    from polariscope.cli.flags import Flags, Group
    from polariscope.runs.run import Run


COMMANDS = {
    "demo": "demo.demo",
    "data": "data",
    "size": "size.size",
    "size-compare": "size_compare.size_compare",
    "size-curve": "size_curve.size_curve",
    "size-table": "size_table.size_table",
    "size-beta": "size_beta.size_beta",
    "train": "train.train",
    "diagnose": "diagnose.diagnose",
    "encode": "encode.encode",
    "score": "score.score",
    "compare": "compare.compare",
    "course": "course.course",
    "report": "report.report",
    "manipulate": "manipulate.manipulate",
    "stability": "stability.stability",
    "table": "table.table",
    "study": "study",
    "show": "show.show",
    "check": "show.check",
    "list": "families.list_family",
    "cite": "cite.cite",
}
"""Where each command is, in the order a newcomer needs them."""
GROUPS: dict[str, tuple[str, dict[str, str]]] = {
    "data": (
        "List, inspect, download and clean up datasets.",
        {
            "list": "data.list_datasets",
            "info": "data.info",
            "preview": "data.preview",
            "fetch": "data_files.fetch",
            "clean": "data_files.clean",
        },
    ),
    "study": (
        "Make, resume and inspect many runs from one file.",
        {
            "list": "study.list_studies",
            "plan": "study.plan",
            "run": "study.run",
            "status": "study.status",
            "table": "study_tables.table",
            "seeds": "study_tables.seeds",
            "compare": "study_tables.compare",
            "extremes": "study_tables.extremes",
            "paper": "study_tables.paper",
            "sql": "study_tables.sql",
            "figure": "study_figures.figure",
            "select": "study_figures.select",
            "report": "study.report",
            "retry": "study.retry",
            "clean": "study.clean",
        },
    ),
}
"""Groups of commands: what they are for, and where each command is."""


class Commands(TyperGroup):
    """Commands in the order a newcomer needs them. Ctrl-C passes through, whatever typer makes of it."""

    def list_commands(self, ctx: object) -> list[str]:
        order = list(COMMANDS)  # typer puts groups of commands last
        return sorted(self.commands, key=lambda name: order.index(name) if name in order else len(order))

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise StoppedError from None


class InOrder(Commands):
    """Commands in the order in which they were given."""

    def list_commands(self, ctx: object) -> list[str]:
        return list(self.commands)


# Plain help: no boxes to cut when it is piped, and half the time to the first line.
STYLE: dict[str, Any] = {"rich_markup_mode": None, "add_completion": False, "no_args_is_help": True}


def make_app(tokens: Sequence[str]) -> typer.Typer:
    """The command line for these words: all commands, or only the one that is called, so others stay closed."""
    called = next((word for word in tokens if not word.startswith("-")), None)
    app = typer.Typer(cls=Commands, pretty_exceptions_enable=False, **STYLE)
    app.callback()(polariscope)
    is_called = called in COMMANDS
    for name in [called] if is_called else COMMANDS:
        assert name is not None
        if name in GROUPS:
            inner = next(iter(tokens[tokens.index(name) + 1 :] if is_called else ()), "")
            app.add_typer(_make_group(name, inner), name=name)
        else:
            add_command(app, name, _open(COMMANDS[name]), closed=not is_called)
    return app


def _make_group(name: str, called: str) -> typer.Typer:
    """A group of commands, of which only the one that is called is open."""
    help_text, members = GROUPS[name]
    group = typer.Typer(cls=InOrder, help=help_text, **STYLE)
    for member, address in members.items():
        if called not in members or member == called:
            add_command(group, member, _open(address), closed=member != called)
    return group


def _open(address: str) -> Any:
    module, _, function = address.rpartition(".")
    return getattr(importlib.import_module(f"polariscope.cli.{module}"), function)


def spelling_of(tokens: Sequence[str]) -> Flags:
    """How arguments are written by who typed these words: the flags of the command that was called."""
    from polariscope.cli.flags import Flags

    command = _command(tokens)

    return Flags(
        _own_flags(command) | {"--help", "--help-all"},
        more=lambda: _flags_of_groups(command),
        advised=lambda: flags_of(["train"]),
        parts=lambda: _flags_of_parts(command),
    )


def flags_of(tokens: Sequence[str]) -> set[str]:
    """Return the flags of the command that is called, those of concepts included.

    :param tokens: the line.
    """
    command = _command(tokens)
    return _own_flags(command) | {"--help", "--help-all"} | _flags_of_groups(command)


def _groups(command: Any) -> list[Group]:
    """The options of every concept that a command could have; all of them are opened."""
    return command.groups() if hasattr(command, "groups") else []


def _flags_of_groups(command: Any) -> set[str]:
    return {flag for group in _groups(command) for flag in group.flags}


def _flags_of_parts(command: Any) -> dict[str, str]:
    """The flag of each option with its part in front; the part is in it where the command has another such flag."""
    own = _own_flags(command)
    return {
        f"{group.part}_{name}": longer if flag in own else flag
        for group in _groups(command)
        for (flag, name), longer in zip(group.flags.items(), group.flags_with_part, strict=True)
    }


def related_with(name: str, flag: str) -> list[str]:
    """Return the commands that are related to another and have a flag: those that begin with the same word.

    :param name: the command: size.
    :param flag: the flag: --latents.
    """
    related = [other for other in COMMANDS if other != name and other.split("-")[0] == name.split("-")[0]]
    return [other for other in related if flag in _own_flags(_command([other]))]


def _own_flags(command: Any) -> set[str]:
    return {flag for parameter in command.params for flag in parameter.opts if flag.startswith("--")}


def _command(tokens: Sequence[str]) -> Any:
    """The command that is called."""
    command: Any = typer.main.get_command(make_app(tokens))
    for word in tokens:
        command = getattr(command, "commands", {}).get(word, command)
    return command


def show_version(wanted: bool) -> bool:
    """Print the version and leave."""
    if wanted:
        typer.echo(f"polariscope {__version__}")
        raise typer.Exit
    return wanted


def polariscope(
    version: Annotated[
        bool,
        typer.Option("--version", callback=show_version, is_eager=True, help="Show the version."),
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the full traceback of an error.")] = False,
) -> None:
    """Train, size and look into variational autoencoders.

    Start with: polariscope demo
    """
    # Both are dealt with before: the version by its callback, --debug by main(), anywhere on the line.
    del version, debug


Targets = Annotated[list[Path], typer.Argument(metavar="RUN|FILE.npz…", help="Runs, or codes.")]

FOR_RUNS = {"n_samples": "every row is used", "part": "has no split", "step": "has no checkpoints"}
"""Options that mean nothing to a file of codes, and why."""


def open_target(target: Path, flags: Collection[str]) -> Run | None:
    """The run in a folder; None for a file, of which options that mean nothing to it are refused.

    :param target: the folder or the file.
    :param flags: names of the options that were given on the line.
    """
    if target.is_dir():
        from polariscope.runs.run import Run

        return Run(target)
    if not target.exists():
        if target.suffix:
            raise InputError(
                problem=f"there is no file {target}",
                remedy="give the folder of a run, or an .npz file of codes that is there",
            )
        raise InputError(
            problem=f"there is no run and no file at {target}",
            remedy=("train a model with ", Call("train", "data", out=str(target))),
        )
    for name, reason in FOR_RUNS.items():
        if name in flags:
            about = (
                f"of a file like {target} {reason}"
                if name == "n_samples"
                else f"a file like {target} {reason}"
            )
            raise InputError(problem=(Argument(name), " is for runs"), remedy=f"{about}. Leave it out")
    return None


def say_kept(run: Run) -> None:
    """Where the results are, if they could be written."""
    from polariscope.cli.console import say

    if run.is_kept:
        say(f"Kept in {run.path}")


def say_target(target: Path, targets: Sequence[Path]) -> None:
    """Which of several runs or files follows."""
    from polariscope.cli.console import say

    if len(targets) > 1:
        say(f"\n{target}")


def say_what_next(targets: Sequence[Path], runs: Sequence[Run | None]) -> None:
    """What to type after runs were measured."""
    from polariscope.cli.console import quoted, say_next

    opened = [target for target, run in zip(targets, runs, strict=True) if run is not None]
    if len(opened) > 1:
        say_next((f"polariscope table {' '.join(map(quoted, opened))}", "them side by side"))
    elif opened:
        (run,) = (run for run in runs if run is not None)
        say_next((report_command(run), "all of it on one page"))


def report_command(run: Run) -> str:
    """Return the command that makes the page of a run; of an unfinished one that of its last checkpoint.

    :param run: the run.
    """
    from polariscope.cli.console import quoted

    step = "" if run.is_finished or not run.steps else f" --step {run.steps[-1]}"
    return f"polariscope report {quoted(run.path)}{step}"
