"""``polariscope table``: any runs side by side; and how tables are printed and written."""

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
"""Results that are shown if no columns are named, and the KL."""
KL = ("kl", "loss.rate")
"""Columns of the KL, the better one first: that of the diagnosis, or that of the log."""


@checked
@dataclasses.dataclass(frozen=True)
class RowOptions:
    """The rows and columns of a table that are used."""

    where: Annotated[tuple[str, ...], Flag("CONDITION", repeated=True)] = ()
    """Only rows with this, as mig>0.3 or beta=4; can be repeated."""
    columns: Annotated[tuple[str, ...], Flag("NAMES")] = ()
    """Only these results, names joined by commas; the settings that vary are always there."""

    def of(self, table: Table) -> Table:
        """Return these rows and columns of a table.

        :param table: all rows and columns.
        """
        chosen = table.where(*self.where)
        return chosen.only(self.columns) if self.columns else chosen


@checked
@dataclasses.dataclass(frozen=True)
class FileOptions:
    """A table as text or as a file; a file has all columns, unless some are named."""

    format: (
        Annotated[
            Literal["csv", "tsv", "json", "md", "parquet"],
            Flag(default="by the file's name; without a file, a table"),
        ]
        | None
    ) = None
    """Format."""
    out: Annotated[Path, Flag("FILE", default="on the screen")] | None = None
    """Where to write it."""


@checked
@dataclasses.dataclass(frozen=True)
class ScreenOptions:
    """What of a table is on the screen."""

    all: bool = False
    """Show all columns, in several parts if they are wider than the terminal."""


@checked
@dataclasses.dataclass(frozen=True)
class TableOptions:
    """Options of ``polariscope table`` beyond rows and columns."""

    csv: Annotated[Path, Flag("FILE")] | None = None
    """Also write the table to this file, with all columns unless some are named."""
    over_seeds: bool = False
    """Show mean, deviation and intervals over seeds instead of runs."""
    compare: Annotated[str, Flag("SETTING=A,B")] | None = None
    """Compare two values of a setting, paired over all else, as beta=1,4 or data.variants=original,manipulated."""


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
    """Put runs side by side: what varies between them, and the newest results of each.

    Shows the settings that vary, the loss, the number of latents of each type and the KL. --columns shows other results
    instead, and --all shows all of them. The columns are the same if the output is piped, but then lines are as long as
    they need to be.
    """
    from polariscope.cli.console import say
    from polariscope.core import files
    from polariscope.studies.table_rows import runs_table

    if options.csv is not None:
        files.check_target(options.csv, "csv")
    if options.compare is not None and options.over_seeds:
        raise InputError(
            problem=(Argument("compare"), " is printed by itself"),
            remedy=("leave ", Argument("over_seeds"), " out"),
        )
    chosen = rows.of(runs_table(runs, observations.step))
    if options.compare is not None:
        print_comparisons(chosen, options.compare)
    elif options.over_seeds:
        print_aggregates(chosen)
    else:
        print_table(chosen, rows.columns, everything=screen.all, named_by="both")
    if options.csv is not None:
        (chosen.over_seeds() if options.over_seeds else chosen).write(options.csv, "csv")
        say(f"The table is in {options.csv}")


def write_table(table: Table, file: FileOptions) -> bool:
    """Write a table to a file, or print it in a format; return whether either was asked for.

    :param table: what is written.
    :param file: where to, and how.
    """
    from polariscope.cli.console import say
    from polariscope.core.frames import text_of

    if file.out is not None:
        table.write(file.out, file.format)
        say(f"The table is in {file.out}")
    elif file.format == "parquet":
        raise InputError(
            problem="a Parquet file is not for the screen",
            remedy=("say where to write it with ", Argument("out")),
        )
    elif file.format is not None:
        typer.echo(
            table.to_markdown() if file.format == "md" else text_of(table.frame, file.format), nl=False
        )
    return file.out is not None or file.format is not None


