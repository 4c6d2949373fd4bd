"""``polariscope study table``, ``seeds``, ``compare``, ``extremes``, ``paper`` and ``sql``: the runs of a study."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from annotated_types import Ge

from polariscope.cli.command import Flag, command
from polariscope.cli.study import File, open_study
from polariscope.cli.table import (
    FileOptions,
    RowOptions,
    ScreenOptions,
    main_results,
    print_aggregates,
    print_comparisons,
    print_table,
    write_table,
)
from polariscope.core.options import checked

if TYPE_CHECKING:
    from polariscope.studies.table import Table


@command(rows=RowOptions, screen=ScreenOptions, output=FileOptions)
def table(file: File, rows: RowOptions, screen: ScreenOptions, output: FileOptions) -> None:
    """Put all runs of a study side by side.

    Shows the settings that vary, the loss, the number of latents of each type and the KL. --columns shows other results
    instead, and --all shows all of them. A file has all columns. The columns are the same if the output is piped, but
    then lines are as long as they need to be.
    """
    chosen = rows.of(_runs(file))
    if not write_table(chosen, output):
        print_table(chosen, rows.columns, everything=screen.all)


@command(rows=RowOptions, output=FileOptions)
def seeds(file: File, rows: RowOptions, output: FileOptions) -> None:
    """Show mean, deviation and intervals of each result over the seeds of each setting."""
    chosen = rows.of(_runs(file))
    if output == FileOptions():
        print_aggregates(chosen)
    else:
        write_table(chosen.over_seeds(), output)


@command(rows=RowOptions)
def compare(
    file: File,
    values: Annotated[
        str,
        typer.Argument(
            metavar="SETTING=A,B",
            help="A setting and two of its values, as beta=1,4 or data.variants=original,manipulated.",
        ),
    ],
    rows: RowOptions,
) -> None:
    """Compare two values of a setting, over pairs of runs that are equal in all else."""
    print_comparisons(rows.of(_runs(file)), values)


@command(rows=RowOptions, screen=ScreenOptions, output=FileOptions)
def extremes(
    file: File,
    column: Annotated[
        str, typer.Argument(metavar="COLUMN", help="The score that runs are ranked by, as mig.")
    ],
    rows: RowOptions,
    screen: ScreenOptions,
    output: FileOptions,
) -> None:
    """Show the best and the worst seed of each setting by a score."""
    from polariscope.studies.extremes import RESTART
    from polariscope.studies.extremes import extremes as best_and_worst

    ranked = best_and_worst(_runs(file).where(*rows.where), column)
    chosen = ranked.only([RESTART, column, *rows.columns]) if rows.columns else ranked
    if not write_table(chosen, output):
        asked = rows.columns or main_results(chosen)
        # By the run, because other commands ask for its name.
        print_table(chosen, (RESTART, column, *asked), everything=screen.all, named_by="run")


@checked
@dataclasses.dataclass(frozen=True)
class PaperOptions:
    """Layout of a table for a paper; see :func:`polariscope.studies.paper_table.summary_table`."""

    format: Annotated[Literal["md", "latex"], Flag(default="by the file's name; otherwise md")] | None = None
    """Format."""
    out: Annotated[Path, Flag("FILE", default="on the screen")] | None = None
    """Where to write it; a name that ends in .tex is for LaTeX."""
    across: Annotated[tuple[str, ...], Flag("NAMES")] = ()
    """Settings whose values are next to each other instead of below, joined by commas."""
    best_over: Annotated[str, Flag("NAME")] = ""
    """Show the best value of this setting only."""
    metrics_in_rows: bool = False
    """Put metrics below each other."""
    digits: Annotated[int, Ge(0)] = 3
    """Digits after the point."""


@command(rows=RowOptions, options=PaperOptions)
def paper(file: File, rows: RowOptions, options: PaperOptions) -> None:
    """Print a table for a paper: settings × metrics, mean ± deviation over seeds, the best in bold."""
    from polariscope.cli.console import say
    from polariscope.core import files
    from polariscope.core.errors import check_word
    from polariscope.studies.paper_table import summary_table

    ending = "md" if options.out is None else options.out.suffix.removeprefix(".")
    format = options.format or {"tex": "latex"}.get(ending, ending)
    check_word("format of a table for a paper", format, ("latex", "md"))
    made = summary_table(
        _runs(file).where(*rows.where),
        rows.columns,
        across=options.across,
        best_over=options.best_over,
        metrics_in_rows=options.metrics_in_rows,
        digits=options.digits,
    )
    text = made.to_latex() if format == "latex" else made.to_markdown()
    if options.out is None:
        typer.echo(text, nl=False)
    else:
        files.write_text(options.out, text)
        say(f"The table is in {options.out}")


@command(rows=RowOptions, output=FileOptions)
def sql(
    file: File,
    query: Annotated[
        str,
        typer.Argument(
            metavar="QUERY",
            help="In SQL, over the table, which is called runs, and over files that it names.",
        ),
    ],
    rows: RowOptions,
    output: FileOptions,
) -> None:
    """Answer a query over the table of a study; needs duckdb."""
    answer = rows.of(_runs(file)).sql(query)
    if not write_table(answer, output):
        print_table(answer)


def _runs(file: str) -> Table:
    from polariscope.studies.table_rows import study_table

    return study_table(open_study(file))
