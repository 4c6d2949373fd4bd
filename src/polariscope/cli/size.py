"""``polariscope size``: estimate the number of latents that a dataset needs."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Annotated, Unpack

import typer

from polariscope.cli.command import Flag, command
from polariscope.cli.data import TrainingData
from polariscope.cli.size_progress import SizeProgress
from polariscope.cli.size_search import (
    RECORDS,
    SearchRecords,
    SizeCommand,
    announced,
    interruptible,
    prepare,
    print_answer,
)
from polariscope.core.errors import InputError
from polariscope.core.options import checked

if TYPE_CHECKING:
    from polariscope.cli.size_search import SearchOptions


@checked
@dataclasses.dataclass(frozen=True)
class SizeOptions:
    """Options of ``polariscope size`` beyond those of every search."""

    method: Annotated[str, Flag("NAME")] = "fondue"
    """Sizing method; see 'polariscope list sizing'."""

    def __post_init__(self) -> None:
        if "," in self.method:
            raise InputError(
                "method",
                "be one name",
                got=f"{self.method!r}",
                remedy="use 'polariscope size-compare' for several methods",
            )


@command(SizeCommand, options=SizeOptions, **RECORDS)
def size(
    context: typer.Context,
    source: TrainingData,
    options: SizeOptions,
    search: SearchOptions,
    **records: Unpack[SearchRecords],
) -> None:
    """Estimate how many latents a dataset needs.

    With --out models are saved, and the same command resumes an interrupted search. If an option of the data and one of
    the model have the same name, add the part as a prefix: --data-seed. See also size-compare (several methods),
    size-curve (models with different numbers of latents), size-table (published searches over seeds) and size-beta (the
    largest β).
    """
    from polariscope.sizing.size import size as find_size

    with interruptible(search.out):
        job = prepare(context, source, [options.method], search=search, **records)
        chosen = announced(job, options.method)
        with SizeProgress(quiet=search.quiet, chosen=chosen) as progress:
            answer = find_size(job.data, options.method, progress=progress, **job.options)
    print_answer(job, answer, quiet=search.quiet)
