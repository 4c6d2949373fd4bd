"""The commands and what they have in common."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from polariscope import __version__
from polariscope.cli import (
    StoppedError,
    compare,
    data,
    demo,
    diagnose,
    families,
    report,
    score,
    show,
    size,
    train,
)
from polariscope.cli.flags import FlagCommand

ORDER = (
    *("demo", "data", "size", "train", "diagnose", "score", "compare", "report", "show", "check"),
    *("list", "info", "preview"),
)


class Commands(TyperGroup):
    """Commands in the order a newcomer needs them. Ctrl-C passes through, whatever typer makes of it."""

    def list_commands(self, ctx: Any) -> list[str]:
        return sorted(self.commands, key=lambda name: ORDER.index(name) if name in ORDER else len(ORDER))

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise StoppedError from None


# Plain help: no boxes to cut when it is piped, and half the time to the first line.
STYLE: dict[str, Any] = {"rich_markup_mode": None, "add_completion": False, "no_args_is_help": True}
app = typer.Typer(cls=Commands, pretty_exceptions_enable=False, **STYLE)
data_app = typer.Typer(cls=Commands, help="Look at datasets.", **STYLE)


def show_version(wanted: bool) -> bool:
    """Print the version and leave."""
    if wanted:
        typer.echo(f"polariscope {__version__}")
        raise typer.Exit
    return wanted


@app.callback()
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


app.command("demo")(demo.demo)
app.add_typer(data_app, name="data")
app.command("size", cls=size.SizeCommand)(size.size)
app.command("train", cls=train.TrainCommand)(train.train)
app.command("diagnose")(diagnose.diagnose)
app.command("compare")(compare.compare)
app.command("score")(score.score)
app.command("report")(report.report)
app.command("show")(show.show)
app.command("check")(show.check)
app.command("list")(families.list_family)

data_app.command("list")(data.list_datasets)
data_app.command("info", cls=FlagCommand)(data.info)
data_app.command("preview", cls=FlagCommand)(data.preview)
