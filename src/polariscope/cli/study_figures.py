"""``polariscope study figure`` and ``polariscope study select``: figures and model selection."""

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
    """A command that also has the options of figures as flags."""

    def groups(self) -> list[Group]:
        return groups_of("figure", "figures")


@checked
@dataclasses.dataclass(frozen=True)
class FigureOptions:
    """Files of ``polariscope study figure``."""

    out: Annotated[Path, Flag("FILE", default="in the study's folder")] | None = None
    """Picture to write: .svg, .pdf or .png."""
    csv: Annotated[Path, Flag("FILE")] | None = None
    """Also write the data of the figure to this file."""


@command(FigureCommand, options=FigureOptions, rows=FlagsOf(RowOptions, only=("where",)))
def figure(
    context: typer.Context,
    file: File,
    options: FigureOptions,
    rows: RowOptions,
    name: Annotated[
        str | None,
        typer.Argument(help="A figure. By default, available figures are listed.", metavar="[NAME]"),
    ] = None,
) -> None:
    """Draw a figure of a study, or list the available figures.

    For figures that are not available, the list shows what is missing.
    """
    from polariscope.cli.console import say
    from polariscope.core import files
    from polariscope.core.options import build
    from polariscope.studies.figures import family, make_figure

    flags = context.meta[KEY]
    if name is None:
        if flags or options != FigureOptions():
            raise InputError(
                problem="the name of a figure is missing",
                remedy="add it, or leave all flags out to list the figures",
            )
        _list_figures(file)
        return
    result = [group_of("figure", family, name)]
    every = context.command.groups  # type: ignore[attr-defined]
    made = build(family, name, assign_flags(flags, result, every, ("--out", "--csv", "--where"))["figure"])
    ledger = open_study(file)
    drawn = make_figure(made, made.table(ledger), rows.where)
    target = options.out or ledger.folder / "figures" / f"{name}.svg"
    drawn.save(target)
    say(f"The figure is in {target}")
    if options.csv is not None:
        files.write_text(options.csv, drawn.to_csv())
        say(f"Its data are in {options.csv}")
    for note in drawn.notes:
        say(f"Note: {note}")


def _list_figures(file: str) -> None:
    from polariscope.cli.console import printer, say, say_next
    from polariscope.studies.figures import family
    from polariscope.studies.table_rows import study_table

    ledger = open_study(file)
    runs = study_table(ledger, details=True)
    ready = TextTable("figure", "description", "answers", prose=("description", "answers"))
    lacking = TextTable("figure", "missing", prose=("missing",))
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
        say("\nThese figures require more results or an option:")
        printer().print(lacking)
    if len(ready):
        say_next((f"polariscope study figure {file} NAME --out figure.pdf", "draw one of them"))


@checked
@dataclasses.dataclass(frozen=True)
class SelectOptions:
    """Options of ``polariscope study select``."""

    metric: Annotated[str, Flag(default="the first of the table")] = ""
    """Metric that the selected runs are evaluated with."""


@command(options=SelectOptions)
def select(file: File, options: SelectOptions) -> None:
    """Select runs without labels, and show the cost of each selection.

    Each row is a selection criterion that does not use labels. The selected run is then evaluated with a metric that
    does. Cost is the difference between the metric of the best run and that of the selected one. If the data vary, runs
    are compared within each dataset.
    """
    from polariscope.cli.console import say
    from polariscope.studies.select import data_in_words, select_by_data
    from polariscope.studies.table_rows import study_table

    runs = study_table(open_study(file))
    result = select_by_data(runs, options.metric)
    several = len(result.parts) + len(result.not_ranked) > 1
    for part in result.parts:
        if several:
            say(f"{data_in_words(part.data)}:")
        _print_selections(part)
    for data, reason in result.not_ranked.items():
        say(f"No selection for {data}: {reason}")
    if several:
        names = ", ".join(runs.data_settings)
        say(f"Runs are ranked within each dataset ({names}), not across datasets.")


def _print_selections(result: Selections) -> None:
    from polariscope.cli.console import printer, say
    from polariscope.studies.table import MAX_RUNS_NAMED

    headers = ("selected by", "run", result.metric, "cost", "rank", "Spearman", "95 %")
    shown = TextTable(*headers, numbers=(result.metric, "cost", "Spearman"))
    for each in result.selections:
        related = "" if each.correlation is None else f"{each.correlation:.2f}"
        interval = "" if each.interval is None else f"{each.interval[0]:.2f} to {each.interval[1]:.2f}"
        rank = f"{each.rank} of {each.n}"
        cells = (f"{each.metric:.4g}", f"{each.cost:.4g}", rank, related, interval)
        shown.add_row(each.selector, each.run, *cells)
    shown.add_row("at random", "", f"{result.random:.4g}", f"{result.random_cost:.4g}", "on average", "", "")
    shown.add_row("the best", result.best_run, f"{result.best:.4g}", "0", "1", "", "")
    printer().print(shown)
    if result.not_competing:
        names = listed(result.not_competing, MAX_RUNS_NAMED)
        say(f"Not compared, because fewer latents are in use than there are varying factors: {names}.")
    for selector, remedy in result.missing.items():
        say(f"Not available: {selector}; {remedy}.")
