"""The commands and what they have in common."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from polariscope import __version__
from polariscope.cli import StoppedError
from polariscope.core.errors import Argument, Call, InputError

if TYPE_CHECKING:
    from polariscope.cli.flags import Flags
    from polariscope.runs.run import Run


COMMANDS = {
    "demo": "demo.demo",
    "data": "data",
    "size": "size.size",
    "train": "train.train",
    "diagnose": "diagnose.diagnose",
    "score": "score.score",
    "compare": "compare.compare",
    "course": "course.course",
    "report": "report.report",
    "manipulate": "manipulate.manipulate",
    "table": "table.table",
    "study": "study",
    "show": "show.show",
    "check": "show.check",
    "list": "families.list_family",
    "cite": "cite.cite",
}
"""Where each command is, in the order a newcomer needs them."""
CLASSES = {"size": "SizeCommand", "train": "TrainCommand"}
"""Commands that take the options of what they train as flags."""


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


def make_app(words: Sequence[str]) -> typer.Typer:
    """The command line for these words: all commands, or only the one that is called, so others stay closed."""
    called = next((word for word in words if not word.startswith("-")), None)
    app = typer.Typer(cls=Commands, pretty_exceptions_enable=False, **STYLE)
    app.callback()(polariscope)
    for name in [called] if called in COMMANDS else COMMANDS:
        assert name is not None
        module, _, function = COMMANDS[name].partition(".")
        opened = importlib.import_module(f"polariscope.cli.{module}")
        if not function:
            app.add_typer(GROUPS[name](opened), name=name)
        elif name in CLASSES:
            app.command(name, cls=getattr(opened, CLASSES[name]))(getattr(opened, function))
        else:
            app.command(name)(getattr(opened, function))
    return app


def spelling_of(words: Sequence[str]) -> Flags:
    """How arguments are written by who typed these words: the flags of the command that was called."""
    from polariscope.cli.flags import Flags

    return Flags(_flags(words), advised=_flags(["train"]), parts=_flags_of_parts(words))


def _flags(words: Sequence[str]) -> set[str]:
    """The flags of the command that is called, those of concepts included."""
    command = _command(words)
    own = _own_flags(command)
    groups = command.groups() if hasattr(command, "groups") else ()
    return own | {"--help", "--help-all"} | {flag for group in groups for flag in group.flags}


def _flags_of_parts(words: Sequence[str]) -> dict[str, str]:
    """The flag of each option with its part in front; the part is in it where the command has another such flag."""
    command = _command(words)
    own = _own_flags(command)
    return {
        f"{group.part}_{name}": longer if flag in own else flag
        for group in (command.groups() if hasattr(command, "groups") else ())
        for (flag, name), longer in zip(group.flags.items(), group.flags_with_part, strict=True)
    }


def _own_flags(command: Any) -> set[str]:
    return {flag for parameter in command.params for flag in parameter.opts if flag.startswith("--")}


def _command(words: Sequence[str]) -> Any:
    """The command that is called."""
    command: Any = typer.main.get_command(make_app(words))
    for word in words:
        command = getattr(command, "commands", {}).get(word, command)
    return command


def _data_group(data: Any) -> typer.Typer:
    """The commands about datasets."""
    group = typer.Typer(
        cls=Commands, help="Look at datasets, fetch their files, free what is kept of them.", **STYLE
    )
    group.command("list")(data.list_datasets)
    group.command("info", cls=data.FlagCommand)(data.info)
    group.command("preview", cls=data.FlagCommand)(data.preview)
    cache = importlib.import_module("polariscope.cli.cache")
    group.command("fetch", cls=data.FlagCommand)(cache.fetch)
    group.command("clean")(cache.clean)
    return group


def _study_group(study: Any) -> typer.Typer:
    """The commands about studies."""
    group = typer.Typer(cls=InOrder, help="Make, resume and look at many runs from one file.", **STYLE)
    group.command("list")(study.list_studies)
    for name in ("plan", "run", "status", "table"):
        group.command(name, cls=study.RunCommand if name == "run" else None)(getattr(study, name))
    figures = importlib.import_module("polariscope.cli.study_figures")
    group.command("figure", cls=figures.FigureCommand)(figures.figure)
    group.command("select")(figures.select)
    for name in ("report", "retry", "clean"):
        group.command(name)(getattr(study, name))
    return group


GROUPS = {"data": _data_group, "study": _study_group}
"""Makes the group of commands of a module."""


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


SAMPLES = 10_000
"""Observations of a run that are encoded unless a number is given."""
Step = Annotated[
    int | None,
    typer.Option(help="The checkpoint of this step, for a run. [the finished model]", min=1),
]

Part = Annotated[
    str,
    typer.Option(help="Of a run: all observations, or a part of its split: train, validation or test."),
]


def open_target(target: Path, samples: int | None, step: int | None, part: str = "all") -> Run | None:
    """The run in a folder; None for a file, of which options that mean nothing to it are refused."""
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
    if samples is not None:
        raise InputError(
            problem=(Argument("samples"), " is for runs"),
            remedy=f"of a file like {target} every row is used. Leave it out",
        )
    if part != "all":
        raise InputError(
            problem=(Argument("part"), " is for runs"),
            remedy=f"a file like {target} has no split. Leave it out",
        )
    if step is not None:
        raise InputError(
            problem=(Argument("step"), " is for runs"),
            remedy=f"a file like {target} has no checkpoints. Leave it out",
        )
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

    found = [target for target, run in zip(targets, runs, strict=True) if run is not None]
    if len(found) > 1:
        say_next((f"polariscope table {' '.join(map(quoted, found))}", "them side by side"))
    elif found:
        say_next((f"polariscope report {quoted(found[0])}", "all of it on one page"))
