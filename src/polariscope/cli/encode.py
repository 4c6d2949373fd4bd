"""``polariscope encode``: the codes of a run as a table."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from polariscope.cli.app import ModelInput, ModelTarget, Targets, open_target
from polariscope.cli.command import Flag, command, explicit_options
from polariscope.core.errors import Argument, InputError
from polariscope.core.options import checked
from polariscope.core.text import plural

if TYPE_CHECKING:
    from polariscope.analysis.representation import Representation
    from polariscope.data.observations import Observations


@checked
@dataclasses.dataclass(frozen=True)
class EncodeOptions:
    """Options of ``polariscope encode`` beyond the observations."""

    csv: Annotated[Path, Flag("FILE", default="codes.csv")] = Path("codes.csv")
    """Table to write, with a named row for each observation and a column for each latent."""
    all: bool = False
    """Write every latent, not only those in use."""
    sampled: bool = False
    """Write one sample from each posterior instead of its mean."""


@command(observations="polariscope.data.observations.Observations", options=EncodeOptions, foreign=ModelInput)
def encode(
    context: typer.Context,
    targets: Targets,
    observations: Observations,
    options: EncodeOptions,
    foreign: ModelInput,
) -> None:
    """Write the codes of a run, of a model with --data, or of a FILE.npz to a table.

    The codes are posterior means of the latents in use. Rows are named after the observations. By default, they are a
    random choice of 10,000 observations; with --samples none they are all observations in the order of the data.
    Columns are named after the index of the latent, for example latent_3.
    """
    from polariscope.analysis.regime.diagnose import diagnose
    from polariscope.cli.console import say
    from polariscope.core import files
    from polariscope.data.codes import open_codes

    if len(targets) > 1:
        raise InputError(
            problem=(Argument("csv"), f" is one file, got {len(targets)} runs"),
            remedy="pass one run",
        )
    run = open_target(targets[0], explicit_options(context), foreign)
    if isinstance(run, ModelTarget):
        from polariscope.runs.encode import encode as encode_data

        codes = encode_data(run.model, run.data, observations.n_samples, observations.seed)
        regime = diagnose(codes, seed=observations.seed)
    elif run is None:
        codes = open_codes(targets[0], observations.seed)
        regime = diagnose(codes, seed=observations.seed)
    else:
        codes = run.representation(**observations.options())
        regime = run.regime(**observations.options())
    latents = list(range(regime.n_latents)) if options.all else regime.select("in-use")
    for line in regime.verdict.lines:
        say(line)
    if not latents:
        raise InputError(
            problem="no latent is in use, so there are no codes to write",
            remedy=("write every latent with ", Argument("all", True)),
        )
    files.write_text(options.csv, codes_as_csv(codes, latents, sampled=options.sampled))
    count = plural(codes.n_samples, "observation")
    say(f"Codes of {count} × {plural(len(latents), 'latent')} are in {options.csv}")


def codes_as_csv(codes: Representation, latents: list[int], *, sampled: bool) -> str:
    """Return codes as CSV, with the name of each observation in the first column.

    :param codes: the codes.
    :param latents: indices of the latents that are written.
    :param sampled: if True, write samples instead of means.
    """
    import pandas

    from polariscope.core.frames import csv_of

    values = codes.sampled if sampled else codes.mean
    frame = pandas.DataFrame(values[:, latents], columns=[f"latent_{j}" for j in latents])
    frame.insert(0, "observation", range(codes.n_samples) if codes.ids is None else codes.ids)
    return csv_of(frame)
