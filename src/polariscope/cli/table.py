"""``polariscope table``: settings and results of runs, and helpers that print and write tables."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from polariscope.cli.command import Flag, FlagsOf, command
from polariscope.core.errors import Argument, InputError
from polariscope.core.options import checked
from polariscope.core.text import assigned, cell_text, interval, plural

if TYPE_CHECKING:
    from polariscope.data.observations import Observations
    from polariscope.studies.over_seeds import Aggregate
    from polariscope.studies.paired import Comparison
    from polariscope.studies.table import Table

MAIN = ("loss", "in_use", "training", "active", "mixed", "passive")
"""Results that are shown by default, besides the KL."""
KL = ("kl", "loss.rate")
"""Columns of the KL, in order of preference: from the diagnosis, or from the log."""


@checked
@dataclasses.dataclass(frozen=True)
class RowOptions:
    """Selection of rows and columns of a table."""

    where: Annotated[tuple[str, ...], Flag("CONDITION", repeated=True)] = ()
    """Only rows that satisfy a condition, for example mig>0.3 or beta=4; can be repeated."""
    columns: Annotated[tuple[str, ...], Flag("NAMES")] = ()
    """Only these results, separated by commas; settings that vary are always included."""

    def of(self, table: Table) -> Table:
        """Return the selected rows and columns of a table.

        :param table: the whole table.
        """
        selected = table.where(*self.where)
        return selected.only(self.columns) if self.columns else selected


@checked
@dataclasses.dataclass(frozen=True)
class FileOptions:
    """Format and file of a table; a file has all columns unless some are selected."""

    format: (
        Annotated[
            Literal["csv", "tsv", "json", "md", "parquet"],
            Flag(default="from the file's name; without a file, a plain table"),
        ]
        | None
    ) = None
    """Output format."""
    out: Annotated[Path, Flag("FILE", default="standard output")] | None = None
    """File to write."""


@checked
@dataclasses.dataclass(frozen=True)
class ScreenOptions:
    """Columns of a table that are printed."""

    all: bool = False
    """Show all columns, in several parts if they are wider than the terminal."""


@checked
@dataclasses.dataclass(frozen=True)
class TableOptions:
    """Options of ``polariscope table`` beyond rows and columns."""

    csv: Annotated[Path, Flag("FILE")] | None = None
    """Also write the table to this file, with all columns unless some are selected."""
    over_seeds: bool = False
    """Show mean, deviation and intervals over seeds instead of single runs."""
    compare: Annotated[str, Flag("SETTING=A,B")] | None = None
    """Compare two values of a setting over pairs of runs that are otherwise equal, for example beta=1,4 or
    data.variants=original,manipulated."""


@command(
    rows=RowOptions,
    screen=ScreenOptions,
    options=TableOptions,
    observations=FlagsOf("polariscope.data.observations.Observations", only=("step",)),
)
def table(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN…", help="Folders of runs.")],
    rows: RowOptions,
    screen: ScreenOptions,
    options: TableOptions,
    observations: Observations,
) -> None:
    """Show settings and results of runs side by side.

    The table shows the settings that vary and the most recently used results of each run: the loss, the number of
    latents in use, the state of the training, the number of latents of each type and the KL. --columns shows other
    results instead, and --all shows all of them. Piped output has the same columns as the terminal, but lines are not
    wrapped.
    """
    from polariscope.cli.console import say
    from polariscope.studies.table_rows import runs_table

    if options.compare is not None and options.over_seeds:
        raise InputError(
            problem=(Argument("compare"), " and ", Argument("over_seeds"), " cannot be combined"),
            remedy="use one of them",
        )
    selected = rows.of(runs_table(runs, observations.step))
    if options.compare is not None:
        print_comparisons(selected, options.compare)
    elif options.over_seeds:
        print_aggregates(selected)
    else:
        print_table(selected, rows.columns, everything=screen.all, named_by="both")
    if options.csv is not None:
        (selected.over_seeds() if options.over_seeds else selected).write(options.csv, "csv")
        say(f"The table is in {options.csv}")


def write_table(table: Table, file: FileOptions) -> bool:
    """Write a table to a file, or print it in a format; return False if neither was requested.

    :param table: the table.
    :param file: file and format.
    """
    from polariscope.cli.console import say
    from polariscope.core.frames import text_of

    if file.out is not None:
        table.write(file.out, file.format)
        say(f"The table is in {file.out}")
    elif file.format == "parquet":
        raise InputError(
            problem="a Parquet table cannot be printed",
            remedy=("write it to a file with ", Argument("out")),
        )
    elif file.format is not None:
        typer.echo(
            table.to_markdown() if file.format == "md" else text_of(table.frame, file.format), nl=False
        )
    return file.out is not None or file.format is not None


def print_table(
    table: Table,
    columns: Sequence[str] = (),
    *,
    everything: bool = False,
    named_by: Literal["settings", "run", "both"] = "settings",
) -> None:
    """Print a table in as many parts as the terminal needs, and its notes.

    Settings that follow from another one are hidden, and so is the state of runs if all are done. A table without
    settings is the result of a query, and all its columns are shown.

    :param table: the table.
    :param columns: (default: loss, counts by type and KL) results that are shown.
    :param everything: (default False) if True, show all columns.
    :param named_by: (default "settings") columns that identify a row.
    """
    from polariscope.cli.console import print_in_parts, say
    from polariscope.core.frames import cells_of
    from polariscope.studies.table import IDENTITY, WORDS

    filled = [name for name in table.columns if table.frame[name].notna().any()]
    settings = [name for name in ("step", *table.settings) if name in filled]
    is_unique = bool(settings) and not table.frame.duplicated(settings).any()
    # If the settings do not identify every row, the names of the runs do.
    keys = ["run"] if named_by != "settings" or not is_unique else settings
    state = ["state"] if table.not_done else []
    distinct = [] if named_by == "run" else [name for name in settings if not follows(table, name)]
    first = [name for name in filled if name in (*keys, *state, *distinct)]
    results = [name for name in columns or main_results(table) if name in filled and name not in first]
    selected = filled if everything or not table.settings else [*first, *results]
    cells = {name: list(map(cell_text, cells_of(table.frame[name]))) for name in selected}
    named = [name for name in keys if name in first] if table.settings else filled[:1]
    print_in_parts(cells, keys=named, numbers=table.measured)
    for note in table.notes:
        say(note)
    hidden = [name for name in filled if name not in (*selected, *IDENTITY, *WORDS)]
    if hidden and not columns:
        count = plural(len(hidden), "more column")
        say(f"{count}: show all with --all, some with --columns NAMES, or write a file.")


def main_results(table: Table) -> list[str]:
    """Return the results that are shown by default: loss, counts by type, and KL.

    :param table: table of runs.
    """
    # Runs that were not diagnosed have a KL only in the log.
    has_loss = table.frame["loss"].notna() if "loss" in table.columns else slice(None)
    kl = [name for name in KL if name in table.columns]
    complete = [name for name in kl if table.frame.loc[has_loss, name].notna().all()]
    return [name for name in (*MAIN, *(complete or kl)[:1]) if name in table.columns]


def follows(table: Table, setting: str) -> bool:
    """Return whether a setting has only one value, and another setting determines which runs have it.

    An example is an option of one of several objectives.

    :param table: table of runs.
    :param setting: name of the setting.
    """
    frame = table.frame
    others = [name for name in table.settings if name not in (setting, "seed") and frame[name].nunique() > 1]
    return frame[setting].nunique() == 1 and any(
        frame.groupby(name, dropna=False)[setting].nunique(dropna=False).max() == 1 for name in others
    )


def print_comparisons(table: Table, text: str) -> None:
    """Print differences between two values of a setting, over pairs of runs with equal seed and other settings.

    :param table: table of runs.
    :param text: SETTING=A,B.
    """
    from polariscope.cli.console import print_in_parts, say

    setting, _, values = text.partition("=")
    pair = [value.strip() for value in values.split(",")]
    if len(pair) != 2 or not all(pair):
        raise InputError("compare", "be SETTING=A,B with two values of the setting", got=f"{text!r}")
    comparisons = table.comparisons(setting.strip(), *pair)
    divided = any(each.settings for each in comparisons)
    cells = {
        **({"settings": [assigned(each.settings) or "all" for each in comparisons]} if divided else {}),
        "column": [each.column for each in comparisons],
        "pairs": [str(each.n) for each in comparisons],
        "mean difference": [cell_text(each.difference) for each in comparisons],
        "± SD": [cell_text(each.sd) for each in comparisons],
        **_intervals(comparisons),
        "higher in": [f"{each.higher} of {each.n}" for each in comparisons],
    }
    print_in_parts(cells, keys=("settings", "column"), numbers=("pairs", "mean difference", "± SD"))
    meant = (comparisons[0].first, comparisons[0].second)
    first, second = (
        f"{setting}={cell_text(value) or typed}" for value, typed in zip(meant, pair, strict=True)
    )
    say(f"Differences are {second} minus {first}, over runs that are otherwise equal.")
    for note in table.left_out:
        say(note)


def print_aggregates(table: Table) -> None:
    """Print statistics of every column over the seeds of each setting.

    :param table: table of runs.
    """
    from polariscope.cli.console import print_in_parts, say

    aggregates = table.aggregate()
    cells = {
        "settings": [assigned(each.settings) for each in aggregates],
        "column": [each.column for each in aggregates],
        "runs": [str(each.n) for each in aggregates],
        "mean": [f"{each.mean:.4g}" for each in aggregates],
        "± SD": ["" if each.sd is None else f"{each.sd:.3g}" for each in aggregates],
        **_intervals(aggregates),
        "lowest": [each.lowest for each in aggregates],
        "median": [each.median for each in aggregates],
        "highest": [each.highest for each in aggregates],
    }
    print_in_parts(cells, keys=("settings", "column"), numbers=("runs", "mean", "± SD"))
    for note in (*table.notes, *table.left_out):
        say(note)


def _intervals(results: Sequence[Aggregate] | Sequence[Comparison]) -> dict[str, list[str]]:
    return {
        "95 % (t)": [interval(each.t, between=" to ") for each in results],
        "95 % (bootstrap)": [interval(each.bootstrap, between=" to ") for each in results],
    }
