"""``polariscope course``: results at every checkpoint of a run."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from annotated_types import Ge

from polariscope.cli.app import report_command, say_saved
from polariscope.cli.command import Flag, FlagsOf, command
from polariscope.core.errors import Call, InputError
from polariscope.core.options import checked

if TYPE_CHECKING:
    from polariscope.analysis.regime.rule import TypeRule
    from polariscope.data.observations import Subset


@checked
@dataclasses.dataclass(frozen=True)
class CourseOptions:
    """Options of ``polariscope course`` beyond the rule and the observations."""

    latent: Annotated[int, Ge(0), Flag(default="the one with the largest KL")] | None = None
    """Latent whose correlations with the other latents are tracked."""
    layers: bool = False
    """Also compute the intrinsic dimension of every layer, and its similarity with the same layer at the last step."""
    against: Annotated[Path, Flag("RUN")] | None = None
    """Another run on the same data; layers are also compared with its finished model."""
    measure: str = "cka"
    """Similarity measure for layers; see 'polariscope list similarity'."""
    steps: Annotated[tuple[int, ...], Flag("STEPS", default="all checkpoints")] = ()
    """Steps of the checkpoints to use, separated by commas."""
    n_layer_samples: Annotated[int, Ge(2)] = 1000
    """Number of observations for the comparison of layers."""
    csv: Annotated[Path, Flag("FILE")] | None = None
    """Also write all results to this file, with a row for each step."""


@command(
    options=CourseOptions,
    rule=FlagsOf("polariscope.analysis.regime.rule.TypeRule", only=("alpha",)),
    subset="polariscope.data.observations.Subset",
)
def course(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a finished or unfinished run.")],
    options: CourseOptions,
    rule: TypeRule,
    subset: Subset,
) -> None:
    """Track types, KL and layers over the checkpoints of a run.

    The results are types of latents, KL, Δ_KL, correlations and, with --layers, results for each layer. A run keeps
    only its last two checkpoints unless it is trained with --keep-checkpoints all. The results of each checkpoint are
    cached immediately, so after an interruption or more training only missing results are computed. The report shows
    the most recently used course.
    """
    from polariscope.cli.console import say, say_next
    from polariscope.core import files
    from polariscope.core.progress import PercentLine
    from polariscope.runs.run import Run

    for folder in (run, *([] if options.against is None else [options.against])):
        if not folder.exists():
            raise InputError(
                problem=f"there is no run at {folder}",
                remedy=("train one with ", Call("train", "data", out=str(folder))),
            )
    opened = Run(run)
    with PercentLine(f"{opened.name}: measuring checkpoints") as progress:
        result = opened.course(
            options.latent,
            steps=list(options.steps) or None,
            layers=options.layers,
            against=options.against,
            measure=options.measure,
            n_layer_samples=options.n_layer_samples,
            alpha=rule.alpha,
            **dataclasses.asdict(subset),
            progress=progress,
        )
    # An unfinished run is judged by its last checkpoint.
    step = None if opened.is_finished else opened.steps[-1]
    for line in opened.verdict(**dataclasses.asdict(subset), step=step).lines:
        say(line)
    say(f"{result}\n")
    if options.csv is not None:
        files.write_text(options.csv, result.to_csv())
        say(f"All results are in {options.csv}")
    say_saved(opened)
    say_next((report_command(opened), "the curves, in the report of the run"))
