"""The commands, and helpers that several of them share."""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from polariscope import __version__
from polariscope.cli.command import Flag, add_command
from polariscope.cli.interrupts import StoppedError
from polariscope.core.errors import Argument, Call, InputError
from polariscope.core.options import checked

if TYPE_CHECKING:
    from polariscope.cli.flags import Flags, Group
    from polariscope.data.dataset import AbstractDataset
    from polariscope.models.protocol import AbstractModel
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
"""Module and function of each command, in the order in which a newcomer needs them."""
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
        "Plan, run and analyse many runs defined in one file.",
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
"""Help text of each group of commands, and the module and function of each of its commands."""


class Commands(TyperGroup):
    """Commands in the order in which a newcomer needs them; Ctrl-C is passed on instead of handled by typer."""

    def list_commands(self, ctx: object) -> list[str]:
        order = list(COMMANDS)  # typer would list groups of commands last
        return sorted(self.commands, key=lambda name: order.index(name) if name in order else len(order))

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise StoppedError from None


class InOrder(Commands):
    """Commands in the order in which they were added."""

    def list_commands(self, ctx: object) -> list[str]:
        return list(self.commands)


# Plain help: boxes would be cut when the output is piped, and importing rich doubles the time to the first line.
STYLE: dict[str, Any] = {"rich_markup_mode": None, "add_completion": False, "no_args_is_help": True}


def make_app(tokens: Sequence[str]) -> typer.Typer:
    """Return the app with all commands, or only with the called one, because importing the others is slow."""
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
    """Return a group of commands; only the called one is imported with its options."""
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
    """Return the spelling of arguments for messages: the flags of the called command."""
    from polariscope.cli.flags import Flags

    command = _command(tokens)

    return Flags(
        _own_flags(command) | {"--help", "--help-all"},
        more=lambda: _flags_of_groups(command),
        advised=lambda: flags_of(["train"]),
        parts=lambda: _flags_of_parts(command),
    )


def flags_of(tokens: Sequence[str]) -> set[str]:
    """Return the flags of the called command, including those of model parts and datasets.

    :param tokens: words of the command line.
    """
    command = _command(tokens)
    return _own_flags(command) | {"--help", "--help-all"} | _flags_of_groups(command)


def _groups(command: Any) -> list[Group]:
    """Return the options of every part that a command accepts; this reads all of them."""
    return command.groups() if hasattr(command, "groups") else []


def _flags_of_groups(command: Any) -> set[str]:
    return {flag for group in _groups(command) for flag in group.flags}


def _flags_of_parts(command: Any) -> dict[str, str]:
    """Return the flag of each option by part and name; it includes the part if the command has the same flag."""
    own_flags = _own_flags(command)
    return {
        f"{group.part}_{name}": longer if flag in own_flags else flag
        for group in _groups(command)
        for (flag, name), longer in zip(group.flags.items(), group.flags_with_part, strict=True)
    }


def related_with(name: str, flag: str) -> list[str]:
    """Return the commands that have a flag and whose names begin with the same word as another command's.

    :param name: name of the other command, for example size.
    :param flag: the flag, for example --latents.
    """
    related = [
        command for command in COMMANDS if command != name and command.split("-")[0] == name.split("-")[0]
    ]
    return [command for command in related if flag in _own_flags(_command([command]))]


def _own_flags(command: Any) -> set[str]:
    return {flag for parameter in command.params for flag in parameter.opts if flag.startswith("--")}


def _command(tokens: Sequence[str]) -> Any:
    """Return the called command."""
    command: Any = typer.main.get_command(make_app(tokens))
    for word in tokens:
        command = getattr(command, "commands", {}).get(word, command)
    return command


def show_version(requested: bool) -> bool:
    """Print the version and exit."""
    if requested:
        typer.echo(f"polariscope {__version__}")
        raise typer.Exit
    return requested


