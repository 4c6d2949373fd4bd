"""``polariscope size-compare``: compare the answers of several sizing methods."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Unpack

import typer

from polariscope.cli.command import command
from polariscope.cli.data import TrainingData
from polariscope.cli.size_progress import SizeProgress
from polariscope.cli.size_search import (
    RECORDS,
    Methods,
    SearchRecords,
    SizeCommand,
    announced,
    interruptible,
    prepare,
    say_training,
    write_page_of,
)
from polariscope.core.options import checked

if TYPE_CHECKING:
    from polariscope.cli.size_search import SearchOptions


@checked
@dataclasses.dataclass(frozen=True)
class CompareOptions:
    """Options of ``polariscope size-compare`` beyond those of every search."""

    methods: Methods = ()
    """Methods, separated by commas. By default, one of each kind."""


@command(SizeCommand, options=CompareOptions, **RECORDS)
def size_compare(
    context: typer.Context,
    source: TrainingData,
    options: CompareOptions,
    search: SearchOptions,
    **records: Unpack[SearchRecords],
) -> None:
    """Compare the answers of several sizing methods.

    Each method estimates how many latents a dataset needs, and disagreements are shown. With --out each method saves
    its models in a separate folder, and the same command resumes an interrupted search.
    """
    from polariscope.cli.console import say
    from polariscope.cli.sizes import print_comparison
    from polariscope.sizing.checks import supported_options
    from polariscope.sizing.compare import COMPARED, compare_sizes

    with interruptible(search.out):
        job = prepare(context, source, options.methods or COMPARED, search=search, **records)
        first = options.methods[0] if options.methods else COMPARED[0]
        # Only the choices for the first method are announced.
        request = supported_options(first, job.request, options.methods or COMPARED)
        chosen = announced(dataclasses.replace(job, request=request), first)
        with SizeProgress(quiet=search.quiet, chosen=chosen) as progress:
            answers = compare_sizes(job.data, options.methods or None, progress=progress, **job.options)
    sizes = tuple(answers)
    if search.quiet:
        say("\n".join(f"{size.method}: {size.answer}" for size in sizes))
    else:
        print_comparison(sizes)
    write_page_of(job, sizes, quiet=search.quiet, compared=True)
    say_training(job, sizes[0], quiet=search.quiet, is_saved=False)
