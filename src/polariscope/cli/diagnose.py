"""``polariscope diagnose``: convergence, and the type and use of each latent."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from polariscope.cli.app import (
    ModelInput,
    ModelTarget,
    Targets,
    open_target,
    say_saved,
    say_target,
    suggest_next,
)
from polariscope.cli.command import Flag, command, explicit_options
from polariscope.core.options import checked

if TYPE_CHECKING:
    from polariscope.analysis.decomposition import Decomposition
    from polariscope.analysis.regime.regime import Regime
    from polariscope.analysis.regime.rule import TypeRule
    from polariscope.data.observations import Observations
    from polariscope.runs.run import Run


@checked
@dataclasses.dataclass(frozen=True)
class DiagnoseOptions:
    """Options of ``polariscope diagnose`` beyond the rule and the observations."""

    details: bool = False
    """Also print all the evidence: dependence, criteria, sensitivity to α."""
    decompose: bool = False
    """Also decompose the KL into mutual information, total correlation and dimension-wise KL."""
    json: Annotated[Path, Flag("FILE")] | None = None
    """Also write all results to this file."""


@command(
    rule="polariscope.analysis.regime.rule.TypeRule",
    observations="polariscope.data.observations.Observations",
    options=DiagnoseOptions,
    foreign=ModelInput,
)
def diagnose(
    context: typer.Context,
    targets: Targets,
    rule: TypeRule,
    observations: Observations,
    options: DiagnoseOptions,
    foreign: ModelInput,
) -> None:
    """Show whether a model converged and which latents it uses.

    The first lines are the verdict: whether training has converged, and how many latents are in use. A table with the
    type and use of each latent follows; --details shows all the evidence. The diagnosis of a run is cached: the same
    command reads it again, and results with other settings are stored next to it. If there are several runs, each is
    diagnosed, and 'polariscope table' compares them.

    A model of another library, an .onnx file or a folder of diffusers, requires --data. A FILE.npz from any library
    contains the arrays mean and variance (or log_variance), both (sample, latent), and optionally sampled and factors.
    A FILE.h5ad contains them in obsm. --decompose uses at most 5000 observations.
    """
    from polariscope.cli.console import say
    from polariscope.cli.diagnosis_output import print_regime
    from polariscope.core import files

    runs = [open_target(target, explicit_options(context), foreign) for target in targets]
    records: dict[str, Any] = {}
    for target, run in zip(targets, runs, strict=True):
        say_target(target, targets)
        # Read first: a damaged log is refused before anything is computed from it, cached or printed.
        noise = None if run is None or isinstance(run, ModelTarget) else run.noise(observations.step)
        regime, decomposition = measure(run or target, rule, observations, decompose=options.decompose)
        print_regime(regime, details=options.details)
        if noise is not None:
            say(f"{noise.in_words}.")
        parts: dict[str, Any] = {}
        if decomposition is not None:
            say(f"\n{decomposition}\n")
            parts["decomposition"] = decomposition.to_dict()
        records[str(target)] = {**regime.to_dict(), **parts}
        if run is not None and not isinstance(run, ModelTarget):
            say_saved(run)
    if options.json is not None:
        files.write_json(options.json, records if len(targets) > 1 else records[str(targets[0])])
        say(f"All results are in {options.json}")
    suggest_next(targets, runs)


def measure(
    target: Path | Run | ModelTarget, rule: TypeRule, observations: Observations, *, decompose: bool
) -> tuple[Regime, Decomposition | None]:
    """Diagnose a run, with cached results, a model, or the arrays in a file.

    :param target: the run, model or file.
    :param rule: rule of types.
    :param observations: observations of a run or model.
    :param decompose: if True, also decompose the KL.
    """
    rules = dataclasses.asdict(rule)
    if not isinstance(target, Path | ModelTarget):
        where = observations.options()
        parts = target.decomposition(**where) if decompose else None
        return target.regime(**rules, **where), parts
    from polariscope.analysis.decomposition import decompose as decompose_codes
    from polariscope.analysis.regime.diagnose import diagnose as diagnose_codes
    from polariscope.data.codes import open_codes

    seed = observations.seed
    if isinstance(target, ModelTarget):
        from polariscope.runs.encode import encode

        codes = encode(target.model, target.data, observations.n_samples, seed)
    else:
        codes = open_codes(target, seed)
    decomposition = decompose_codes(codes, seed=seed) if decompose else None
    return diagnose_codes(codes, **rules, seed=seed), decomposition