def polariscope(
    version: Annotated[
        bool,
        typer.Option("--version", callback=show_version, is_eager=True, help="Show the version."),
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the full traceback of an error.")] = False,
) -> None:
    """Train, size and inspect variational autoencoders.

    Start with: polariscope demo
    """
    # Both are handled earlier: --version by its callback, and --debug by main(), which accepts it anywhere.
    del version, debug


Targets = Annotated[
    list[Path],
    typer.Argument(
        metavar="RUN|MODEL|FILE…",
        help="Run folders, models (.onnx files, folders of diffusers or of a saved VAE), or .npz and .h5ad files of "
        "codes.",
    ),
]


@checked
@dataclasses.dataclass(frozen=True)
class ModelInput:
    """Data and outputs of a model of another library."""

    data: Annotated[str, Flag("DATA", default="that of the run")] | None = None
    """Data to encode, a file or the name of a dataset; required for a model that is not a run."""
    outputs: Annotated[tuple[str, ...], Flag("NAMES", default="inferred")] = ()
    """Meaning of each array that an encoder returns, separated by commas: z,mean,log_variance."""


FOR_RUNS = {"n_samples": "is used whole", "part": "has no split", "step": "has no checkpoints"}
"""Options that do not apply to a file of codes, and the reason."""


FOR_MODELS = ("part", "step")
"""Options that do not apply to a model that is not a run."""


@dataclasses.dataclass(frozen=True)
class ModelTarget:
    """A model of another library at a path, and the data to encode."""

    path: Path
    model: AbstractModel
    data: AbstractDataset


def open_target(
    target: Path, flags: Collection[str], foreign: ModelInput | None = None
) -> Run | ModelTarget | None:
    """Open a run or a model, or return None for a file of codes; options that do not apply are refused.

    :param target: run folder, model or file.
    :param flags: names of the options that were set on the command line.
    :param foreign: (default None) data and outputs of a model of another library; None if the command takes none.
    """
    if foreign is not None and _is_model(target):
        return _open_model(target, flags, foreign)
    data = None if foreign is None or foreign.data is None else foreign.data
    if foreign is not None and foreign.outputs:
        raise InputError(
            problem=(Argument("outputs"), " is for models of other libraries"), remedy="leave it out"
        )
    if target.is_dir():
        from polariscope.runs.run import Run

        return Run(target) if data is None else Run(target, _load_data(data))
    if data is not None and target.exists():
        raise InputError(
            problem=(Argument("data"), f" requires a model, and {target} is a file of codes"),
            remedy="leave it out",
        )
    if not target.exists():
        if target.suffix:
            raise InputError(
                problem=f"there is no file {target}",
                remedy="pass a run folder, a model or an existing .npz file of codes",
            )
        raise InputError(
            problem=f"there is no run and no file at {target}",
            remedy=("train a model with ", Call("train", "data", out=str(target))),
        )
    for name, reason in FOR_RUNS.items():
        if name in flags:
            about = f"{target} is a file, which {reason}"
            raise InputError(problem=(Argument(name), " requires a run"), remedy=f"{about}. Leave it out")
    return None


def _is_model(target: Path) -> bool:
    """Return True for the path of a model of another library; torch is not imported for runs and files of codes."""
    from polariscope.storage import is_run

    if not target.exists() or is_run(target):
        return False
    from polariscope.data.codes import ENDINGS

    if target.suffix in ENDINGS:
        return False
    from polariscope.models.open_model import is_openable

    return is_openable(target)


def _open_model(target: Path, flags: Collection[str], foreign: ModelInput) -> ModelTarget:
    for name in FOR_MODELS:
        if name in flags:
            raise InputError(
                problem=(Argument(name), " requires a run"),
                remedy=f"{target} is a model, which {FOR_RUNS[name]}. Leave it out",
            )
    from polariscope.models.open_model import open_model

    outputs = foreign.outputs or None
    if foreign.data is None:
        # A file that cannot be opened is refused first.
        open_model(target, outputs=outputs)
        raise InputError(
            "data",
            f"be given for {target}, which is not a run",
            remedy="pass a file or the name of a dataset",
        )
    model, dataset = open_model(target, _load_data(foreign.data), outputs=outputs)
    assert dataset is not None
    return ModelTarget(target, model, dataset)


def _load_data(source: str) -> AbstractDataset:
    from polariscope.data.sources import load_dataset

    return load_dataset(source)


def say_saved(run: Run) -> None:
    """Print the folder that the results were saved in, if it could be written to."""
    from polariscope.cli.console import say

    if run.is_saved:
        say(f"Saved in {run.path}")


def say_target(target: Path, targets: Sequence[Path]) -> None:
    """Print the name of the run or file whose results follow, if there are several."""
    from polariscope.cli.console import say

    if len(targets) > 1:
        say(f"\n{target}")


def suggest_next(targets: Sequence[Path], opened: Sequence[Run | ModelTarget | None]) -> None:
    """Print the command that shows the results of the runs."""
    from polariscope.cli.console import quoted, say_next

    runs = [None if isinstance(each, ModelTarget) else each for each in opened]
    folders = [target for target, run in zip(targets, runs, strict=True) if run is not None]
    if len(folders) > 1:
        say_next((f"polariscope table {' '.join(map(quoted, folders))}", "compare the runs"))
    elif folders:
        (run,) = (run for run in runs if run is not None)
        say_next((report_command(run), "all results on one page"))


def report_command(run: Run) -> str:
    """Return the command that writes the report of a run; of the last checkpoint if the run is unfinished.

    :param run: the run.
    """
    from polariscope.cli.console import quoted

    step = "" if run.is_finished or not run.steps else f" --step {run.steps[-1]}"
    return f"polariscope report {quoted(run.path)}{step}"
