"""``polariscope report``: all results of a run on one page."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from polariscope.cli.app import ModelInput, ModelTarget, Targets, open_target
from polariscope.cli.command import Flag, FlagsOf, command, explicit_options
from polariscope.core.errors import Argument, InputError
from polariscope.core.options import checked
from polariscope.core.text import file_size

if TYPE_CHECKING:
    from polariscope.analysis.code_view import CodeView
    from polariscope.analysis.regime.rule import TypeRule
    from polariscope.data.observations import Observations


@checked
@dataclasses.dataclass(frozen=True)
class ReportOptions:
    """Options of ``polariscope report`` beyond the rule and the observations."""

    show: Annotated[tuple[str, ...], Flag("NAME", repeated=True)] = ()
    """File name of a result to show instead of the most recently used one; can be repeated."""
    out: Annotated[Path, Flag("FILE", default="in the run's folder, or next to the file")] | None = None
    """File to write."""


NEWEST = dict.fromkeys(
    ("n_samples", "alpha", "seed", "part"), "that of the most recently used diagnosis, otherwise {default}"
)
"""Options whose defaults are those of the most recently used diagnosis."""


@command(
    rule=FlagsOf("polariscope.analysis.regime.rule.TypeRule", only=("alpha",), shown=NEWEST),
    view="polariscope.analysis.code_view.CodeView",
    observations=FlagsOf("polariscope.data.observations.Observations", shown=NEWEST),
    options=ReportOptions,
    foreign=ModelInput,
)
def report(
    context: typer.Context,
    runs: Targets,
    rule: TypeRule,
    view: CodeView,
    observations: Observations,
    options: ReportOptions,
    foreign: ModelInput,
) -> None:
    """Write an HTML report on a run, on a model with --data, or on codes from any library.

    The page shows the most recently used diagnosis, decomposition, scores, comparison and course; other results are
    listed at its end. With --samples, --alpha, --seed or --part it shows the diagnosis with these settings. The report
    on a FILE.npz with mean and variance (or log_variance) has the sections that require only these arrays. Codes of
    shape (sample, channel, height, width) are shown per channel; --per value treats each value as a latent.
    """
    from polariscope.pages.report import report as write_report

    if options.out is not None and len(runs) > 1:
        raise InputError(
            problem=(Argument("out"), f" is one file, got {len(runs)} runs"),
            remedy="leave it out: each report is written to its run's folder",
        )
    named = explicit_options(context)
    opened = [open_target(run, named, foreign) or run for run in runs]  # refuses options that do not apply
    values: dict[str, Any] = {**observations.options(), "alpha": rule.alpha, "per": view.per}
    # Options that were not set take the values of the newest diagnosis, not their defaults.
    explicit = {name: value for name, value in values.items() if name in named}
    for run in opened:
        if isinstance(run, ModelTarget):
            out = options.out or Path(f"{run.path.stem}.html")
            say_report(write_report(run.model, run.data, out=out, **explicit))
        else:
            say_report(write_report(run, out=options.out, show=options.show, **explicit))


def say_report(file: Path) -> None:
    """Print the path and the size of a report."""
    # typer.echo, because importing rich for one line is slow.
    typer.echo(f"The report is in {file} ({file_size(file.stat().st_size)}); open it in a browser.")
