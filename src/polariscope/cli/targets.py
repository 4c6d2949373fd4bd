"""What a command is pointed at: the folder of a run, or a file of codes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from polariscope.core.errors import InputError

SAMPLES = 10_000
"""Observations of a run that are encoded unless a number is given."""
Step = Annotated[
    int | None,
    typer.Option(help="The checkpoint of this step, for a run. [the finished model]", min=1),
]


def check_file(target: Path, samples: int | None, step: int | None) -> None:
    """Refuse, of a target that is no run, what is not there and options that mean nothing to a file."""
    from polariscope.cli.console import quoted

    if not target.exists():
        raise InputError(
            f"there is no run and no file at {target}; "
            f"train a model with 'polariscope train DATA --out {quoted(target)}'."
        )
    if samples is not None:
        raise InputError(f"--samples is for runs; of a file like {target} every row is used. Leave it out.")
    if step is not None:
        raise InputError(f"--step is for runs; a file like {target} has no checkpoints. Leave it out.")
