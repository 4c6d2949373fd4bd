"""What a command is pointed at: the folder of a run, or a file of codes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from polariscope.core.errors import InputError

if TYPE_CHECKING:
    from polariscope.runs.run import Run

SAMPLES = 10_000
"""Observations of a run that are encoded unless a number is given."""
Step = Annotated[
    int | None,
    typer.Option(help="The checkpoint of this step, for a run. [the finished model]", min=1),
]


def open_target(target: Path, samples: int | None, step: int | None) -> Run | None:
    """The run in a folder; None for a file, of which options that mean nothing to it are refused."""
    from polariscope.cli.console import quoted

    if target.is_dir():
        from polariscope.runs.run import Run

        return Run(target)
    if not target.exists():
        raise InputError(
            f"there is no run and no file at {target}; "
            f"train a model with 'polariscope train DATA --out {quoted(target)}'."
        )
    if samples is not None:
        raise InputError(f"--samples is for runs; of a file like {target} every row is used. Leave it out.")
    if step is not None:
        raise InputError(f"--step is for runs; a file like {target} has no checkpoints. Leave it out.")
    return None


def say_kept(run: Run) -> None:
    """Where the results are, if they could be written."""
    from polariscope.cli.console import say

    if run.is_kept:
        say(f"Kept in {run.path}")
