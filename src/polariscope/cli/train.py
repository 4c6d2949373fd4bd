"""``polariscope train``: train a model, or resume a run."""

from __future__ import annotations

import dataclasses
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from annotated_types import Ge

from polariscope.cli.app import related_with
from polariscope.cli.command import Flag, command, spelling
from polariscope.cli.data import TrainingData, Wrapping, dataset_group, open_source
from polariscope.cli.flags import (
    DEFERS,
    KEY,
    FlagCommand,
    Flags,
    Group,
    Groups,
    assign_flags,
    group_of,
    groups_of,
)
from polariscope.cli.shared import AUTO, Compute, ModelParts
from polariscope.core.errors import Argument, Call, InputError
from polariscope.core.options import checked, options_of
from polariscope.core.text import capitalised, plural

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from polariscope.data.dataset import AbstractDataset

MODEL_FLAGS = Flags(map(spelling, options_of(ModelParts)))
"""How announcements write the parts of a model."""
LATENTS = 10
"""Number of latents unless another is given."""


class TrainCommand(FlagCommand):
    """Takes the options of the training, the dataset and every concept as flags."""

    common = {
        "": (
            *("--objective", "--latents", "--size", "--net", "--posterior", "--prior", "--likelihood"),
            *("--out", "--device", "--quiet"),
        ),
        "training": (
            *("--steps", "--epochs", "--batch-size", "--learning-rate", "--schedule", "--seed"),
            *("--patience", "--keep-checkpoints"),
        ),
        "objective beta": ("--beta",),
        "data sprites": ("--image-size",),
    }
    """The twenty that people use."""

    def groups(self) -> list[Group]:
        """The training's options first, then those of the concepts, then those of the datasets."""
        concepts = [group for part in ModelParts().concepts() for group in groups_of(part, f"{part}s")]
        return [training_group(), *concepts, *super().groups()]

    def shown_flags(self, group: Group) -> dict[str, str]:
        """What the data share with the training, their seed, and what the command has, carries the part in front."""
        longer = dict(zip(group.flags, group.flags_with_part, strict=True))
        taken = {flag for parameter in self.params for flag in parameter.opts}
        taken |= training_group().flags.keys() if group.part == "data" else set()
        return {longer[flag] if flag in taken else flag: name for flag, name in group.flags.items()}


@checked
@dataclasses.dataclass(frozen=True)
class TrainOptions:
    """Options of ``polariscope train`` beyond the model, the data and the training."""

    n_latents: Annotated[int, Ge(1), Flag(default=str(LATENTS))] | None = None
    """Number of latent variables."""
    size: Annotated[Path, Flag("FOLDER")] | None = None
    """Take the number of latents from 'polariscope size --out FOLDER'."""
    out: Annotated[Path, Flag("RUN", default="runs/DATA-OBJECTIVE-HASH")] | None = None
    """Folder of the run."""
    tensorboard: bool = False
    """Also write TensorBoard events."""
    quiet: bool = False
    """Print only the folder of the run."""


@command(TrainCommand, model=ModelParts, options=TrainOptions, wrapping=Wrapping, compute=Compute)
def train(
    context: typer.Context,
    source: TrainingData,
    model: ModelParts,
    options: TrainOptions,
    wrapping: Wrapping,
    compute: Compute,
) -> None:
    """Train a model, or resume a run.

    The same command resumes a run that was interrupted. A finished run is continued if --steps is larger than before.
    --help shows the most common options with their defaults; --help-all shows all of them. If two parts have an option
    of the same name, put the part in front: --prior-scale, --data-seed.
    """
    from polariscope.cli.console import quoted, say, say_next

    n_latents = options.n_latents
    if options.size is not None:
        if n_latents is not None:
            raise InputError(
                problem=(Argument("size"), " and ", Argument("n_latents"), " both say how many latents"),
                remedy="give one of them",
            )
        n_latents = latents_of(options.size)
    concepts = model.concepts()
    if model.likelihood == AUTO and options.out is not None:
        from polariscope.training.plan import recorded_settings

        recorded = recorded_settings(options.out)
        concepts["likelihood"] = AUTO if recorded is None else recorded["model"]["likelihood"]["name"]
    search = None if options.size is None else _Searched.of(options.size, concepts)
    if search is not None:
        concepts |= search.names
        if "missing" in search.record["data"]:
            context.meta[KEY].setdefault("--missing", search.record["data"]["missing"])
    data, flags = take_flags(context, source, concepts, wrapping, [training_group()])
    settings = {**dataclasses.asdict(model), **for_train(flags)}
    if search is not None:
        data = search.units_of(data, wrapping)
        is_same = data.fingerprint == search.record["data"]["fingerprint"]
        settings |= {**search.missing_from(settings), **({"keep_units": True} if is_same else {})}
        if not options.quiet:
            say(search.in_words(settings, is_same=is_same), errors=True)
    settings["n_latents"] = LATENTS if n_latents is None else n_latents
    settings |= {"keep_units": True} if wrapping.keep_units else {}
    run = options.out or default_run(data, settings)
    run_and_print(data, run, settings, compute=compute, tensorboard=options.tensorboard, quiet=options.quiet)
    if options.size is not None:
        from polariscope.sizing.size import keep_size

        keep_size(options.size, run)
    if not options.quiet:
        say_next(
            (f"polariscope diagnose {quoted(run)}", "which latents are in use, and their types"),
            (f"polariscope report {quoted(run)}", "all of it on one page"),
        )


