"""``polariscope report``: everything about a run on one page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def report(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a finished run.")],
    samples: Annotated[int, typer.Option(help="Observations to encode.", min=2)] = 10_000,
    alpha: Annotated[float, typer.Option(help="Tolerance of the rule, between 0 and 0.5.")] = 0.1,
    seed: Annotated[int, typer.Option(help="Which observations, and the noise of the sampled codes.")] = 0,
) -> None:
    """Write everything about a run on one HTML page."""
    from polariscope.pages.report import report as write_report

    tell_report(write_report(run, n_samples=samples, alpha=alpha, seed=seed))


def tell_report(file: Path) -> None:
    """Where the report is, and how large."""
    from polariscope.cli.console import say

    say(f"The report is in {file} ({file.stat().st_size / 1e6:.1f} MB); open it in a browser.")