def print_table(
    table: Table,
    asked: Sequence[str] = (),
    *,
    everything: bool = False,
    named_by: Literal["settings", "run", "both"] = "settings",
) -> None:
    """Print a table in as many parts as the terminal needs, and its notes.

    Settings that follow from another one are not shown, nor the state of runs that are all done. A table without
    settings is the answer to a query, and is shown whole.

    :param table: what is printed.
    :param asked: (default: loss, counts by type and KL) results that are shown.
    :param everything: (default False) whether all columns are shown.
    :param named_by: (default "settings") columns that name a row.
    """
    from polariscope.cli.console import print_in_parts, say
    from polariscope.core.frames import cells_of
    from polariscope.studies.table import IDENTITY, WORDS

    filled = [name for name in table.columns if table.frame[name].notna().any()]
    settings = [name for name in ("step", *table.settings) if name in filled]
    is_unique = bool(settings) and not table.frame.duplicated(settings).any()
    keys = ["run"] if named_by != "settings" or not is_unique else settings
    state = ["state"] if table.not_done else []
    telling = [] if named_by == "run" else [name for name in settings if not follows(table, name)]
    first = [name for name in filled if name in (*keys, *state, *telling)]
    results = [name for name in asked or main_results(table) if name in filled and name not in first]
    chosen = filled if everything or not table.settings else [*first, *results]
    cells = {name: list(map(cell_text, cells_of(table.frame[name]))) for name in chosen}
    named = [name for name in keys if name in first] if table.settings else filled[:1]
    print_in_parts(cells, keys=named, numbers=table.measured)
    for note in table.notes:
        say(note)
    hidden = [name for name in filled if name not in (*chosen, *IDENTITY, *WORDS)]
    if hidden and not asked:
        count = plural(len(hidden), "more column")
        say(f"{count}: --all shows them, --columns NAMES some of them, and a file has all.")


def main_results(table: Table) -> list[str]:
    """Return the results that are shown unless others are asked for: loss, counts by type, and KL.

    :param table: of runs.
    """
    # A run that was not diagnosed has its KL only from the log.
    has_loss = table.frame["loss"].notna() if "loss" in table.columns else slice(None)
    kl = [name for name in KL if name in table.columns]
    complete = [name for name in kl if table.frame.loc[has_loss, name].notna().all()]
    return [name for name in (*MAIN, *(complete or kl)[:1]) if name in table.columns]


def follows(table: Table, setting: str) -> bool:
    """Return whether a setting has one value at most, and another setting tells which runs have it.

    An option of one objective of several is of this kind.

    :param table: of runs.
    :param setting: its name.
    """
    frame = table.frame
    others = [name for name in table.settings if name not in (setting, "seed") and frame[name].nunique() > 1]
    return frame[setting].nunique() == 1 and any(
        frame.groupby(name, dropna=False)[setting].nunique(dropna=False).max() == 1 for name in others
    )


def print_comparisons(table: Table, text: str) -> None:
    """Print two values of a setting side by side, paired by seed and all else.

    :param table: of runs.
    :param text: SETTING=A,B.
    """
    from polariscope.cli.console import print_in_parts, say

    setting, _, values = text.partition("=")
    pair = [value.strip() for value in values.split(",")]
    if len(pair) != 2 or not all(pair):
        raise InputError("compare", "be SETTING=A,B with two values of the setting", got=f"{text!r}")
    comparisons = table.comparisons(setting.strip(), *pair)
    divided = any(one.settings for one in comparisons)
    cells = {
        **({"settings": [assigned(one.settings) or "all" for one in comparisons]} if divided else {}),
        "column": [one.column for one in comparisons],
        "pairs": [str(one.n) for one in comparisons],
        "mean difference": [cell_text(one.difference) for one in comparisons],
        "± SD": [cell_text(one.sd) for one in comparisons],
        **_intervals(comparisons),
        "higher in": [f"{one.higher} of {one.n}" for one in comparisons],
    }
    print_in_parts(cells, keys=("settings", "column"), numbers=("pairs", "mean difference", "± SD"))
    meant = (comparisons[0].first, comparisons[0].second)
    first, second = (
        f"{setting}={cell_text(value) or typed}" for value, typed in zip(meant, pair, strict=True)
    )
    say(f"Differences are {second} minus {first}, over runs that are equal in all else.")
    for note in table.left_out:
        say(note)


def print_aggregates(table: Table) -> None:
    """Print every column over the seeds of each setting.

    :param table: of runs.
    """
    from polariscope.cli.console import print_in_parts, say

    aggregates = table.aggregate()
    cells = {
        "settings": [assigned(one.settings) for one in aggregates],
        "column": [one.column for one in aggregates],
        "runs": [str(one.n) for one in aggregates],
        "mean": [f"{one.mean:.4g}" for one in aggregates],
        "± SD": ["" if one.sd is None else f"{one.sd:.3g}" for one in aggregates],
        **_intervals(aggregates),
        "lowest": [one.lowest for one in aggregates],
        "median": [one.median for one in aggregates],
        "highest": [one.highest for one in aggregates],
    }
    print_in_parts(cells, keys=("settings", "column"), numbers=("runs", "mean", "± SD"))
    for note in (*table.notes, *table.left_out):
        say(note)


def _intervals(results: Sequence[Aggregate] | Sequence[Comparison]) -> dict[str, list[str]]:
    return {
        "95 % (t)": [interval(one.t, between=" to ") for one in results],
        "95 % (bootstrap)": [interval(one.bootstrap, between=" to ") for one in results],
    }
