"""``polariscope stability``: latents that recur when a model is retrained."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from polariscope.cli.app import ModelInput, ModelTarget, Targets, open_target
from polariscope.cli.command import Flag, FlagsOf, command, explicit_options
from polariscope.core.options import checked
from polariscope.core.tables import TextTable

if TYPE_CHECKING:
    from polariscope.analysis.stability import Stability
    from polariscope.data.observations import Observations


@checked
@dataclasses.dataclass(frozen=True)
class StabilityOptions:
    """Options of ``polariscope stability`` beyond the observations."""

    relation: Literal["spearman", "pearson"] = "spearman"
    """Type of correlation by which latents are matched."""
    pool: Literal["none", "mean"] = "none"
    """Values of channels with positions: none for all of them, mean for the mean over positions."""
    csv: Annotated[Path, Flag("FILE")] | None = None
    """Also write the latents of all runs to this file."""


@command(
    observations=FlagsOf("polariscope.data.observations.Observations", without=("part",)),
    options=StabilityOptions,
    foreign=ModelInput,
)
def stability(
    context: typer.Context,
    targets: Targets,
    observations: Observations,
    options: StabilityOptions,
    foreign: ModelInput,
) -> None:
    """Match latents across runs that differ only by seed.

    Shows which latents recur in every run, how consistent the runs are compared with chance, and which run is most
    representative. Codes from other libraries can be passed as .npz files with the arrays mean and variance (or
    log_variance) of the same observations.
    """
    from polariscope.cli.console import say
    from polariscope.core import files
    from polariscope.runs.stability_of_runs import stability as match_latents

    opened = [open_target(target, explicit_options(context), foreign) or target for target in targets]
    models = [each.model if isinstance(each, ModelTarget) else each for each in opened]
    data = next((each.data for each in opened if isinstance(each, ModelTarget)), None)
    result = match_latents(
        models, data, relation=options.relation, pool=options.pool, **observations.options()
    )
    print_stability(result, options.relation)
    if options.csv is not None:
        files.write_text(options.csv, result.to_csv())
        say(f"The latents of all runs are in {options.csv}")


def print_stability(result: Stability, relation: str) -> None:
    """Print the latents that recur in every run, and the most central run.

    :param result: the result.
    :param relation: name of the correlation.
    """
    from polariscope.cli.console import printer, say

    say(result.headline)
    numbers = (f"{result.unit}s in use", "agreement with others")
    runs = TextTable("run", *numbers, "", numbers=numbers)
    for index in sorted(range(len(result.names)), key=lambda index: -result.centrality[index]):
        mark = "most central" if index == result.central else ""
        runs.add_row(result.names[index], str(result.n_used[index]), f"{result.centrality[index]:.3f}", mark)
    printer().print(runs)
    say(result.answer)
    if result.of(result.shown):
        print_latents(result, relation)
    for note in result.notes:
        say(f"Note: {note}")


def print_latents(result: Stability, relation: str) -> None:
    """Print the latents of the model shown with their partners in the other models.

    :param result: the result.
    :param relation: name of the correlation.
    """
    from polariscope.analysis.code_view import in_units
    from polariscope.cli.console import printer, say

    others = [name for index, name in enumerate(result.names) if index != result.shown]
    heads = [f"in {name}" for name in others]
    latents = TextTable(
        *(result.unit, "recurs", "lowest", *heads),
        title=in_units(
            f"Latents of {result.names[result.shown]}: correlation with their partner in every other run",
            result.unit,
        ),
        numbers=(result.unit, "lowest", *heads),
    )
    for latent in sorted(result.of(result.shown), key=lambda latent: -latent.lowest):
        pairs = list(zip(latent.strengths, latent.partners, strict=True))
        cells = [
            "–" if partner is None else f"{strength:.2f} ({partner})"
            for index, (strength, partner) in enumerate(pairs)
            if index != result.shown
        ]
        # Without the correlation of the latent with itself, which is 1.
        count = sum(strength > result.threshold for strength in latent.strengths) - 1
        recurs = "in all" if latent.returns else f"in {count} of {len(others)}"
        latents.add_row(str(latent.latent), recurs, f"{latent.lowest:.2f}", *cells)
    printer().print(latents)
    say(f"A {result.unit} recurs in another run if |{relation} correlation| > {result.threshold:.2f}.")
    say(
        f"Space: a linear map from another run explains {result.space:.3f} of the variance of a run's {result.unit}s "
        f"(chance {result.space_chance:.3f})."
    )