TAKEN = (
    "learning_rate",
    "batch_size",
    "optimiser",
    "adam_beta1",
    "warmup_steps",
    "clip_gradient",
    "train_fraction",
)
"""Options of the training that are taken from a search; the length is not, since a search trains only to decide."""


@dataclasses.dataclass(frozen=True)
class _Searched:
    """Settings of the models of a search, which a new model of the size that it found takes over."""

    folder: Path
    record: Mapping[str, Any]
    """Settings of one of its models."""
    names: Mapping[str, str]
    """Parts of the model that the caller left open, by the names that the search had."""

    @classmethod
    def of(cls, folder: Path, concepts: Mapping[str, str]) -> _Searched | None:
        """Return how the models of a search were trained; None if its method trained none.

        :param folder: that of the search.
        :param concepts: parts of the model, as the caller named them.
        """
        from polariscope.sizing.size import settings_of_models

        record = settings_of_models(folder)
        if record is None:
            return None
        used = {"objective": record["objective"], **record["model"]}
        named = ModelParts().concepts()
        return cls(
            folder,
            record,
            {part: used[part]["name"] for part, name in concepts.items() if name == named[part]},
        )

    def missing_from(self, settings: Mapping[str, object]) -> dict[str, Any]:
        """Return the settings of the search that the caller did not give.

        :param settings: what the caller gave.
        """
        used = {"objective": self.record["objective"], **self.record["model"]}
        training = {
            f"training_{name}": self.record["training"][name]
            for name in TAKEN
            if name in self.record["training"] and f"training_{name}" not in settings
        }
        return {**{part: used[part] for part in self.names}, **training}

    def units_of(self, data: AbstractDataset, wrapping: Wrapping) -> AbstractDataset:
        """Return the data in the units of the search, unless the caller gave units or the data are others.

        :param data: as the caller named them.
        :param wrapping: variants and units that the caller gave.
        """
        from polariscope.data.chain import apply_variants, variants_of

        recorded, model = self.record["data"], self.record["model"]
        if tuple(data.shape) != tuple(model["shape"]):
            raise InputError(
                "size",
                f"be a search on observations of shape {tuple(data.shape)}, and {self.folder} has "
                f"{tuple(model['shape'])}",
                remedy=("give ", Argument("n_latents"), " instead"),
            )
        if any(dataclasses.astuple(wrapping)):
            return data
        same = apply_variants(data, variants_of(recorded))
        return same if same.fingerprint == recorded["fingerprint"] else data

    def in_words(self, settings: Mapping[str, Any], *, is_same: bool) -> str:
        """Return what is taken from the search, and what the caller gave instead.

        :param settings: of the new model.
        :param is_same: whether the data are those of the search, in its units.
        """
        parts = [f"{part} {name}" for part, name in self.names.items()]
        rate, batch = settings["training_learning_rate"], settings["training_batch_size"]
        text = f"As in the search in {self.folder}: {', '.join([*parts, *(['units'] if is_same else [])])}."
        text += "" if is_same else " The data or their units are not those of the search."
        used = {"objective": self.record["objective"], **self.record["model"]}
        for part in ModelParts().concepts():
            name, before = settings[part], used[part]["name"]
            if part not in self.names and name not in (before, AUTO):
                text += f" {capitalised(part)} {name} instead of the search's {before}."
        for what, value in (("learning_rate", rate), ("batch_size", batch)):
            used = self.record["training"][what]
            name = what.replace("_", " ")
            instead = "" if used == value else f" instead of the search's {used:g}"
            text += f" {capitalised(name)} {value:g}{instead}."
        return text


def latents_of(folder: Path) -> int:
    """The number of latents that was found in a folder of ``polariscope size``."""
    from polariscope.sizing.size import read_size
    from polariscope.storage.search_folder import SearchFolder

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
    size = read_size(folder)
    if size.target == "beta":
        raise InputError(
            "size",
            f"hold a number of latents, and {folder} holds a β",
            remedy=(
                "use ",
                Argument("n_latents", size.n_latents),
                " ",
                Argument("objective", "beta"),
                " ",
                Argument("beta", float(f"{size.value:.3g}")),
            ),
        )
    if not size.value:
        raise InputError("size", f"hold a number of latents, but the search in {folder} found none")
    return size.n_latents


def training_group(without: Collection[str] = ()) -> Group:
    """The options of the training.

    :param without: (default none) options that are not flags here.
    """
    from polariscope.training.settings import TrainSettings

    return Group("training", "", TrainSettings, without=without)


