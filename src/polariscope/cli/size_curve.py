"""``polariscope size-curve``: results of models as a function of the number of latents."""

from __future__ import annotations

import dataclasses
import shlex
from typing import TYPE_CHECKING, Annotated, Unpack

import typer
from annotated_types import Ge

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
from polariscope.core.options import checked

if TYPE_CHECKING:
    from polariscope.data.observations import Subset
    from polariscope.sizing.curve import CurvePlan


@checked
@dataclasses.dataclass(frozen=True)
class CurveOptions:
    """Options of ``polariscope size-curve`` beyond those of every search."""

    n_latents: Annotated[tuple[Annotated[int, Ge(1)], ...], Flag("NUMBERS")]
    """Numbers of latents, ascending, separated by commas."""
    methods: Methods = ("fondue",)
    """Methods whose answers are shown with the curves, separated by commas."""


@command(
    SizeCommand,
    options=CurveOptions,
    subset=FlagsOf("polariscope.data.observations.Subset", only=("part",)),
    **{**RECORDS, "search": FlagsOf(SearchOptions, defaults={"seeds": 5})},
)
def size_curve(
    context: typer.Context,
    source: TrainingData,
    options: CurveOptions,
    subset: Subset,
    search: SearchOptions,
    **records: Unpack[SearchRecords],
) -> None:
    """Measure models with different numbers of latents.

    The results are loss, probes, variances, dimensions and types of latents. One model is trained for each number in
    --latents and each seed, always for --steps gradient steps (2,000 by default) or --epochs. With --out the results
    and a picture are written and models are saved, and the same command resumes an interrupted search.
    """
    from polariscope.cli.console import say
    from polariscope.sizing.curve import size_curve as measure_curve
    from polariscope.training.choices import announcement

    numbers, methods = list(options.n_latents), list(options.methods)
    with interruptible(search.out):
        job = prepare(context, source, methods, search=search, **records)
        with SizeProgress(quiet=search.quiet) as progress:

            def announce(plan: CurvePlan) -> None:
                length = (
                    f"Each of the {len(numbers) * search.seeds} models is trained for {plan.steps:,} gradient steps "
                    f"({plan.steps / plan.steps_per_epoch:.3g} passes over the training data); to change this, set "
                    "--steps or --epochs. Losses are computed on held-out samples, and results from codes on "
                    f"{plan.n_samples:,} samples ({plan.part})."
                )
                progress.chosen = "\n".join(filter(None, (announcement(plan.chosen, MODEL_FLAGS), length)))

            curve = measure_curve(
                job.data,
                numbers,
                methods=methods,
                part=subset.part,
                progress=progress,
                announce=announce,
                **job.options,
            )
    say(str(curve))
    for answer in curve.answers:
        for note in dict.fromkeys(answer.notes):  # seeds can give the same note
            say(f"Note: {answer.method}: {note}")
    if search.out is not None:
        from polariscope.pages.size_curve import write_curve_picture

        picture = write_curve_picture(search.out, curve)
        say(f"The results are in {shlex.quote(str(picture.with_suffix('.csv')))}, the picture is {picture}.")
