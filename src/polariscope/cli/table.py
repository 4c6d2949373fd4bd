"""``polariscope table``: any runs side by side."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast, get_args

import typer

from polariscope.cli.app import SAMPLES, Step, open_target
from polariscope.core.errors import Argument, InputError

if TYPE_CHECKING:
    from polariscope.studies.table import Aggregate, Table


def table(
    runs: Annotated[
        list[Path],
        typer.Argument(metavar="RUN…", help="Folders of runs; with --stability also .npz files of codes."),
    ],
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
            help="Two values of a setting, paired over all else, as beta=1,4 or data.variants=original,manipulated.",
            metavar="SETTING=A,B",
        ),
    ] = None,
    step: Step = None,
    stability: Annotated[
        bool,
        typer.Option(
            "--stability",
            help="Which latents return in every run, and which run is the most central, instead.",
        ),
    ] = False,
    samples: Annotated[
        int | None, typer.Option(help=f"With --stability: observations to encode. [{SAMPLES}]", min=2)
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="With --stability: seed of the observations and shuffles. [0]", min=0)
    ] = None,
    relation: Annotated[
        str | None,
        typer.Option(help="With --stability: spearman or pearson correlation of latents. [spearman]"),
    ] = None,
) -> None:
    """Put runs side by side: what varies between them, their loss, and the newest of what was measured of each.

    With --stability the latents of the runs, trained alike with other seeds, are matched with each other: which return
    in every run, how consistent the runs are beside what chance gives, and which run to publish. Codes of other
    libraries take part as .npz files with mean and variance (or log_variance) of the same observations.
    """
    from polariscope.cli.console import say
    from polariscope.studies.table import runs_table

    if csv is not None and csv.is_dir():
        raise InputError("csv", "be a file", got=f"the folder {csv}")
    given = {"samples": samples, "seed": seed, "relation": relation}
    if stability:
        others = {"where": where, "columns": columns or None, "over_seeds": over_seeds or None}
        others |= {"compare": compare}
        refuse(others, " is for the table of runs", "stability")
        print_stability(runs, csv, step, samples, seed or 0, relation or "spearman")
        return
    refuse(given, " is for the stability of latents", None)
    found = runs_table(runs, step)
    print_table(found, None, None, where or [], columns, over_seeds, compare=compare)
    if csv is not None:
        chosen = _selected(found, where or [], columns)
        (chosen.over_seeds() if over_seeds else chosen).write(csv, "csv")
        say(f"The table is in {csv}")


@dataclasses.dataclass(frozen=True)
class Layout:
    """How a table for a paper is laid out; see :func:`polariscope.studies.summary.summary_table`."""

    across: str = ""
    best_over: str = ""
    metrics_in_rows: bool = False
    digits: int = 3


def refuse(options: Mapping[str, object], why: str, mode: str | None) -> None:
    """Refuse options that mean nothing to what is asked for."""
    for name, value in options.items():
        if value is not None:
            how = ("leave ", Argument("stability"), " out") if mode else ("add ", Argument("stability"))
            raise InputError(problem=(Argument(name), why), remedy=how)


def print_stability(
    runs: list[Path], csv: Path | None, step: int | None, samples: int | None, seed: int, relation: str
) -> None:
    """Which latents return in every run, and which run is the most central."""
    from polariscope.analysis.stability import Relation
    from polariscope.cli.console import printer, say, table
    from polariscope.core import files
    from polariscope.core.errors import check_word
    from polariscope.runs.stability import stability

    check_word("relation", relation, get_args(Relation))
    given = cast("Relation", relation)
    named = [name for name, value in (("n_samples", samples), ("step", step)) if value is not None]
    targets = [open_target(run, named) or run for run in runs]
    found = stability(targets, relation=given, n_samples=samples or SAMPLES, seed=seed, step=step)
    say(found.headline)
    shown = table(
        "run",
        "latents in use",
        "agreement with others",
        "",
        numbers=("latents in use", "agreement with others"),
    )
    for place in sorted(range(len(found.names)), key=lambda place: -found.centrality[place]):
        mark = "most central" if place == found.central else ""
        shown.add_row(found.names[place], str(found.n_used[place]), f"{found.centrality[place]:.3f}", mark)
    printer().print(shown)
    say(found.answer)
    others = [name for place, name in enumerate(found.names) if place != found.shown]
    heads = [f"in {name}" for name in others]
    latents = table(
        *("latent", "returns", "lowest", *heads),
        title=f"Latents of {found.names[found.shown]}, their strength and partner in every other run",
        numbers=("latent", "lowest", *heads),
    )
    for one in sorted(found.of(found.shown), key=lambda one: -one.lowest):
        pairs = list(zip(one.strengths, one.partners, strict=True))
        cells = [
            "–" if partner is None else f"{strength:.2f} ({partner})"
            for place, (strength, partner) in enumerate(pairs)
            if place != found.shown
        ]
        count = sum(strength > found.threshold for strength in one.strengths) - 1
        words = "in all" if one.returns else f"in {count} of {len(others)}"
        latents.add_row(str(one.latent), words, f"{one.lowest:.2f}", *cells)
    printer().print(latents)
    say(f"A latent returns where |{relation} correlation| > {found.threshold:.2f}.")
    say(
        f"Space: {found.space:.3f} of the variance of a run's latents is linear in another's (chance "
        f"{found.space_chance:.3f})."
    )
    for note in found.notes:
        say(f"Note: {note}")
    if csv is not None:
        files.write_text(csv, found.to_csv())
        say(f"The latents of all runs are in {csv}")


def print_table(
    found: Table,
    format: str | None,
    out: Path | None,
    where: list[str],
    columns: str,
    over_seeds: bool,
    sql: str | None = None,
    compare: str | None = None,
    layout: Layout | None = None,
    extremes: str = "",
) -> None:
    """Print a table, or write it into a file; with a layout, as a table for a paper."""
    from polariscope.cli.console import printer, say, table
    from polariscope.core.errors import check_word

    if extremes and (layout is not None or over_seeds or compare is not None):
        raise InputError(
            problem=(Argument("extremes"), " is about single runs"),
            remedy="leave out what is computed over several",
        )
    if layout is not None:
        if over_seeds or sql is not None or compare is not None:
            raise InputError(
                problem=(Argument("paper"), " is printed by itself"),
                remedy="leave the other ways to show the table out",
            )
        _print_for_paper(found.where(*where), format, out, _names(columns), layout)
        return
    if format is not None:
        check_word("format of a table", format, ("csv", "md", "parquet"))
    chosen = _selected(found, where, columns, extremes)
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


def _selected(found: Table, where: list[str], columns: str, extremes: str = "") -> Table:
    """Some rows and columns; with extremes, also the column that they are chosen by and the one that says which."""
    chosen = found.where(*where)
    names = _names(columns)
    if extremes:
        from polariscope.studies.extremes import RESTART
        from polariscope.studies.extremes import extremes as best_and_worst

        chosen = best_and_worst(chosen, extremes)
        names = [RESTART, extremes, *names] if names else []
    return chosen.only(names) if names else chosen


def _names(words: str) -> list[str]:
    return [name.strip() for name in words.split(",") if name.strip()]


def layout_for_paper(paper: bool, layout: Layout) -> Layout | None:
    """The layout where a table for a paper is wished for; a layout without that wish is refused."""
    if not paper and layout != Layout():
        raise InputError(
            problem="a layout is for a table for a paper", remedy=("add ", Argument("paper", True))
        )
    return layout if paper else None


def _print_for_paper(
    found: Table, format: str | None, out: Path | None, columns: list[str], layout: Layout
) -> None:
    """Settings in rows, metrics in columns, mean ± deviation."""
    from polariscope.cli.console import say
    from polariscope.core import files
    from polariscope.core.errors import check_word
    from polariscope.studies.summary import summary_table

    ending = "md" if out is None else {"tex": "latex"}.get(out.suffix[1:], out.suffix[1:])
    chosen = format or ending
    check_word("format of a table for a paper", chosen, ("latex", "md"))
    made = summary_table(
        found,
        columns,
        across=_names(layout.across),
        best_over=layout.best_over,
        metrics_in_rows=layout.metrics_in_rows,
        digits=layout.digits,
    )
    text = made.to_latex() if chosen == "latex" else made.to_markdown()
    if out is None:
        typer.echo(text, nl=False)
    else:
        files.write_text(out, text)
        say(f"The table is in {out}")


def _print_comparisons(chosen: Table, text: str) -> None:
    """Two values of a setting side by side, paired by seed and all else."""
    from polariscope.cli.console import printer, say, table
    from polariscope.studies.table import shown

    setting, _, values = text.partition("=")
    pair = [value.strip() for value in values.split(",")]
    if len(pair) != 2 or not all(pair):
        raise InputError("compare", "be SETTING=A,B with two values of the setting", got=f"{text!r}")
    comparisons = chosen.comparisons(setting.strip(), *pair)
    headers = ["column", "pairs", "mean difference", "± SD", "95 % (t)", "95 % (bootstrap)", "higher in"]
    divided = any(one.settings for one in comparisons)
    printed = table(*(["settings"] if divided else []), *headers, numbers=tuple(headers[1:4]))
    for one in comparisons:
        ends = [
            "" if found is None else f"{found[0]:.3g} to {found[1]:.3g}" for found in (one.t, one.bootstrap)
        ]
        cells = [one.column, str(one.n), shown(one.difference), shown(one.sd), *ends]
        where = [_in_words(one.settings) or "all"] if divided else []
        printed.add_row(*where, *cells, f"{one.higher} of {one.n}")
    printer().print(printed)
    meant = (comparisons[0].first, comparisons[0].second)
    first, second = (f"{setting}={shown(value) or typed}" for value, typed in zip(meant, pair, strict=True))
    say(f"Differences are {second} minus {first}, over runs that are equal in all else.")
    for note in chosen.left_out:
        say(note)


def _in_words(settings: Mapping[str, object]) -> str:
    from polariscope.studies.table import shown

    return ", ".join(f"{name}={shown(value)}" for name, value in settings.items())


def _print_aggregates(aggregates: list[Aggregate]) -> None:
    from polariscope.cli.console import printer, table

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
        spread = "" if one.sd is None else f"{one.sd:.3g}"
        cells: list[Any] = [_in_words(one.settings), one.column, str(one.n), f"{one.mean:.4g}", spread]
        cells += [
            "" if found is None else f"{found[0]:.3g} to {found[1]:.3g}" for found in (one.t, one.bootstrap)
        ]
        printed.add_row(*cells, one.lowest, one.median, one.highest)
    printer().print(printed)
