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
    from polariscope.analysis.aggregate_posterior import AggregatePosterior
    from polariscope.analysis.code_view import CodeView, Per
    from polariscope.analysis.decomposition import Decomposition
    from polariscope.analysis.regime.regime import Regime
    from polariscope.analysis.regime.rule import TypeRule
    from polariscope.analysis.representation import Representation
    from polariscope.data.observations import Observations
    from polariscope.runs.run import Run


@checked
@dataclasses.dataclass(frozen=True)
class DiagnoseOptions:
    """Options of ``polariscope diagnose`` beyond the rule and the observations."""

    details: bool = False
    """Also print all the evidence: dependence, criteria, sensitivity to α."""
    aggregate: bool = False
    """Also print the aggregate posterior: mean, SD and scale factor of each latent, and its distance from the prior."""
    decompose: bool = False
    """Also decompose the KL into mutual information, total correlation and dimension-wise KL."""
    json: Annotated[Path, Flag("FILE")] | None = None
    """Also write all results to this file."""


@command(
    rule="polariscope.analysis.regime.rule.TypeRule",
    view="polariscope.analysis.code_view.CodeView",
    observations="polariscope.data.observations.Observations",
    options=DiagnoseOptions,
    foreign=ModelInput,
)
def diagnose(
    context: typer.Context,
    targets: Targets,
    rule: TypeRule,
    view: CodeView,
    observations: Observations,
    options: DiagnoseOptions,
    foreign: ModelInput,
) -> None:
    """Show whether a model converged and which latents it uses.

    The first lines are the verdict: whether training has converged, and how many latents are in use. A table with the
    type and use of each latent follows; --details shows all the evidence. The diagnosis of a run is cached: the same
    command reads it again, and results with other settings are stored next to it. If there are several runs, each is
    diagnosed, and 'polariscope table' compares them.

    A model that is not a run, such as an .onnx file or a folder of diffusers, requires --data. A FILE.npz from any
    library must contain the arrays mean and variance (or log_variance) of shape (sample, latent) or (sample, channel,
    height, width); it can also contain sampled and factors. A FILE.h5ad contains the codes in obsm. Codes with
    positions are diagnosed per channel; --per value treats each value as a latent. --decompose uses at most 5000
    observations.
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
        regime, decomposition = measure(
            run or target, rule, observations, decompose=options.decompose, per=view.per
        )
        print_regime(regime, details=options.details)
        if noise is not None:
            say(f"{noise.in_words}.")
        parts: dict[str, Any] = {}
        if options.aggregate:
            aggregate = aggregate_of(run or target, observations, view.per)
            say(f"\n{aggregate}\n")
            parts["aggregate"] = aggregate.to_dict()
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
    target: Path | Run | ModelTarget,
    rule: TypeRule,
    observations: Observations,
    *,
    decompose: bool,
    per: Per,
) -> tuple[Regime, Decomposition | None]:
    """Diagnose a run, with cached results, a model, or the arrays in a file.

    :param target: the run, model or file.
    :param rule: rule of types.
    :param observations: observations of a run or model.
    :param decompose: if True, also decompose the KL.
    :param per: unit of codes with several axes; those of a run have one.
    """
    rules = dataclasses.asdict(rule)
    if not isinstance(target, Path | ModelTarget):
        where = observations.options()
        parts = target.decomposition(**where) if decompose else None
        return target.regime(**rules, **where), parts
    from polariscope.analysis.decomposition import affordable_samples
    from polariscope.analysis.decomposition import decompose as decompose_codes
    from polariscope.analysis.regime.diagnose import diagnose as diagnose_codes

    seed = observations.seed
    codes = _codes(target, observations)
    decomposition = decompose_codes(codes, affordable_samples(codes), seed) if decompose else None
    return diagnose_codes(codes, **rules, seed=seed, per=per), decomposition


def _codes(target: Path | ModelTarget, observations: Observations) -> Representation:
    """Return the codes of a model, or those in a file."""
    if isinstance(target, ModelTarget):
        from polariscope.runs.encode import encode

        return encode(target.model, target.data, observations.n_samples, observations.seed)
    from polariscope.data.codes import open_codes

    return open_codes(target, observations.seed)


def aggregate_of(
    target: Path | Run | ModelTarget, observations: Observations, per: Per
) -> AggregatePosterior:
    """Return the aggregate posterior of a run, a model or the codes in a file, as its report shows it."""
    from polariscope.models.aggregate import aggregate_of_model

    if not isinstance(target, Path | ModelTarget):
        model, codes = target.model(observations.step), target.representation(**observations.options())
        return aggregate_of_model(codes, model, observations.seed)
    return aggregate_of_model(_codes(target, observations).viewed(per), None, observations.seed)