def take_flags(
    context: typer.Context,
    source: str,
    concepts: Mapping[str, str],
    wrapping: Wrapping,
    others: list[Group],
    defers: Mapping[str, Collection[str]] = DEFERS,
) -> tuple[AbstractDataset, dict[str, dict[str, Any]]]:
    """The dataset, made with its flags and variants, and the other flags by part, checked.

    :param context: the context of the call.
    :param source: the dataset, as it was typed.
    :param concepts: the parts of the model by name, "auto" for those that the data decide.
    :param wrapping: variants of the data.
    :param others: further parts that can have options: the training, the search.
    :param defers: (default: data to training) parts that leave an option to others which have it too.
    """
    from polariscope.training.plan import FAMILIES, choose, label

    flags: dict[str, object] = context.meta[KEY]
    every: Groups = context.command.groups  # type: ignore[attr-defined]
    own = [flag for parameter in context.command.params for flag in parameter.opts if flag.startswith("--")]
    for part, name in concepts.items():
        if name != AUTO:
            FAMILIES[part][name]  # an unknown name is refused before any file is opened
    its_data = dataset_group(source)
    taken = {flag for group in others for flag in group.flags}
    of_data = {
        flag: value
        for flag, value in flags.items()
        if its_data.has(flag) and (flag not in taken or flag not in its_data.flags)
    }
    options = assign_flags(of_data, [its_data], every)["data"]
    data = open_source(source, with_columns_aside(options, its_data, flags), wrapping)
    names = {part: label(choice) for part, choice in choose(data, **concepts).items()}
    chosen = [group_of(part, FAMILIES[part], name) for part, name in names.items()]
    return data, assign_flags(
        flags,
        [*others, *chosen, its_data],
        every,
        own,
        defers,
        partial(related_with, context.info_name or ""),
    )


def for_train(flags: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Flags as arguments of :func:`polariscope.train`: with the part in front a name is never ambiguous.

    >>> for_train({"objective": {"beta": 4.0}, "data": {"seed": 1}})
    {'objective_beta': 4.0}
    """
    return {
        f"{part}_{name}": value
        for part, its in flags.items()
        if part != "data"
        for name, value in its.items()
    }


def with_columns_aside(
    options: dict[str, Any], its_data: Group, flags: Mapping[str, object]
) -> dict[str, Any]:
    """The options of the data; columns that only say how to split are set aside, if the data can do that."""
    if "aside" not in its_data.options:
        return options
    used = {name for key in ("columns", "labels", "row_names", "aside") for name in _names(options.get(key))}
    asked = [str(flags[flag]) for flag in ("--split-column", "--group-column") if flag in flags]
    added = [name for name in dict.fromkeys(asked) if name not in used]
    return {**options, "aside": (*_names(options.get("aside")), *added)} if added else options


def _names(value: object) -> tuple[str, ...]:
    """Names of columns: none, one, or several."""
    return () if value is None else (value,) if isinstance(value, str) else tuple(map(str, value))  # type: ignore[call-overload]


def default_run(data: AbstractDataset, settings: dict[str, Any]) -> Path:
    """Where a run goes that was given no folder: the same settings, the same place."""
    from polariscope.training.plan import label, plan

    digest = plan(data, **settings).describe("cpu")["hash"]
    return Path("runs", f"{data.name}-{label(settings['objective'])}-{digest[:8]}")


class TrainingProgress:
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

        from polariscope.cli.console import say
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


def run_and_print(
    data: AbstractDataset,
    run: Path,
    settings: dict[str, Any],
    *,
    compute: Compute | None = None,
    tensorboard: bool = False,
    quiet: bool = False,
) -> None:
    """Train into ``run`` with live progress, then print the verdict and where the run is."""
    from polariscope.analysis.convergence import held_out_loss
    from polariscope.analysis.noise import Noise
    from polariscope.analysis.regime.note import ABOUT_LIKELIHOOD
    from polariscope.cli.console import say
    from polariscope.runs.run import Run
    from polariscope.training.choices import announcement
    from polariscope.training.plan import plan, recorded_settings
    from polariscope.training.train import train as train_model

    job = plan(data, recorded=recorded_settings(run), **settings)
    steps, chosen = job.settings.steps, announcement(job.chosen, MODEL_FLAGS)
    data = job.data  # in the units it is trained in, which are measured once
    with ExitStack() as shown:
        news = TrainingProgress(run, steps, shown, quiet, chosen)
        where = dataclasses.asdict(compute or Compute())
        train_model(data, out=run, tensorboard=tensorboard, progress=news, **where, **settings)
    if quiet:
        say(str(run))
        return
    finished = Run(run)
    last = finished.log_until()[-1]
    n_done = int(finished.log()[-1]["step"])
    done = f"{'Trained' if news.begun else 'Already trained'} for {plural(n_done, 'step')}"
    at_best = "" if last["step"] == n_done else f", best at step {last['step']:,}"
    held_out = f", held-out loss {held_out_loss(last):.2f}" if last.get("validation") else ""
    say(f"{done}{at_best}: training loss {last['loss']:.2f}{held_out} nats.")
    regime = finished.regime()
    for line in regime.verdict.lines:
        say(line)
    if (noise := Noise.of_run(finished.settings, last)) is not None:
        say(f"{noise.in_words}.")
    for note in regime.notes:
        if note.code in ABOUT_LIKELIHOOD:
            say(f"Note: {note}")
    say(f"The run is in {run}")
