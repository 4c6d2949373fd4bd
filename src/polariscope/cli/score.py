"""``polariscope score``: disentanglement metrics and probes."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

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
from polariscope.cli.config import MemberOptions, settings_of
from polariscope.core.errors import Argument, InputError, PolariscopeError
from polariscope.core.options import checked
from polariscope.core.tables import TextTable
from polariscope.core.text import number, plural

if TYPE_CHECKING:
    from polariscope.analysis.metrics import Score, Scores
    from polariscope.core.progress import Progress, ProgressEvent
    from polariscope.data.observations import Observations
    from polariscope.runs.run import Run


WITHOUT_VARIANCE = {"mean", "sampled", "factors", "factor_names", "factor_kinds", "ids", "indices"}
"""Arrays that a file without variances can contain."""


@checked
@dataclasses.dataclass(frozen=True)
class ScoreOptions:
    """Options of ``polariscope score`` beyond the observations and those of metrics."""

    metrics: str = "all"
    """all, or names separated by commas; a variant follows a colon: mig,dci:lasso."""
    source: str = "mean"
    """Codes to score: mean or sampled."""
    latents: Literal["all", "in-use", "both"] = "both"
    """Latents to score: all, those in use, or both, in two tables."""
    pool: Literal["none", "mean"] = "none"
    """Columns of codes with positions in a file: none for every value, mean for the mean over positions."""
    continuous: tuple[str, ...] = ()
    """Names of the factors in a file that are continuous, separated by commas; others are classes."""
    json: Annotated[Path, Flag("FILE")] | None = None
    """Also write all results to this file."""


@command(
    options=ScoreOptions,
    members=MemberOptions,
    observations="polariscope.data.observations.Observations",
    foreign=ModelInput,
)
def score(
    context: typer.Context,
    targets: Targets,
    options: ScoreOptions,
    members: MemberOptions,
    observations: Observations,
    foreign: ModelInput,
) -> None:
    """Compute disentanglement metrics and probes.

    The scores show how well the codes separate the factors and how well factors can be predicted from them. The scores
    of a run are cached: the same command reads them again, and scores with other settings are stored next to them. If
    there are several runs, each is scored, and 'polariscope table' compares them.

    A model that is not a run requires --data with factors. A FILE.npz from any library must contain the array mean of
    shape (sample, latent) or (sample, channel, height, width), and the array factors of shape (sample, factor). Some
    metrics also require variance (or log_variance), with the shape of mean. Optional arrays are factor_names, and
    factor_kinds with the values categorical, ordinal, cyclic or continuous.
    """
    from polariscope.cli.console import say
    from polariscope.cli.families import open_family
    from polariscope.core import files

    settings = settings_of("score", open_family("metrics"), members, metrics_in(options.metrics))
    runs = [open_target(target, explicit_options(context), foreign) for target in targets]
    records: dict[str, Any] = {}
    empty = []
    for target, run in zip(targets, runs, strict=True):
        say_target(target, targets)
        measured = measure(run or target, options, settings, observations)
        for scores in measured:
            print_scores(scores)
        say_use(measured, options)
        records[str(target)] = measured[0].to_dict()
        if len(measured) > 1:
            records[str(target)]["scores_in_use"] = measured[1].to_dict()
        if not measured[0].scores and measured[0].covered:
            empty.append(str(target))
        elif run is not None and not isinstance(run, ModelTarget):
            say_saved(run)
    if options.json is not None:
        files.write_json(options.json, records if len(targets) > 1 else records[str(targets[0])])
        say(f"All results are in {options.json}")
    if empty:
        where = f" of {', '.join(empty)}" if len(targets) > 1 else ""
        raise PolariscopeError(f"no metric{where} could be scored; the reasons are listed above.")
    suggest_next(targets, runs)


def metrics_in(text: str) -> set[str]:
    """Return the names of the metrics in the value of ``--metrics``, without their variants."""
    from polariscope.analysis.score import selected_metrics

    return {word.partition(":")[0] for word in selected_metrics(text)}


def measure(
    target: Path | Run | ModelTarget,
    options: ScoreOptions,
    settings: dict[str, dict[str, object]],
    observations: Observations,
) -> list[Scores]:
    """Return the scores of a run or of the codes in a file: for all latents, for those in use, or for both.

    Scores for the latents in use are omitted if all latents are in use, or if it is not known which ones are.

    :param target: run, model or file.
    :param options: metrics, codes and latents.
    :param settings: options of metrics by name.
    :param observations: observations of a run.
    """
    from polariscope.cli.console import say

    def progress_of(latents: str) -> Progress:
        which = " (latents in use)" if latents == "in-use" else ""

        def progress(event: ProgressEvent) -> None:
            say(f"{event}{which}", errors=True)

        return progress

    measured = [name.strip() for name in options.continuous if name.strip()]
    if not isinstance(target, Path) and measured:
        raise InputError(
            problem=(Argument("continuous"), " requires a file"),
            remedy="leave it out: the dataset of a run defines the kinds of its factors",
        )
    if not isinstance(target, Path | ModelTarget):
        run = target

        def scores_of(latents: str) -> Scores:
            return run.scores(
                options.metrics,
                options.source,
                latents=latents,
                options=settings,
                progress=progress_of(latents),
                **observations.options(),
            )

    else:
        from polariscope.analysis.score import score as score_codes

        seed = observations.seed
        if isinstance(target, ModelTarget):
            from polariscope.runs.encode import encode

            codes: Any = encode(target.model, target.data, observations.n_samples, seed)
            known: dict[str, Any] = {}
        else:
            codes, known = _open_file(target, measured, options.source, seed)

        def scores_of(latents: str) -> Scores:
            return score_codes(
                codes,
                options.metrics,
                seed,
                options=settings,
                source=options.source,
                latents=latents,
                progress=progress_of(latents),
                pool=options.pool,
                **known,
            )

    if options.latents != "both":
        return [scores_of(options.latents)]
    scores = scores_of("all")
    is_other = scores.in_use is not None and len(scores.in_use) < scores.n_latents
    return [scores, scores_of("in-use")] if is_other else [scores]


def say_use(measured: list[Scores], options: ScoreOptions) -> None:
    """Print the reason if ``--latents both`` gave only one table.

    :param measured: scores of one run or file.
    :param options: options of the command.
    """
    from polariscope.cli.console import say

    if options.latents != "both" or len(measured) > 1:
        return
    if measured[0].in_use is None:
        say("Without variances it is not known which latents are in use, so all latents are scored.")
    else:
        say("All latents are in use, so there is only one table.")


def _open_file(target: Path, measured: list[str], source: str, seed: int) -> tuple[Any, dict[str, Any]]:
    """Return the codes of a file with variances, or the array and its factors from a file without variances."""
    from polariscope.analysis.code_files import codes_from_arrays
    from polariscope.data.codes import read_code_arrays

    arrays = read_code_arrays(target)
    factors = arrays.get("factors")
    names = tuple(map(str, arrays.get("factor_names", ())))
    kinds = tuple(map(str, arrays.get("factor_kinds", ())))
    known: dict[str, Any] = {"factor_kinds": _kinds(factors, names, kinds, measured)}
    if "mean" in arrays and set(arrays) <= WITHOUT_VARIANCE:
        if source in ("mean", "sampled") and source not in arrays:
            raise InputError(
                problem=(
                    Argument("source", source),
                    f" requires the array {source!r} in {target}, or variance to sample from",
                )
            )
        return arrays.get(source), {**known, "factors": factors, "factor_names": names}
    return codes_from_arrays(arrays, seed, where=str(target)), known


def _kinds(
    factors: Any, names: tuple[str, ...], kinds: tuple[str, ...], measured: list[str]
) -> list[str] | None:
    """Return the kinds of the factors: those in the file, or categorical, except for ``measured`` factors."""
    from polariscope.analysis.code_checks import named
    from polariscope.core.errors import unknown

    if not measured:
        return list(kinds) or None
    columns = named(names, factors.shape[1] if factors is not None and factors.ndim == 2 else 0)
    for name in measured:
        if name not in columns:
            raise unknown("factor", name, columns)
    known = kinds if len(kinds) == len(columns) else ("categorical",) * len(columns)
    return ["continuous" if name in measured else kind for name, kind in zip(columns, known, strict=True)]


def print_scores(scores: Scores) -> None:
    """Print a row for each metric, then the notes and the metrics that do not apply."""
    from polariscope.cli.console import printer, say

    if not scores.covered:
        say(
            f"The {scores.source} representation: no latent is in use, so there is no score for latents in use."
        )
        return
    what = f"{scores.coverage}, {plural(scores.n_samples, 'sample')}"
    factors = ", ".join(scores.factor_names) or "none"
    say(f"The {scores.source} representation: {what}; factors: {factors}.")
    headers = ("metric", "variant", "value", "95 %", "chance", "better", "range")
    shown = TextTable(*headers, numbers=("value", "95 %", "chance"))
    for word, score in scores.scores.items():
        shown.add_row(word.partition(":")[0], score.way, *_cells(score))
    if scores.scores:
        printer().print(shown)
    for metrics, note in scores.grouped_notes():
        say(f"Note ({', '.join(metrics)}): {note}" if metrics else f"Note: {note}")
    for metrics, reason in scores.grouped_reasons():
        say(f"Not scored ({', '.join(metrics)}): {reason}")


def _cells(score: Score) -> tuple[str, ...]:
    def ends(interval: tuple[float, float]) -> str:
        return " to ".join(number(end, whole=True) for end in interval)

    return (
        number(score.value, whole=True),
        "" if score.interval is None else ends(score.interval),
        "" if score.chance is None else number(score.chance, whole=True),
        "higher" if score.higher_is_better else "lower",
        ends(score.bounds),
    )
