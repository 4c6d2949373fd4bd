"""``polariscope size-table``: table of sizing searches over seeds, in the layout of papers."""

from __future__ import annotations

import dataclasses
from typing import Annotated, Unpack

import typer

from polariscope.cli.command import Flag, FlagsOf, command
from polariscope.cli.data import TrainingData
from polariscope.cli.size_progress import SizeProgress
from polariscope.cli.size_search import (
    RECORDS,
    Methods,
    SearchOptions,
    SearchRecords,
    SizeCommand,
    interruptible,
    prepare,
)
from polariscope.cli.train import MODEL_FLAGS
from polariscope.core.errors import InputError
from polariscope.core.options import checked


@checked
@dataclasses.dataclass(frozen=True)
class TableOptions:
    """Options of ``polariscope size-table`` beyond those of every search."""

    methods: Methods = ()
    """Methods, separated by commas. By default, the published searches."""
    starts: Annotated[tuple[str, ...], Flag("NUMBERS", default="dimension, that of the data")] = ()
    """Initial numbers of latents, separated by commas."""
    strengths: Annotated[str, Flag("OPTION=VALUES")] | None = None
    """Values of one option of the models, for example beta=0.5,2,4."""


@command(
    SizeCommand,
    options=TableOptions,
    **{**RECORDS, "search": FlagsOf(SearchOptions, defaults={"seeds": 10})},
)
def size_table(
    context: typer.Context,
    source: TrainingData,
    options: TableOptions,
    search: SearchOptions,
    **records: Unpack[SearchRecords],
) -> None:
    """Tabulate sizing searches over seeds, as in papers.

    The columns are the number of latents (mean ± deviation over seeds), time, models and epochs. With --out the table
    is written as Markdown, LaTeX and CSV and models are saved, and the same command resumes an interrupted search.
    """
    from polariscope.cli.console import say
    from polariscope.studies.size_table import DIMENSION, published_methods
    from polariscope.studies.size_table import size_table as make_table
    from polariscope.training.choices import announcement

    methods = options.methods or published_methods()
    with interruptible(search.out):
        job = prepare(context, source, methods, search=search, **records)
        with SizeProgress(quiet=search.quiet) as progress:

            def announce(chosen: tuple[str, ...]) -> None:
                progress.chosen = announcement(chosen, MODEL_FLAGS)

            table = make_table(
                job.data,
                methods,
                starts=starts_in(options.starts) or (DIMENSION,),
                strengths=strengths_in(options.strengths),
                progress=progress,
                announce=announce,
                **job.options,
            )
    typer.echo(table.to_markdown(), nl=False)
    if search.out is not None:
        from polariscope.storage.search_folder import SearchFolder

        file = SearchFolder(search.out).table("md")
        say(
            f"The table is {file}; next to it are a table for LaTeX and a .csv file with a row for each search."
        )


def starts_in(tokens: tuple[str, ...]) -> list[int | str]:
    """Parse initial numbers of latents; "dimension" is the dimension of the data.

    >>> starts_in(("dimension", " 5", "19"))
    ['dimension', 5, 19]
    """
    return [int(word) if word.strip().isdigit() else word.strip() for word in tokens]


def strengths_in(text: str | None) -> dict[str, list[float]] | None:
    """Parse one option and its values.

    >>> strengths_in("beta=0.5,2"), strengths_in("lambda-od=1")
    ({'beta': [0.5, 2.0]}, {'lambda_od': [1.0]})
    """
    if text is None:
        return None
    name, _, values = text.partition("=")
    try:
        numbers = [float(value) for value in values.split(",")]
    except ValueError:
        raise InputError(
            "strengths", "be an option, an equals sign, and numbers joined by commas", got=f"{text!r}"
        ) from None
    return {name.strip().removeprefix("--").replace("-", "_"): numbers}
