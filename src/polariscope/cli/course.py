"""``polariscope course``: a run followed through its checkpoints."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from polariscope.cli.app import SAMPLES, Part, say_kept
from polariscope.core.errors import Call, InputError


def course(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run, finished or not.")],
    latent: Annotated[
        int | None,
        typer.Option(
            help="The latent whose correlations with the others are followed. [that of the largest KL]", min=0
        ),
    ] = None,
    layers: Annotated[
        bool,
        typer.Option(
            "--layers",
            help="Also the intrinsic dimension of every layer and its similarity with its last state.",
        ),
    ] = False,
    against: Annotated[
        Path | None,
        typer.Option(
            help="Another run on the same data: layers are compared with its finished model too.",
            metavar="RUN",
        ),
    ] = None,
    measure: Annotated[
        str, typer.Option(help="How layers are compared: one of 'polariscope list similarity'.")
    ] = "cka",
    steps: Annotated[
        str, typer.Option(help="Only these steps, joined by commas. [all that were kept]", metavar="STEPS")
    ] = "",
    samples: Annotated[int, typer.Option(help="Observations to encode.", min=2)] = SAMPLES,
    layer_samples: Annotated[
        int, typer.Option(help="How many of them layers are looked at with.", min=2)
    ] = 1000,
    alpha: Annotated[
        float, typer.Option(help="Tolerance of the rule that names types, between 0 and 0.5.")
    ] = 0.1,
    seed: Annotated[
        int, typer.Option(help="Seed of the observations and of the noise of the sampled codes.")
    ] = 0,
    part: Part = "all",
    csv: Annotated[
        Path | None, typer.Option(help="Also write all numbers here, a row for each step.", metavar="FILE")
    ] = None,
) -> None:
    """Follow a run through its checkpoints: types, KL, Δ_KL, correlations, and its layers.

    A run keeps its last two checkpoints unless it is trained with --keep-checkpoints all. Each is encoded once, and
    what was measured is kept at once: after an interruption, or more training, only what is missing is measured. The
    report shows the course that was asked for last.
    """
    from polariscope.cli.console import quoted, say, say_next
    from polariscope.core import files
    from polariscope.core.progress import shown_progress
    from polariscope.runs.run import Run

    if csv is not None:
        files.check_target(csv, "csv")
    for folder in (run, *([] if against is None else [against])):
        if not folder.exists():
            raise InputError(
                problem=f"there is no run at {folder}",
                remedy=("train one with ", Call("train", "data", out=str(folder))),
            )
    opened = Run(run)
    with shown_progress(f"{opened.name}: measuring checkpoints") as progress:
        found = opened.course(
            latent,
            steps=_numbers(steps),
            layers=layers,
            against=against,
            measure=measure,
            alpha=alpha,
            n_samples=samples,
            n_layer_samples=layer_samples,
            seed=seed,
            part=part,
            progress=progress,
        )
    say(f"{found}\n")
    if csv is not None:
        files.write_text(csv, found.to_csv())
        say(f"All numbers are in {csv}")
    say_kept(opened)
    say_next((f"polariscope report {quoted(opened.path)}", "its curves, on the page of the run"))


def _numbers(words: str) -> list[int] | None:
    """The steps that are named, or None for all."""
    if not words.strip():
        return None
    try:
        return [int(word) for word in words.split(",")]
    except ValueError:
        raise InputError("steps", "be whole numbers joined by commas", got=f"{words!r}") from None
