"""``polariscope manipulate``: data on which variational autoencoders entangle."""

from __future__ import annotations

import shlex
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import typer

from polariscope.core.errors import Call, InputError


def manipulate(
    runs: Annotated[
        list[Path] | None,
        typer.Argument(metavar="RUN…", help="Finished runs on the same data, to choose from."),
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder of the manipulation.", metavar="FOLDER")] = Path(
        "manipulated"
    ),
    metric: Annotated[
        str, typer.Option(help="Ranks the runs; one of 'polariscope list metrics', udr included.")
    ] = "mig",
    ensemble: Annotated[int, typer.Option(help="Models on each side.", min=1)] = 1,
    entangled: Annotated[
        list[Path] | None,
        typer.Option(help="An entangled run, instead of the lowest score; may be repeated.", metavar="RUN"),
    ] = None,
    disentangled: Annotated[
        list[Path] | None,
        typer.Option(
            help="A disentangled run, instead of the highest score; may be repeated.", metavar="RUN"
        ),
    ] = None,
    epsilon: Annotated[float, typer.Option(help="Largest change of a value.")] = 0.1,
    steps: Annotated[int, typer.Option(help="Steps of the manipulation.")] = 3000,
    batch_size: Annotated[int, typer.Option(help="Observations in a batch.")] = 64,
    decoder_batches: Annotated[
        int, typer.Option(help="Batches of the decoders for each step of the manipulation.")
    ] = 3,
    draws: Annotated[int, typer.Option(help="Draws of the latents for each observation.")] = 5,
    learning_rate: Annotated[float, typer.Option(help="Step size of Adam.")] = 1e-4,
    seed: Annotated[int, typer.Option(help="Seed of weights, order and noise.")] = 0,
    log_every: Annotated[int, typer.Option(help="Steps between two lines of the log.")] = 10,
    checkpoint_every: Annotated[
        int, typer.Option(help="Steps between two checkpoints; one that is killed loses at most as many.")
    ] = 100,
    samples: Annotated[
        int, typer.Option(help="Observations that are encoded to rank the runs.", min=10)
    ] = 10_000,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")] = "auto",
    threads: Annotated[
        int | None,
        typer.Option(
            help="Threads to compute with. [by the work in a step and the cores; resumed: as before]"
        ),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print only the folder.")] = False,
) -> None:
    """Make data on which variational autoencoders entangle (zietlow2022 ch. 4).

    Of the RUNs, the one with the lowest score is the entangled model and the one with the highest the disentangled.
    The data are then changed by at most --epsilon, to make them easy to reconstruct from the codes of the first and
    hard from those of the second. The folder stands for the changed data: --variant manipulated:FOLDER. The same
    command resumes one that was interrupted.
    """
    from polariscope.cli.console import quoted, say, say_next
    from polariscope.manipulation.manipulate import manipulate as make
    from polariscope.pages.manipulation import write_manipulation_page
    from polariscope.storage.folder import RunFolder

    for run in [*(runs or []), *(entangled or []), *(disentangled or [])]:
        if not run.exists():
            raise InputError(
                problem=f"there is no run at {run}",
                remedy=("train one with ", Call("train", "data", out=str(run))),
            )
    settings: dict[str, Any] = {
        "epsilon": epsilon,
        "steps": steps,
        "batch_size": batch_size,
        "decoder_batches": decoder_batches,
        "draws": draws,
        "learning_rate": learning_rate,
        "seed": seed,
        "log_every": log_every,
        "checkpoint_every": checkpoint_every,
    }
    with ExitStack() as shown:
        made = make(
            runs or (),
            out,
            metric=metric,
            ensemble=ensemble,
            entangled=entangled or (),
            disentangled=disentangled or (),
            n_samples=samples,
            device=device,
            threads=threads,
            progress=_News(out, steps, shown, quiet),
            **settings,
        )
    page = write_manipulation_page(out)
    if quiet:
        say(str(out))
        return
    for sentence in made.in_words():
        say(sentence)
    say(f"The manipulation is in {out}; what it does is on the page {page}")
    data = RunFolder(out).settings["data"]
    say_next(
        (
            f"polariscope train {_typed(data)} --variant manipulated:{quoted(out)}",
            "a model of manipulated data",
        ),
        (
            f"polariscope train {_typed(data)} --variant pixel-noise:epsilon={epsilon:g}",
            "the control: as much noise",
        ),
    )


def _typed(record: dict[str, Any]) -> str:
    """A dataset as the command line has it, with the options that are not the defaults; variants come after."""
    from polariscope.core.options import options_of
    from polariscope.data.dataset import family

    known = options_of(family[record["name"]])
    words = [f"{record['name']}:{record['path']}" if record.get("path") else record["name"]]
    for name, value in record.items():
        if (
            name != "path"
            and name in known
            and value != known[name].default
            and isinstance(value, str | int | float)
        ):
            words += [f"--{name.replace('_', '-')}", str(value)]
    return shlex.join(words)


class _News:
    """Says that it begins or goes on, then how the losses go; silent when nothing is left to do."""

    def __init__(self, out: Path, steps: int, shown_until: ExitStack, quiet: bool) -> None:
        self.out, self.steps, self.shown_until, self.quiet = out, steps, shown_until, quiet
        self.line: Any = None

    def __call__(self, step: int, line: dict[str, Any] | None) -> None:
        if self.quiet:
            return
        if self.line is None:
            import torch

            from polariscope.cli.console import plural, say
            from polariscope.manipulation.attack import in_words
            from polariscope.training.listeners import ProgressLine

            what = f"resuming from step {step - 1}" if step > 1 else "attacking"
            # While it trains, PyTorch's number of threads is that of the attack.
            say(f"{self.out}: {what} with {plural(torch.get_num_threads(), 'thread')}", errors=True)
            self.line = self.shown_until.enter_context(ProgressLine(self.steps, words=in_words))
        self.line(step, line)
