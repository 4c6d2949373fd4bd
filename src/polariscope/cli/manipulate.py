"""``polariscope manipulate``: modify a dataset so that variational autoencoders learn entangled latents."""

from __future__ import annotations

import dataclasses
import shlex
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from annotated_types import Ge

from polariscope.cli.command import Flag, FlagsOf, command
from polariscope.cli.shared import Compute
from polariscope.core.errors import Call, InputError
from polariscope.core.options import checked
from polariscope.core.text import plural

if TYPE_CHECKING:
    from polariscope.data.observations import Subset
    from polariscope.manipulation.manipulation_settings import AttackSettings


@checked
@dataclasses.dataclass(frozen=True)
class ManipulateOptions:
    """Options of ``polariscope manipulate`` beyond those of the attack."""

    out: Annotated[Path, Flag("FOLDER")] = Path("manipulated")
    """Folder of the manipulation."""
    metric: str = "mig"
    """Metric that ranks the runs; see 'polariscope list metrics'. udr is supported too."""
    ensemble: Annotated[int, Ge(1)] = 1
    """Number of entangled and of disentangled models."""
    entangled: Annotated[tuple[Path, ...], Flag("RUN", repeated=True)] = ()
    """An entangled run, instead of the run with the lowest score; can be repeated."""
    disentangled: Annotated[tuple[Path, ...], Flag("RUN", repeated=True)] = ()
    """A disentangled run, instead of the run with the highest score; can be repeated."""
    quiet: bool = False
    """Print only the folder."""


@command(
    options=ManipulateOptions,
    attack="polariscope.manipulation.manipulation_settings.AttackSettings",
    subset=FlagsOf("polariscope.data.observations.Subset", only=("n_samples",)),
    compute=Compute,
)
def manipulate(
    options: ManipulateOptions,
    attack: AttackSettings,
    subset: Subset,
    compute: Compute,
    runs: Annotated[
        list[Path] | None,
        typer.Argument(metavar="RUN…", help="Finished runs on the same data, to select the models from."),
    ] = None,
) -> None:
    """Modify a dataset so that VAEs learn entangled latents.

    The method is that of zietlow2022 ch. 4. The RUN with the lowest score is the entangled model, and the RUN with the
    highest score is the disentangled one. Every value of the data is changed by at most --epsilon. The change
    makes the data easy to reconstruct from the codes of the first model and hard to reconstruct from those of the
    second. To use the modified data, pass --variant manipulated:FOLDER to other commands. Run the same command again to
    resume an interrupted manipulation.
    """
    from polariscope.cli.console import quoted, say, say_next
    from polariscope.manipulation.manipulate import manipulate as make
    from polariscope.pages.manipulation import write_manipulation_page
    from polariscope.storage.folder import RunFolder

    out, quiet = options.out, options.quiet
    for run in [*(runs or []), *options.entangled, *options.disentangled]:
        if not run.exists():
            raise InputError(
                problem=f"there is no run at {run}",
                remedy=("train one with ", Call("train", "data", out=str(run))),
            )
    with ExitStack() as shown:
        made = make(
            runs or (),
            out,
            metric=options.metric,
            ensemble=options.ensemble,
            entangled=options.entangled,
            disentangled=options.disentangled,
            n_samples=subset.n_samples,
            progress=_AttackProgress(out, attack.steps, shown, quiet),
            **dataclasses.asdict(compute),
            **dataclasses.asdict(attack),
        )
    page = write_manipulation_page(out)
    if quiet:
        say(str(out))
        return
    for sentence in made.in_words():
        say(sentence)
    say(f"The manipulation is in {out}. The page {page} shows its effect.")
    data = RunFolder(out).settings["data"]
    say_next(
        (
            f"polariscope train {_typed(data)} --variant manipulated:{quoted(out)}",
            "train on the modified data",
        ),
        (
            f"polariscope train {_typed(data)} --variant pixel-noise:epsilon={attack.epsilon:g}",
            "control: random noise of the same size",
        ),
    )


def _typed(record: dict[str, Any]) -> str:
    """Return the source and flags of a dataset, with the options that differ from the defaults, without variants."""
    from polariscope.core.options import options_of
    from polariscope.data.dataset import family

    known = options_of(family[record["name"]])
    tokens = [f"{record['name']}:{record['path']}" if record.get("path") else record["name"]]
    for name, value in record.items():
        if (
            name != "path"
            and name in known
            and value != known[name].default
            and isinstance(value, str | int | float)
        ):
            tokens += [f"--{name.replace('_', '-')}", str(value)]
    return shlex.join(tokens)


class _AttackProgress:
    """Printed progress of a manipulation; nothing is printed if it is already finished."""

    def __init__(self, out: Path, steps: int, shown_until: ExitStack, quiet: bool) -> None:
        self.out, self.steps, self.shown_until, self.quiet = out, steps, shown_until, quiet
        self.line: Any = None

    def __call__(self, step: int, line: dict[str, Any] | None) -> None:
        if self.quiet:
            return
        # At the first step, so nothing is printed for a finished manipulation.
        if self.line is None:
            import torch

            from polariscope.cli.console import say
            from polariscope.core.progress import ProgressDisplay
            from polariscope.manipulation.attack import in_words
            from polariscope.training.listeners import step_events

            what = f"resuming from step {step - 1}" if step > 1 else "attacking"
            # Valid only here: PyTorch's number of threads is set for the duration of the attack.
            say(f"{self.out}: {what} with {plural(torch.get_num_threads(), 'thread')}", errors=True)
            display = self.shown_until.enter_context(ProgressDisplay())
            self.line = step_events(display, self.steps, in_words)
        self.line(step, line)
