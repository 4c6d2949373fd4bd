"""``polariscope report``: everything about a run on one page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from polariscope.cli.app import Step, open_target
from polariscope.core.errors import Argument, InputError


def report(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN|FILE.npz…", help="Folders of runs, or codes.")],
    samples: Annotated[
        int | None,
        typer.Option(help="Observations to diagnose. [as the newest diagnosis, else 10000]", min=2),
    ] = None,
    alpha: Annotated[
        float | None,
        typer.Option(help="Tolerance of the rule, 0 to 0.5. [as the newest diagnosis, else 0.1]"),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Which observations. [as the newest diagnosis, else 0]")
    ] = None,
    part: Annotated[
        str | None,
        typer.Option(help="Of a run: all, train, validation or test. [as the newest diagnosis, else all]"),
    ] = None,
    step: Step = None,
    show: Annotated[
        list[str] | None,
        typer.Option(
            help="A file kept with the run to show instead of the newest; again for more.", metavar="NAME"
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Where to write it. [in the run's folder, or beside the file]", metavar="FILE"),
    ] = None,
) -> None:
    """Write everything about a run, or about codes from any library, on one HTML page.

    The page shows the newest of each thing that was measured: diagnosis, decomposition, scores, comparison, course.
    With --samples, --alpha, --seed or --part it shows the diagnosis with these settings. What else is kept is
    listed at its end. Of a FILE.npz with mean and variance (or log_variance) it shows what arrays allow.
    """
    from polariscope.pages.report import report as write_report

    if out is not None and len(runs) > 1:
        raise InputError(
            problem=(Argument("out"), f" is one file, and {len(runs)} reports are asked for"),
            remedy="leave it out: each is written into its run's folder",
        )
    for run in runs:
        open_target(run, samples, step, part or "all")  # refuses options that mean nothing to a file
    asked = {"n_samples": samples, "alpha": alpha, "seed": seed, "part": part}
    given = {name: value for name, value in asked.items() if value is not None}
    for run in runs:
        tell_report(write_report(run, out=out, step=step, show=show or (), **given))  # type: ignore[arg-type]


def tell_report(file: Path) -> None:
    """Where the report is, and how large."""
    # Plain, so what makes coloured tables is not opened for one line.
    typer.echo(f"The report is in {file} ({file.stat().st_size / 1e6:.1f} MB); open it in a browser.")
