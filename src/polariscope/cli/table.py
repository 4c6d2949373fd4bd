"""``polariscope table``: any runs side by side."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from polariscope.cli.app import Step
from polariscope.core.errors import Argument, InputError

if TYPE_CHECKING:
    from polariscope.studies.table import Aggregate, Table


def table(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN…", help="Folders of runs.")],
    csv: Annotated[Path | None, typer.Option(help="Also write it here.", metavar="FILE")] = None,
    where: Annotated[
        list[str] | None,
        typer.Option(help="Only rows with this, as mig>0.3 or beta=4; may be repeated.", metavar="CONDITION"),
    ] = None,
    columns: Annotated[
        str, typer.Option(help="Only these, names joined by commas. [all]", metavar="NAMES")
    ] = "",
    over_seeds: Annotated[
        bool, typer.Option("--over-seeds", help="Mean, deviation and intervals over seeds instead of runs.")
    ] = False,
    compare: Annotated[
        str | None,
        typer.Option(
            help="Two values of a setting, paired over all else, as beta=1,4.", metavar="SETTING=A,B"
        ),
    ] = None,
    step: Step = None,
) -> None:
    """Put runs side by side: what varies between them, their loss, and the newest of what was measured of each."""
    from polariscope.cli.console import say
    from polariscope.studies.table import runs_table

    if csv is not None and csv.is_dir():
        raise InputError("csv", "be a file", got=f"the folder {csv}")
    found = runs_table(runs, step)
    print_table(found, None, None, where or [], columns, over_seeds, compare=compare)
    if csv is not None:
        chosen = _selected(found, where or [], columns)
        (chosen.over_seeds() if over_seeds else chosen).write(csv, "csv")
        say(f"The table is in {csv}")


def print_table(
    found: Table,
    format: str | None,
    out: Path | None,
    where: list[str],
    columns: str,
    over_seeds: bool,
    sql: str | None = None,
    compare: str | None = None,
) -> None:
    """Print a table, or write it into a file."""
    from polariscope.cli.console import printer, say, table
    from polariscope.core.errors import check_word

    if format is not None:
        check_word("format of a table", format, ("csv", "md", "parquet"))
    chosen = _selected(found, where, columns)
    if compare is not None:
        if over_seeds or sql is not None or out is not None or format is not None:
            raise InputError(
                problem=(Argument("compare"), " is printed by itself"),
                remedy="leave the other ways to show the table out",
            )
        _print_comparisons(chosen, compare)
        return
    if sql is not None:
        if over_seeds:
            raise InputError(
                problem=(Argument("over_seeds"), " and ", Argument("sql"), " were both given"),
                remedy="choose one; a query can group by settings",
            )
        chosen = chosen.sql(sql)
    if over_seeds and out is None and format is None:
        _print_aggregates(chosen.aggregate())
        for note in (*chosen.notes, *chosen.left_out):
            say(note)
        return
    chosen = chosen.over_seeds() if over_seeds else chosen
    if out is not None:
        chosen.write(out, format)
        say(f"The table is in {out}")
        return
    if format == "parquet":
        raise InputError(
            problem="a Parquet file is not for the screen",
            remedy=("say where to write it with ", Argument("out")),
        )
    if format is not None:
        typer.echo(chosen.to_csv() if format == "csv" else chosen.to_markdown(), nl=False)
        return
    from polariscope.studies.table import shown

    headers = [name for name in chosen.columns if any(row.get(name) is not None for row in chosen.rows)]
    printed = table(*headers, numbers=tuple(chosen.measured))
    for row in chosen.rows:
        printed.add_row(*(shown(row.get(name)) for name in headers))
    printer().print(printed)
    for note in chosen.notes:
        say(note)


def _selected(found: Table, where: list[str], columns: str) -> Table:
    chosen = found.where(*where)
    names = [name.strip() for name in columns.split(",") if name.strip()]
    return chosen.only(names) if names else chosen


def _print_comparisons(chosen: Table, text: str) -> None:
    """Two values of a setting side by side, paired by seed and all else."""
    from polariscope.cli.console import printer, say, table
    from polariscope.studies.table import shown

    setting, _, values = text.partition("=")
    pair = [value.strip() for value in values.split(",")]
    if len(pair) != 2 or not all(pair):
        raise InputError("compare", "be SETTING=A,B with two values of the setting", got=f"{text!r}")
    headers = ("column", "pairs", "mean difference", "± SD", "95 % (t)", "95 % (bootstrap)", "higher in")
    printed = table(*headers, numbers=headers[1:4])
    for one in chosen.comparisons(setting.strip(), *pair):
        ends = [
            "" if found is None else f"{found[0]:.3g} to {found[1]:.3g}" for found in (one.t, one.bootstrap)
        ]
        printed.add_row(
            one.column, str(one.n), shown(one.difference), shown(one.sd), *ends, f"{one.higher} of {one.n}"
        )
    printer().print(printed)
    say(
        f"Differences are {setting}={pair[1]} minus {setting}={pair[0]}, over runs that are equal in all else."
    )
    for note in chosen.left_out:
        say(note)


def _print_aggregates(aggregates: list[Aggregate]) -> None:
    from polariscope.cli.console import printer, table
    from polariscope.studies.table import shown

    headers = (
        "settings",
        "column",
        "runs",
        "mean",
        "± SD",
        "95 % (t)",
        "95 % (bootstrap)",
        "lowest",
        "median",
        "highest",
    )
    printed = table(*headers, numbers=("runs", "mean", "± SD"))
    for one in aggregates:
        settings = ", ".join(f"{name}={shown(value)}" for name, value in one.settings.items())
        spread = "" if one.sd is None else f"{one.sd:.3g}"
        cells: list[Any] = [settings, one.column, str(one.n), f"{one.mean:.4g}", spread]
        cells += [
            "" if found is None else f"{found[0]:.3g} to {found[1]:.3g}" for found in (one.t, one.bootstrap)
        ]
        printed.add_row(*cells, one.lowest, one.median, one.highest)
    printer().print(printed)
