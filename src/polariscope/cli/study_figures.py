"""``polariscope study figure`` and ``polariscope study select``: what a study's table shows."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from polariscope.cli.command import Flag, FlagsOf, command
from polariscope.cli.flags import KEY, FlagCommand, Group, assign_flags, group_of, groups_of
from polariscope.cli.study import File, open_study
from polariscope.cli.table import RowOptions
from polariscope.core.errors import InputError
from polariscope.core.options import checked
from polariscope.core.tables import TextTable
from polariscope.core.text import listed

if TYPE_CHECKING:
    from polariscope.studies.select import Selections


class FigureCommand(FlagCommand):
    """A command whose flags beyond its own are options of figures."""

    def groups(self) -> list[Group]:
        return groups_of("figure", "figures")


@checked
@dataclasses.dataclass(frozen=True)
class FigureOptions:
    """Files of ``polariscope study figure``."""

    out: Annotated[Path, Flag("FILE", default="in the study's folder")] | None = None
    """Where to write the picture: .svg, .pdf or .png."""
    csv: Annotated[Path, Flag("FILE")] | None = None
    """Where to write the numbers behind it."""


@command(FigureCommand, options=FigureOptions, rows=FlagsOf(RowOptions, only=("where",)))
def figure(
    context: typer.Context,
    file: File,
    options: FigureOptions,
    rows: RowOptions,
    name: Annotated[
        str | None, typer.Argument(help="A figure; none: list what the study can show.", metavar="[NAME]")
    ] = None,
) -> None:
    """Draw a figure of a study, or list those that its table allows and what the others lack."""
    from polariscope.cli.console import say
    from polariscope.core import files
    from polariscope.core.options import build
    from polariscope.studies.figures import family, make_figure

    flags = context.meta[KEY]
    if name is None:
        if flags or options != FigureOptions():
            raise InputError(problem="no figure is named", remedy="name one; without it they are listed")
        _list_figures(file)
        return
    chosen = [group_of("figure", family, name)]
    every = context.command.groups  # type: ignore[attr-defined]
    made = build(family, name, assign_flags(flags, chosen, every, ("--out", "--csv", "--where"))["figure"])
    ledger = open_study(file)
    drawn = make_figure(made, made.table(ledger), rows.where)
    target = options.out or ledger.folder / "figures" / f"{name}.svg"
    drawn.save(target)
    say(f"The figure is in {target}")
    if options.csv is not None:
        files.write_text(options.csv, drawn.to_csv())
        say(f"Its numbers are in {options.csv}")
    for note in drawn.notes:
        say(f"Note: {note}")


def _list_figures(file: str) -> None:
    from polariscope.cli.console import printer, say, say_next
    from polariscope.studies.figures import family
    from polariscope.studies.table_rows import study_table

    ledger = open_study(file)
    runs = study_table(ledger, details=True)
    ready = TextTable("figure", "what it shows", "answers", prose=("what it shows", "answers"))
    lacking = TextTable("figure", "what is missing", prose=("what is missing",))
    for name in family.working():
        try:
            family[name]().check(ledger, runs)
        except InputError as error:
            lacking.add_row(name, str(error))
        else:
            ready.add_row(name, family.summary(name), ", ".join(family.traits(name)["answers"]))
    if len(ready):
        printer().print(ready)
    if len(lacking):
        say("\nThese need more, or an option:")
        printer().print(lacking)
    if len(ready):
        say_next((f"polariscope study figure {file} NAME --out figure.pdf", "draw one of them"))


@checked
@dataclasses.dataclass(frozen=True)
class SelectOptions:
    """Options of ``polariscope study select``."""

    metric: Annotated[str, Flag(default="the first of the table")] = ""
    """The metric that the choices are judged by."""


@command(options=SelectOptions)
def select(file: File, options: SelectOptions) -> None:
    """Say which run would be chosen without labels, by each way of choosing, and what that costs.

    Labels judge the choices; none of them uses labels. Cost is how much worse the metric of the chosen run is than that
    of the best. If the data vary, runs are compared within each dataset.
    """
    from polariscope.cli.console import say
    from polariscope.studies.select import data_in_words, select_by_data
    from polariscope.studies.table_rows import study_table

    runs = study_table(open_study(file))
    chosen = select_by_data(runs, options.metric)
    several = len(chosen.parts) + len(chosen.not_ranked) > 1
    for part in chosen.parts:
        if several:
            say(f"{data_in_words(part.data)}:")
        _print_selections(part)
    for data, reason in chosen.not_ranked.items():
        say(f"No choice for {data}: {reason}")
    if several:
        names = ", ".join(runs.data_settings)
        say(f"Runs are ranked within each dataset ({names}), not against runs of other datasets.")


def _print_selections(result: Selections) -> None:
    from polariscope.cli.console import printer, say
    from polariscope.studies.table import MAX_RUNS_NAMED

    headers = ("chosen by", "run", result.metric, "cost", "place", "Spearman", "95 %")
    shown = TextTable(*headers, numbers=(result.metric, "cost", "Spearman"))
    for one in result.selections:
        related = "" if one.correlation is None else f"{one.correlation:.2f}"
        interval = "" if one.interval is None else f"{one.interval[0]:.2f} to {one.interval[1]:.2f}"
        rank = f"{one.rank} of {one.n}"
        shown.add_row(one.selector, one.run, f"{one.metric:.4g}", f"{one.cost:.4g}", rank, related, interval)
    shown.add_row("at random", "", f"{result.random:.4g}", f"{result.random_cost:.4g}", "on average", "", "")
    shown.add_row("the best", result.best_run, f"{result.best:.4g}", "0", "1", "", "")
    printer().print(shown)
    if result.not_competing:
        names = listed(result.not_competing, MAX_RUNS_NAMED)
        say(f"Not compared, since they have fewer latents in use than factors vary: {names}.")
    for selector, remedy in result.missing.items():
        say(f"Not measured: {selector}; {remedy}.")
