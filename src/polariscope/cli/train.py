"""``polariscope train``: train a model, or resume a run."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from polariscope.cli.data import (
    SOURCE_HELP,
    KeepUnits,
    Scale,
    Standardise,
    Variants,
    Wrapping,
    dataset_group,
    open_source,
)
from polariscope.cli.flags import KEY, FlagCommand, Group, groups_of, share_out
from polariscope.core.errors import Argument, Call, InputError

if TYPE_CHECKING:
    from polariscope.data.dataset import AbstractDataset


class TrainCommand(FlagCommand):
    """Takes the options of the training, the dataset and every concept as flags."""

    common = {
        "": (
            *("--objective", "--latents", "--size", "--net", "--posterior", "--prior", "--likelihood"),
            *("--out", "--device", "--quiet"),
        ),
        "training": (
            *("--steps", "--epochs", "--batch-size", "--learning-rate", "--schedule", "--seed"),
            *("--checkpoint-every", "--keep-checkpoints"),
        ),
        "objective beta": ("--beta",),
        "data sprites": ("--image-size",),
    }
    """The twenty that people use."""

    def groups(self) -> list[Group]:
        """The training's options first, then those of the concepts, then those of the datasets."""
        from polariscope.core.options import options_of
        from polariscope.training.plan import FAMILIES
        from polariscope.training.settings import TrainSettings

        concepts = [group for part, family in FAMILIES.items() for group in groups_of(part, family)]
        return [Group("training", "", options_of(TrainSettings)), *concepts, *super().groups()]

    def shown_flags(self, group: Group) -> dict[str, str]:
        """What the data share with the training, their seed, and what the command has, carries the part in front."""
        training = training_of(self.groups()).flags
        longer = dict(zip(group.flags, group.flags_with_part, strict=True))
        taken = {flag for parameter in self.params for flag in parameter.opts}
        taken |= training.keys() if group.part == "data" else set()
        return {longer[flag] if flag in taken else flag: name for flag, name in group.flags.items()}


def train(
    context: typer.Context,
    source: Annotated[str, typer.Argument(metavar="DATA", help=SOURCE_HELP)],
    objective: Annotated[
        str, typer.Option(help="What is minimised; see 'polariscope list objectives'.")
    ] = "vae",
    net: Annotated[str, typer.Option(help="Encoder and decoder; auto: conv for images, else mlp.")] = "auto",
    n_latents: Annotated[
        int | None, typer.Option("--latents", help="Number of latent variables. [10]")
    ] = None,
    size: Annotated[
        Path | None,
        typer.Option(
            help="Take the number of latents from 'polariscope size --out FOLDER'.", metavar="FOLDER"
        ),
    ] = None,
    posterior: Annotated[str, typer.Option(help="q(z|x); auto: the objective's, mostly diagonal.")] = "auto",
    prior: Annotated[str, typer.Option(help="p(z); auto: the objective's, mostly isotropic.")] = "auto",
    likelihood: Annotated[
        str, typer.Option(help="p(x|z); auto: bernoulli for images, else gaussian.")
    ] = "auto",
    initialisation: Annotated[str, typer.Option(help="How the weights are initialised.")] = "glorot",
    variants: Variants = None,
    standardise: Standardise = False,
    scale: Scale = False,
    keep_units: KeepUnits = False,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder of the run. [runs/DATA-OBJECTIVE-HASH]", metavar="RUN"),
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")] = "auto",
    threads: Annotated[
        int | None,
        typer.Option(
            help="Threads to compute with. [by the work in a step and the cores; resumed: as before]"
        ),
    ] = None,
    tensorboard: Annotated[
        bool, typer.Option("--tensorboard", help="Also write TensorBoard events.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print only the folder of the run.")] = False,
) -> None:
    """Train a model, or resume a run.

    The same command resumes a run that was interrupted. A finished run goes on when --steps is larger than
    before. --help shows the options people use most, with their defaults; --help-all shows all of them. Where two
    parts have an option of the same name, put the part in front: --prior-scale, --data-seed.
    """
    from polariscope.cli.console import quoted, say_next

    concepts = {
        "objective": objective,
        "net": net,
        "posterior": posterior,
        "prior": prior,
        "likelihood": likelihood,
    }
    every = context.command.groups()  # type: ignore[attr-defined]
    own = [flag for parameter in context.command.params for flag in parameter.opts if flag.startswith("--")]
    if size is not None:
        if n_latents is not None:
            raise InputError(
                problem=(Argument("size"), " and ", Argument("n_latents"), " both say how many latents"),
                remedy="give one of them",
            )
        n_latents = latents_of(size)
    wrapping = Wrapping(variants, standardise, scale, keep_units)
    data, options = take_flags(source, concepts, context.meta[KEY], every, own, wrapping)
    settings = {**concepts, "initialisation": initialisation, **options}
    settings["n_latents"] = 10 if n_latents is None else n_latents
    settings |= {"keep_units": True} if keep_units else {}
    run = out or default_run(data, settings)
    train_and_tell(data, run, settings, device=device, threads=threads, tensorboard=tensorboard, quiet=quiet)
    if size is not None:
        from polariscope.sizing.support.size import keep_size

        keep_size(size, run)
    if not quiet:
        say_next(
            (f"polariscope diagnose {quoted(run)}", "which latents are active, mixed, passive"),
            (f"polariscope report {quoted(run)}", "all of it on one page"),
        )


