"""``polariscope size-table``: what published searches answer over seeds, in the layout of papers."""

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
    """Methods joined by commas; none for the published searches."""
    starts: Annotated[tuple[str, ...], Flag("NUMBERS", default="dimension, that of the data")] = ()
    """First numbers of latents, joined by commas."""
    strengths: Annotated[str, Flag("OPTION=VALUES")] | None = None
    """Values of one option of the models, as beta=0.5,2,4."""


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
    """Print a table of searches: latents as mean ± deviation over seeds, time, models and epochs.

    With --out the table is written for Markdown, LaTeX and as CSV, and nothing is trained twice: the same command
    resumes an interrupted search.
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
                begin=progress.begin,
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
    """First numbers of latents as they are typed, "dimension" for that of the data.

    >>> starts_in(("dimension", " 5", "19"))
    ['dimension', 5, 19]
    """
    return [int(word) if word.strip().isdigit() else word.strip() for word in tokens]


def strengths_in(text: str | None) -> dict[str, list[float]] | None:
    """One option and its values as they are typed.

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
