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
"""Spelling of the parts of a model in messages."""
LATENTS = 10
"""Default number of latents."""


class TrainCommand(FlagCommand):
    """A command with the options of the training, the dataset and every model part as flags."""

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
    """The most common options."""

    def groups(self) -> list[Group]:
        """Return the options of the training, then those of the model parts, then those of the datasets."""
        # A family has the plural of its part as its name.
        concepts = [group for part in ModelParts().concepts() for group in groups_of(part, f"{part}s")]
        return [training_group(), *concepts, *super().groups()]

    def shown_flags(self, group: Group) -> dict[str, str]:
        """Return the flags of a group; a flag that the command also has, or the seed of the data, gets a prefix."""
        longer = dict(zip(group.flags, group.flags_with_part, strict=True))
        used = {flag for parameter in self.params for flag in parameter.opts}
        used |= training_group().flags.keys() if group.part == "data" else set()
        return {longer[flag] if flag in used else flag: name for flag, name in group.flags.items()}


@checked
@dataclasses.dataclass(frozen=True)
class TrainOptions:
    """Options of ``polariscope train`` beyond the model, the data and the training."""

    n_latents: Annotated[int, Ge(1), Flag(default=str(LATENTS))] | None = None
    """Number of latent variables."""
    size: Annotated[Path, Flag("FOLDER")] | None = None
    """Use the number of latents and the settings of 'polariscope size --out FOLDER'."""
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

    Run the same command again to resume an interrupted run. To continue a finished run, use a larger --steps. If an
    option of the data and one of the model have the same name, add the part as a prefix: --prior-scale, --data-seed.
    """
    from polariscope.cli.console import quoted, say, say_next

    n_latents = options.n_latents
    if options.size is not None:
        if n_latents is not None:
            raise InputError(
                problem=(Argument("size"), " and ", Argument("n_latents"), " both set the number of latents"),
                remedy="use one of them",
            )
        n_latents = latents_of(options.size)
    concepts = model.concepts()
    # A resumed run keeps its likelihood, and the flags of that member have to be accepted.
    if model.likelihood == AUTO and options.out is not None:
        from polariscope.training.plan import recorded_settings

        recorded = recorded_settings(options.out)
        concepts["likelihood"] = AUTO if recorded is None else recorded["model"]["likelihood"]["name"]
    search = None if options.size is None else _Searched.of(options.size, concepts)
    if search is not None:
        concepts |= search.names
        # The search read the data with this treatment of missing values.
        if "missing" in search.record["data"]:
            context.meta[KEY].setdefault("--missing", search.record["data"]["missing"])
    data, flags = take_flags(context, source, concepts, wrapping, [training_group()])
    settings = {**dataclasses.asdict(model), **for_train(flags)}
    if search is not None:
        data = search.units_of(data, wrapping)
        is_same = data.fingerprint == search.record["data"]["fingerprint"]
        # The data are already in the units of the search.
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
            (f"polariscope report {quoted(run)}", "all results on one page"),
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
"""Training options that are copied from a search. The number of steps is not, because a search stops models early."""


@dataclasses.dataclass(frozen=True)
class _Searched:
    """Settings of the models of a search, for a new model of the estimated size."""

    folder: Path
    record: Mapping[str, Any]
    """Settings of one of its models."""
    names: Mapping[str, str]
    """Names, in the search, of the model parts that the user did not set."""

    @classmethod
    def of(cls, folder: Path, concepts: Mapping[str, str]) -> _Searched | None:
        """Read the settings of the models of a search; return None if its method trains no models.

        :param folder: folder of the search.
        :param concepts: parts of the model on the command line.
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
            # A part at its default counts as not set.
            {part: used[part]["name"] for part, name in concepts.items() if name == named[part]},
        )

    def missing_from(self, settings: Mapping[str, object]) -> dict[str, Any]:
        """Return the settings of the search that the user did not set.

        :param settings: settings from the command line.
        """
        used = {"objective": self.record["objective"], **self.record["model"]}
        training = {
            f"training_{name}": self.record["training"][name]
            for name in TAKEN
            if name in self.record["training"] and f"training_{name}" not in settings
        }
        return {**{part: used[part] for part in self.names}, **training}

    def units_of(self, data: AbstractDataset, wrapping: Wrapping) -> AbstractDataset:
        """Return the data in the units of the search, unless the user set units or the data are different.

        :param data: data from the command line.
        :param wrapping: variants and units from the command line.
        """
        from polariscope.data.chain import apply_variants, variants_of

        recorded, model = self.record["data"], self.record["model"]
        if tuple(data.shape) != tuple(model["shape"]):
            raise InputError(
                "size",
                f"be a search on observations of shape {tuple(data.shape)}, and {self.folder} has "
                f"{tuple(model['shape'])}",
                remedy=("use ", Argument("n_latents"), " instead"),
            )
        if any(dataclasses.astuple(wrapping)):
            return data
        same = apply_variants(data, variants_of(recorded))
        return same if same.fingerprint == recorded["fingerprint"] else data

    def in_words(self, settings: Mapping[str, Any], *, is_same: bool) -> str:
        """Describe the settings that are copied from the search, and those that the user changed.

        :param settings: settings of the new model.
        :param is_same: if True, the data and their units are those of the search.
        """
        parts = [f"{part} {name}" for part, name in self.names.items()]
        rate, batch = settings["training_learning_rate"], settings["training_batch_size"]
        text = f"As in the search in {self.folder}: {', '.join([*parts, *(['units'] if is_same else [])])}."
        text += "" if is_same else " The data or their units differ from those of the search."
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
    """Return the number of latents in the answer of a ``polariscope size`` folder."""
    from polariscope.sizing.size import read_size
    from polariscope.storage.search_folder import SearchFolder

    search = SearchFolder(folder)
    if search.methods and not search.has_answer:
        methods = ", ".join(map(str, search.methods))
        raise InputError(
            problem=f"{folder} contains the answers of several methods",
            remedy=("set ", Argument("size"), f" to one of {methods}"),
        )
    if not search.has_answer:
        raise InputError(
            "size",
            (
                "be a folder written by ",
                Call("size", "data", out="FOLDER"),
                f", but {folder} contains no answer",
            ),
        )
    size = read_size(folder)
    if size.target == "beta":
        raise InputError(
            "size",
            f"contain a number of latents, but {folder} contains a β",
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
        raise InputError("size", f"contain a number of latents, but the search in {folder} has no answer")
    return size.n_latents


def training_group(without: Collection[str] = ()) -> Group:
    """Return the options of the training.

    :param without: (default none) options that are not flags.
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
    """Open the dataset with its flags and variants, and return it with the other checked flags, by part.

    :param context: context of the call.
    :param source: the dataset, as it was typed.
    :param concepts: the parts of the model by name; "auto" for those that depend on the data.
    :param wrapping: variants of the data.
    :param others: further parts with options: the training, the search.
    :param defers: (default: data to training) parts that leave a shared option to other parts.
    """
    from polariscope.training.plan import FAMILIES, choose, label

    flags: dict[str, object] = context.meta[KEY]
    every: Groups = context.command.groups  # type: ignore[attr-defined]
    own_flags = [
        flag for parameter in context.command.params for flag in parameter.opts if flag.startswith("--")
    ]
    for part, name in concepts.items():
        if name != AUTO:
            FAMILIES[part][name]  # raises an error for an unknown name before any file is read
    its_data = dataset_group(source)
    used = {flag for group in others for flag in group.flags}
    of_data = {
        flag: value
        for flag, value in flags.items()
        # A flag that the training has, too, belongs to the data only with the prefix --data.
        if its_data.has(flag) and (flag not in used or flag not in its_data.flags)
    }
    options = assign_flags(of_data, [its_data], every)["data"]
    data = open_source(source, with_columns_aside(options, its_data, flags), wrapping)
    # The data are opened before the parts are known, because default parts depend on the data.
    names = {part: label(choice) for part, choice in choose(data, **concepts).items()}
    selected = [group_of(part, FAMILIES[part], name) for part, name in names.items()]
    return data, assign_flags(
        flags,
        [*others, *selected, its_data],
        every,
        own_flags,
        defers,
        partial(related_with, context.info_name or ""),
    )


def for_train(flags: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return flags as arguments of :func:`polariscope.train`, with the part as a prefix to avoid ambiguity.

    >>> for_train({"objective": {"beta": 4.0}, "data": {"seed": 1}})
    {'objective_beta': 4.0}
    """
    return {
        f"{part}_{name}": value
        for part, options in flags.items()
        if part != "data"
        for name, value in options.items()
    }


def with_columns_aside(
    options: dict[str, Any], its_data: Group, flags: Mapping[str, object]
) -> dict[str, Any]:
    """Add the columns that define the split to ``aside``, if the data have this option, so they are not features."""
    if "aside" not in its_data.options:
        return options
    used = {name for key in ("columns", "labels", "row_names", "aside") for name in _names(options.get(key))}
    columns = [str(flags[flag]) for flag in ("--split-column", "--group-column") if flag in flags]
    added = [name for name in dict.fromkeys(columns) if name not in used]
    return {**options, "aside": (*_names(options.get("aside")), *added)} if added else options


def _names(value: object) -> tuple[str, ...]:
    """Return the names of columns as a tuple."""
    return () if value is None else (value,) if isinstance(value, str) else tuple(map(str, value))  # type: ignore[call-overload]


def default_run(data: AbstractDataset, settings: dict[str, Any]) -> Path:
    """Return the default folder of a run; it depends only on the settings, so the same call resumes the run."""
    from polariscope.training.plan import label, plan

    digest = plan(data, **settings).describe("cpu")["hash"]
    return Path("runs", f"{data.name}-{label(settings['objective'])}-{digest[:8]}")


class TrainingProgress:
    """Printed progress of training: chosen settings, first step, losses. Nothing is printed for a finished run."""

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
        from polariscope.core.progress import ProgressDisplay
        from polariscope.training.listeners import step_events

        # At the first step, so nothing is printed for a finished run.
        if not self.begun and not self.quiet:
            if self.chosen:
                say(self.chosen, errors=True)
            verb = "continuing" if self.finished_before else "resuming"
            what = f"{verb} from step {step - 1}" if step > 1 else "training"
            # Valid only here: PyTorch's number of threads is set for the duration of the training.
            say(f"{self.run}: {what} with {plural(torch.get_num_threads(), 'thread')}", errors=True)
            self.line = step_events(self.shown_until.enter_context(ProgressDisplay()), self.steps)
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
    """Train a model in the folder ``run`` with live progress, then print the verdict and the folder."""
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
    data = job.data  # already in the units of training, which would otherwise be computed twice
    with ExitStack() as shown:
        progress = TrainingProgress(run, steps, shown, quiet, chosen)
        where = dataclasses.asdict(compute or Compute())
        train_model(data, out=run, tensorboard=tensorboard, progress=progress, **where, **settings)
    if quiet:
        say(str(run))
        return
    finished = Run(run)
    last = finished.log_until()[-1]
    n_done = int(finished.log()[-1]["step"])
    done = f"{'Trained' if progress.begun else 'Already trained'} for {plural(n_done, 'step')}"
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
