"""``polariscope study table``, ``seeds``, ``compare``, ``extremes``, ``paper`` and ``sql``: tables of a study."""

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
    """Show settings and results of all runs of a study.

    The table shows the settings that vary, the loss, the number of latents in use, the state of the training, the
    number of latents of each type and the KL. --columns shows other results instead, and --all shows all of them. Files
    contain all columns unless some are selected. Piped output has the same columns as the terminal, but lines are not
    wrapped.
    """
    selected = rows.of(_runs(file))
    if not write_table(selected, output):
        print_table(selected, rows.columns, everything=screen.all)


@command(rows=RowOptions, output=FileOptions)
def seeds(file: File, rows: RowOptions, output: FileOptions) -> None:
    """Show mean, deviation and intervals of results over seeds.

    Runs that differ only in their seed are aggregated.
    """
    selected = rows.of(_runs(file))
    if output == FileOptions():
        print_aggregates(selected)
    else:
        write_table(selected.over_seeds(), output)


@command(rows=RowOptions)
def compare(
    file: File,
    values: Annotated[
        str,
        typer.Argument(
            metavar="SETTING=A,B",
            help="A setting and two of its values, for example beta=1,4 or data.variants=original,manipulated.",
        ),
    ],
    rows: RowOptions,
) -> None:
    """Compare two values of a setting over pairs of runs.

    The two runs of a pair are equal in all other settings.
    """
    print_comparisons(rows.of(_runs(file)), values)


@command(rows=RowOptions, screen=ScreenOptions, output=FileOptions)
def extremes(
    file: File,
    column: Annotated[
        str, typer.Argument(metavar="COLUMN", help="The score that ranks the runs, for example mig.")
    ],
    rows: RowOptions,
    screen: ScreenOptions,
    output: FileOptions,
) -> None:
    """Show the seeds with the best and worst score of each setting."""
    from polariscope.studies.extremes import RESTART
    from polariscope.studies.extremes import extremes as best_and_worst

    ranked = best_and_worst(_runs(file).where(*rows.where), column)
    selected = ranked.only([RESTART, column, *rows.columns]) if rows.columns else ranked
    if not write_table(selected, output):
        columns = rows.columns or main_results(selected)
        # Rows are named by run, because other commands take this name as an argument.
        print_table(selected, (RESTART, column, *columns), everything=screen.all, named_by="run")


@checked
@dataclasses.dataclass(frozen=True)
class PaperOptions:
    """Layout of a table for a paper; see :func:`polariscope.studies.paper_table.summary_table`."""

    format: Annotated[Literal["md", "latex"], Flag(default="from the file's name, otherwise md")] | None = (
        None
    )
    """Output format."""
    out: Annotated[Path, Flag("FILE", default="standard output")] | None = None
    """File to write; the ending .tex selects LaTeX."""
    across: Annotated[tuple[str, ...], Flag("NAMES")] = ()
    """Settings whose values are shown in columns instead of rows, separated by commas."""
    best_over: Annotated[str, Flag("NAME")] = ""
    """Show only the best value of this setting."""
    metrics_in_rows: bool = False
    """Show metrics in rows instead of columns."""
    digits: Annotated[int, Ge(0)] = 3
    """Number of decimal places."""


@command(rows=RowOptions, options=PaperOptions)
def paper(file: File, rows: RowOptions, options: PaperOptions) -> None:
    """Print a table for a paper, in Markdown or LaTeX.

    Rows are settings and columns are metrics, as mean ± deviation over seeds, with the best values in bold.
    """
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
            help="SQL query over the table, which is called runs, and over files that the query names.",
        ),
    ],
    rows: RowOptions,
    output: FileOptions,
) -> None:
    """Run an SQL query on the table of a study; requires duckdb."""
    answer = rows.of(_runs(file)).sql(query)
    if not write_table(answer, output):
        print_table(answer)


def _runs(file: str) -> Table:
    from polariscope.studies.table_rows import study_table

    return study_table(open_study(file))