def latents_of(folder: Path) -> int:
    """The number of latents that was found in a folder of ``polariscope size``."""
    from polariscope.sizing.support.size import read_size
    from polariscope.storage.search import SearchFolder

    search = SearchFolder(folder)
    if search.methods and not search.has_answer:
        methods = ", ".join(map(str, search.methods))
        raise InputError(
            problem=f"{folder} holds the answers of several methods",
            remedy=("give ", Argument("size"), f" one of {methods}"),
        )
    if not search.has_answer:
        raise InputError(
            "size",
            (
                "be a folder that ",
                Call("size", "data", out="FOLDER"),
                f" made, but {folder} has no answer in it",
            ),
        )
    found = read_size(folder)
    if found.target == "beta":
        raise InputError(
            "size",
            f"hold a number of latents, and {folder} holds a β",
            remedy=(
                "use ",
                Argument("n_latents", found.n_latents),
                " ",
                Argument("objective", "beta"),
                " ",
                Argument("beta", float(f"{found.value:.3g}")),
            ),
        )
    if not found.value:
        raise InputError("size", f"hold a number of latents, but the search in {folder} found none")
    return found.n_latents


def training_of(groups: list[Group]) -> Group:
    """The options of the training among those of all parts."""
    return next(group for group in groups if group.part == "training")


def take_flags(
    source: str,
    concepts: dict[str, str],
    given: dict[str, object],
    every: list[Group],
    own: list[str],
    wrapping: Wrapping,
) -> tuple[AbstractDataset, dict[str, Any]]:
    """The dataset, made with its flags and variants, and the other flags as arguments of :func:`polariscope.train`."""
    from polariscope.training.plan import FAMILIES, choose, label

    for part, name in concepts.items():
        if name != "auto":
            FAMILIES[part][name]  # an unknown name is refused before any file is opened
    training, its_data = training_of(every), dataset_group(source)
    of_data = {
        flag: value
        for flag, value in given.items()
        if (flag in its_data.flags and flag not in training.flags) or flag in its_data.flags_with_part
    }
    of_data = share_out(of_data, [its_data], every)["data"]
    data = open_source(source, with_columns_aside(of_data, its_data, given), wrapping)
    names = {part: label(choice) for part, choice in choose(data, **concepts).items()}
    chosen = [training, *(group for group in every if names.get(group.part) == group.name), its_data]
    shared = share_out(given, chosen, every, own)
    # With the part in front a name is never ambiguous to train().
    return data, {
        f"{part}_{name}": value for part in shared if part != "data" for name, value in shared[part].items()
    }


