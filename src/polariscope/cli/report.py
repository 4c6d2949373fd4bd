"""``polariscope report``: everything about a run on one page."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from polariscope.cli.app import Targets, open_target
from polariscope.cli.command import Flag, FlagsOf, command, given_in
from polariscope.core.errors import Argument, InputError
from polariscope.core.options import checked
from polariscope.core.text import file_size

if TYPE_CHECKING:
    from polariscope.analysis.regime.rule import TypeRule
    from polariscope.data.observations import Observations


@checked
@dataclasses.dataclass(frozen=True)
class ReportOptions:
    """Options of ``polariscope report`` beyond the rule and the observations."""

    show: Annotated[tuple[str, ...], Flag("NAME", repeated=True)] = ()
    """A result of the run to show instead of the newest, by its file; can be repeated."""
    out: Annotated[Path, Flag("FILE", default="in the run's folder, or next to the file")] | None = None
    """Where to write it."""


NEWEST = dict.fromkeys(("n_samples", "alpha", "seed", "part"), "as the newest diagnosis, otherwise {default}")
"""Options that are those of the newest diagnosis unless they are given."""


@command(
    rule=FlagsOf("polariscope.analysis.regime.rule.TypeRule", only=("alpha",), shown=NEWEST),
    observations=FlagsOf("polariscope.data.observations.Observations", shown=NEWEST),
    options=ReportOptions,
)
def report(
    context: typer.Context,
    runs: Targets,
    rule: TypeRule,
    observations: Observations,
    options: ReportOptions,
) -> None:
    """Write everything about a run, or about codes from any library, on one HTML page.

    The page shows the newest of each result: diagnosis, decomposition, scores, comparison, course. With --samples,
    --alpha, --seed or --part it shows the diagnosis with these settings. Other results are listed at its end. Of a
    FILE.npz with mean and variance (or log_variance) it shows what arrays allow.
    """
    from polariscope.pages.report import report as write_report

    if options.out is not None and len(runs) > 1:
        raise InputError(
            problem=(Argument("out"), f" is one file, and {len(runs)} reports are asked for"),
            remedy="leave it out: each is written into its run's folder",
        )
    named = given_in(context)
    opened = [open_target(run, named) or run for run in runs]  # refuses options that mean nothing to a file
    values: dict[str, Any] = {**observations.options(), "alpha": rule.alpha}
    chosen = {name: value for name, value in values.items() if name in named}
    for run in opened:
        tell_report(write_report(run, out=options.out, show=options.show, **chosen))


def tell_report(file: Path) -> None:
    """Where the report is, and how large."""
    # Plain, so what makes coloured tables is not opened for one line.
    typer.echo(f"The report is in {file} ({file_size(file.stat().st_size)}); open it in a browser.")
