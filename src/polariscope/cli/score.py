"""``polariscope score``: disentanglement metrics and probes of a run."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from polariscope.cli.app import Targets, open_target, say_kept, say_target, say_what_next
from polariscope.cli.command import Flag, command, given_in
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
"""Arrays of a file that is scored without variances."""


@checked
@dataclasses.dataclass(frozen=True)
class ScoreOptions:
    """Options of ``polariscope score`` beyond the observations and those of metrics."""

    metrics: str = "all"
    """all, or names joined by commas; a variant follows a colon: mig,dci:lasso."""
    source: str = "mean"
    """Codes to score: mean or sampled."""
    latents: Literal["all", "in-use", "both"] = "both"
    """Latents to score: all, those in use, or both, one table after the other."""
    continuous: tuple[str, ...] = ()
    """Factors of a file that are continuous, not classes: names joined by commas."""
    json: Annotated[Path, Flag("FILE")] | None = None
    """Also write everything to this file."""


@command(
    options=ScoreOptions,
    members=MemberOptions,
    observations="polariscope.data.observations.Observations",
)
def score(
    context: typer.Context,
    targets: Targets,
    options: ScoreOptions,
    members: MemberOptions,
    observations: Observations,
) -> None:
    """Score how well the codes separate and keep the factors.

    Of a run, some observations are encoded and the scores are cached with the model. Metrics that were scored before
    with the same settings are read, not computed; scores with other settings are stored next to them. Each of several
    runs is scored, and 'polariscope table' puts them side by side. A FILE.npz from any library holds mean and, for the
    metrics that need them, variance (or log_variance), both (sample, latent), and factors, (sample, factor); names in
    factor_names, and in factor_kinds categorical, ordinal, cyclic or continuous.
    """
    from polariscope.cli.console import say
    from polariscope.cli.families import open_family
    from polariscope.core import files

    if options.json is not None:
        files.check_target(options.json, "json")
    settings = settings_of("score", open_family("metrics"), members, metrics_in(options.metrics))
    runs = [open_target(target, given_in(context)) for target in targets]
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
        elif run is not None:
            say_kept(run)
    if options.json is not None:
        files.write_json(options.json, records if len(targets) > 1 else records[str(targets[0])])
        say(f"Everything is in {options.json}")
    if empty:
        where = f" of {', '.join(empty)}" if len(targets) > 1 else ""
        raise PolariscopeError(f"nothing{where} was scored (see the reasons above), so no file was written.")
    say_what_next(targets, runs)


def metrics_in(text: str) -> set[str]:
    """The metrics that words name, without their variants."""
    from polariscope.analysis.score import selected_metrics

    return {word.partition(":")[0] for word in selected_metrics(text)}


def measure(
    target: Path | Run,
    options: ScoreOptions,
    settings: dict[str, dict[str, object]],
    observations: Observations,
) -> list[Scores]:
    """Return the scores of a run, cached with it, or of the codes in a file: of all latents, of those in use, or both.

    Scores of the latents in use are left out if these are all latents, or if nobody knows which they are.

    :param target: the run or the file.
    :param options: what is scored.
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
    if not isinstance(target, Path):
        if measured:
            raise InputError(
                problem=(Argument("continuous"), " is for files"),
                remedy="a run's dataset says which factors are measured",
            )
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
                **known,
            )

    if options.latents != "both":
        return [scores_of(options.latents)]
    scores = scores_of("all")
    is_other = scores.in_use is not None and len(scores.in_use) < scores.n_latents
    return [scores, scores_of("in-use")] if is_other else [scores]


def say_use(measured: list[Scores], options: ScoreOptions) -> None:
    """Say why there is one table if both were asked for.

    :param measured: the scores of one run or file.
    :param options: what was asked for.
    """
    from polariscope.cli.console import say

    if options.latents != "both" or len(measured) > 1:
        return
    if measured[0].in_use is None:
        say("Which latents are in use is not known without variances, so all latents are scored.")
    else:
        say("All latents are in use, so the scores of the latents in use are the same.")


def _open_file(target: Path, measured: list[str], source: str, seed: int) -> tuple[Any, dict[str, Any]]:
    """The codes of a file with variances, or the array of one without."""
    from polariscope.analysis.codes import codes_from_arrays
    from polariscope.core import files

    arrays = files.read_arrays(target)
    factors = arrays.get("factors")
    names = tuple(map(str, arrays.get("factor_names", ())))
    kinds = tuple(map(str, arrays.get("factor_kinds", ())))
    known: dict[str, Any] = {"factor_kinds": _kinds(factors, names, kinds, measured)}
    if "mean" in arrays and set(arrays) <= WITHOUT_VARIANCE:
        if source in ("mean", "sampled") and source not in arrays:
            raise InputError(
                problem=(
                    Argument("source", source),
                    f" needs {source!r} in {target}, or variance to draw it from",
                )
            )
        return arrays.get(source), {**known, "factors": factors, "factor_names": names}
    return codes_from_arrays(arrays, seed, where=str(target)), known


def _kinds(
    factors: Any, names: tuple[str, ...], kinds: tuple[str, ...], measured: list[str]
) -> list[str] | None:
    """Kinds of the factors: as in the file, or categorical, but for those that are said to be measured."""
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
    """A row for each metric, then what does not apply and what to read with care."""
    from polariscope.cli.console import printer, say

    if not scores.covered:
        say(f"The {scores.source} representation: no latent is in use, so the latents in use have no score.")
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
    for word, reason in scores.not_applicable.items():
        say(f"Not scored, {word}: {reason}")


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
