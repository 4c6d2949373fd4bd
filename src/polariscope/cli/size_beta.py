"""``polariscope size-beta``: estimate the largest β for a number of latents."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Annotated, Unpack

import typer
from annotated_types import Ge

from polariscope.cli.command import Flag, command
from polariscope.cli.data import TrainingData
from polariscope.cli.size_progress import SizeProgress
from polariscope.cli.size_search import (
    MODEL,
    RECORDS,
    SearchRecords,
    SizeCommand,
    announced,
    interruptible,
    prepare,
    print_answer,
)
from polariscope.core.options import checked

if TYPE_CHECKING:
    from polariscope.cli.size_search import SearchOptions


@checked
@dataclasses.dataclass(frozen=True)
class BetaOptions:
    """Options of ``polariscope size-beta`` beyond those of every search."""

    n_latents: Annotated[int, Ge(1)]
    """Number of latents of the models."""
    method: Annotated[str, Flag("NAME")] = "fondue"
    """Sizing method; see 'polariscope list sizing'."""


@command(
    SizeCommand,
    options=BetaOptions,
    **{**RECORDS, "model": dataclasses.replace(MODEL, defaults={"objective": "beta"})},
)
def size_beta(
    context: typer.Context,
    source: TrainingData,
    options: BetaOptions,
    search: SearchOptions,
    **records: Unpack[SearchRecords],
) -> None:
    """Estimate the largest β that keeps all latents in use.

    The number of latents is that of --latents. With --out models are saved, and the same command resumes an
    interrupted search.
    """
    from polariscope.sizing.size import size as find_size

    with interruptible(search.out):
        job = prepare(context, source, [options.method], search=search, **records)
        chosen = announced(job, options.method, "beta", options.n_latents)
        with SizeProgress(quiet=search.quiet, chosen=chosen) as progress:
            answer = find_size(
                job.data,
                options.method,
                target="beta",
                n_latents=options.n_latents,
                progress=progress,
                **job.options,
            )
    print_answer(job, answer, quiet=search.quiet)