def with_columns_aside(options: dict[str, Any], its_data: Group, given: dict[str, object]) -> dict[str, Any]:
    """The options of the data; columns that only say how to split are set aside, where the data can do that."""
    if "aside" not in its_data.options:
        return options
    used = [
        name.strip()
        for key in ("columns", "labels", "row_names", "aside")
        for name in str(options.get(key, "")).split(",")
    ]
    asked = [str(given[flag]) for flag in ("--split-column", "--group-column") if flag in given]
    added = [name for name in dict.fromkeys(asked) if name not in used]
    if not added:
        return options
    before = [options["aside"]] if "aside" in options else []
    return {**options, "aside": ",".join([*before, *added])}


def default_run(data: AbstractDataset, settings: dict[str, Any]) -> Path:
    """Where a run goes that was given no folder: the same settings, the same place."""
    from polariscope.training.plan import plan

    digest = plan(data, **settings).describe("cpu")["hash"]
    return Path("runs", f"{data.name}-{settings['objective']}-{digest[:8]}")


class News:
    """Says what was chosen and from where training goes on, then how it goes; silent when nothing is left to do."""

    def __init__(self, run: Path, steps: int, shown_until: ExitStack, quiet: bool, chosen: str = "") -> None:
        from polariscope.storage.folder import RunFolder

        self.run, self.steps, self.shown_until, self.quiet = run, steps, shown_until, quiet
        self.chosen = chosen
        self.finished_before = RunFolder(run).model_file.exists()
        self.line: Any = None
        self.begun = False

    def __call__(self, step: int, line: dict[str, object] | None) -> None:
        import torch

        from polariscope.cli.console import plural, say
        from polariscope.training.listeners import ProgressLine

        if not self.begun and not self.quiet:
            if self.chosen:
                say(self.chosen, errors=True)
            verb = "continuing" if self.finished_before else "resuming"
            what = f"{verb} from step {step - 1}" if step > 1 else "training"
            # While it trains, PyTorch's number of threads is the run's.
            say(f"{self.run}: {what} with {plural(torch.get_num_threads(), 'thread')}", errors=True)
            self.line = self.shown_until.enter_context(ProgressLine(self.steps))
        self.begun = True
        if self.line is not None:
            self.line(step, line)


def train_and_tell(
    data: AbstractDataset,
    run: Path,
    settings: dict[str, Any],
    *,
    device: str = "auto",
    threads: int | None = None,
    tensorboard: bool = False,
    quiet: bool = False,
) -> None:
    """Train into ``run`` with live progress, then say what the latents are and where the run is."""
    from polariscope.analysis.noise import Noise
    from polariscope.cli.console import plural, say
    from polariscope.runs.run import Run
    from polariscope.training.choices import announcement
    from polariscope.training.plan import plan
    from polariscope.training.train import train as train_model

    job = plan(data, **settings)
    steps, chosen = job.settings.steps, announcement(job.chosen)
    data = job.data  # in the units it is trained in, which are measured once
    with ExitStack() as shown:
        news = News(run, steps, shown, quiet, chosen)
        train_model(
            data, out=run, device=device, threads=threads, tensorboard=tensorboard, progress=news, **settings
        )
    if quiet:
        say(str(run))
        return
    finished = Run(run)
    last = finished.log()[-1]
    counts = ", ".join(f"{last[kind]} {kind}" for kind in ("active", "mixed", "passive"))
    done = "Trained for" if news.begun else "Already trained for"
    say(f"{done} {plural(steps, 'step')}: {counts} latents, loss {last['loss']:.2f} nats.")
    if (noise := Noise.of_run(finished.settings, last)) is not None:
        say(f"{noise.in_words}.")
    say(f"The run is in {run}")
