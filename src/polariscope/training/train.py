"""Train a model by name: the public face of training."""

from __future__ import annotations

import dataclasses
import inspect
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from polariscope import __version__
from polariscope.core import files
from polariscope.core.errors import InputError, unknown
from polariscope.core.options import build, check_options, describe_concept, options_of, plain
from polariscope.data.dataset import AbstractDataset
from polariscope.data.own.arrays import from_arrays
from polariscope.data.pairs import Transition
from polariscope.data.splits import Split, split
from polariscope.models.likelihoods import family as likelihoods
from polariscope.models.model import Blueprint, Model, load_model
from polariscope.models.nets import Initialisation
from polariscope.models.nets import family as nets
from polariscope.models.nets.mlp import for_table
from polariscope.models.posteriors import family as posteriors
from polariscope.models.priors import AbstractPrior
from polariscope.models.priors import family as priors
from polariscope.objectives import AbstractObjective
from polariscope.objectives import family as objectives
from polariscope.storage.run_folder import FORMAT, RunFolder, settings_hash
from polariscope.training.feed import class_labels
from polariscope.training.loop import Listener, fit
from polariscope.training.memory import keep_freed_memory
from polariscope.training.settings import TrainSettings

FAMILIES = {
    "objective": objectives,
    "net": nets,
    "posterior": posteriors,
    "prior": priors,
    "likelihood": likelihoods,
}


@dataclasses.dataclass(frozen=True)
class RunPlan:
    """A training run, checked and ready: nothing has been written yet."""

    data: AbstractDataset
    objective: AbstractObjective
    blueprint: Blueprint
    settings: TrainSettings

    @property
    def split(self) -> Split:
        """Training, validation and test indices of the run."""
        return split_of(self.data, self.settings)

    def describe(self, device: str) -> dict[str, Any]:
        """The contents of settings.json."""
        record: dict[str, Any] = {
            "format": FORMAT,
            "polariscope": __version__,
            "data": {**self.data.describe(), "fingerprint": self.data.fingerprint},
            "objective": describe_concept(objectives, self.objective),
            "model": self.blueprint.describe(),
            "training": plain(dataclasses.asdict(self.settings)),
            "training_identity": plain(self.settings.identity()),
        }
        record["hash"] = settings_hash(record)
        record["environment"] = {
            "python": platform.python_version(),
            "torch": torch.__version__,
            "numpy": np.__version__,
            "threads": torch.get_num_threads(),
            "device": device,
        }
        return record


def split_of(data: AbstractDataset, settings: TrainSettings) -> Split:
    """The split that a run with these settings makes of the data."""
    rest = (1 - settings.train_fraction) / 2
    return split(len(data), (settings.train_fraction, rest, rest), settings.seed)


def plan(
    data: Any,
    objective: str | Mapping[str, Any] | AbstractObjective = "vae",
    net: Any = "auto",
    n_latents: Any = 10,
    posterior: Any = "auto",
    prior: Any = "auto",
    likelihood: Any = "auto",
    initialisation: Initialisation = "glorot",
    **options: Any,
) -> RunPlan:
    """Check a whole training run without doing any of it; arguments as in :func:`train`."""
    if isinstance(data, str):
        raise InputError(f"data must be a dataset or an array, got {data!r}; use load_dataset({data!r}).")
    if not isinstance(data, AbstractDataset):
        data = from_arrays(data)
    chosen = choose(data, objective, net, posterior, prior, likelihood)
    routed = route(chosen, options)
    if {"steps", "epochs"} <= set(routed["training"]):
        raise InputError("steps and epochs both say how long to train; give one of them.")
    if isinstance(n_latents, bool) or not isinstance(n_latents, int | np.integer):
        raise InputError(f"n_latents must be an integer, got {n_latents!r}.")
    concepts = {kind: build(FAMILIES[kind], choice, routed[kind]) for kind, choice in chosen.items()}
    settings = TrainSettings(**check_options("training", TrainSettings, routed["training"]))
    if concepts["likelihood"].needs_unit_interval and not data.is_unit_interval:
        raise InputError(
            f"likelihood {label(chosen['likelihood'])!r} needs values in [0, 1], which {data.name} does not promise; "
            "use likelihood='gaussian'."
        )
    if initialisation not in Initialisation.__args__:  # type: ignore[attr-defined]
        raise InputError(unknown("initialisation", str(initialisation), Initialisation.__args__))  # type: ignore[attr-defined]
    blueprint = Blueprint(
        net=concepts["net"],
        posterior=concepts["posterior"],
        prior=concepts["prior"],
        likelihood=concepts["likelihood"],
        n_latents=int(n_latents),
        shape=tuple(data.shape),
        initialisation=initialisation,
        n_auxiliary=n_auxiliary(concepts["prior"], data),
        decodes=concepts["objective"].trains_decoder,
    )
    settings = settings.resolved(len(split_of(data, settings).train))
    check_objective(concepts["objective"], data, blueprint, settings)
    return RunPlan(data, concepts["objective"], blueprint, settings)


def choose(
    data: AbstractDataset,
    objective: Any = "vae",
    net: Any = "auto",
    posterior: Any = "auto",
    prior: Any = "auto",
    likelihood: Any = "auto",
) -> dict[str, Any]:
    """What ``auto`` stands for, given the data and the objective; everything else as it came."""
    is_conv = len(data.shape) == 3 and data.shape[1] % 16 == data.shape[2] % 16 == 0
    usual = {
        "net": "conv" if is_conv else for_table(len(data)),
        "posterior": "diagonal",
        "prior": "isotropic",
        "likelihood": "bernoulli" if data.is_unit_interval else "gaussian",
        **concept_of("objective", objective).defaults,
    }
    given = {"net": net, "posterior": posterior, "prior": prior, "likelihood": likelihood}
    choices = {
        kind: usual[kind] if isinstance(choice, str) and choice == "auto" else choice
        for kind, choice in given.items()
    }
    return {"objective": objective, **choices}


def n_auxiliary(prior: AbstractPrior, data: AbstractDataset) -> int:
    """Width of the auxiliary variable: the factors, where the prior is conditional."""
    if not prior.is_conditional:
        return 0
    if not data.factor_names:
        raise InputError(
            f"a conditional prior needs auxiliary data, and {data.name} has no factors or labels; pass factors= when "
            "you make the dataset, or choose another objective."
        )
    return len(data.factor_names)


def check_objective(
    objective: AbstractObjective, data: AbstractDataset, blueprint: Blueprint, settings: TrainSettings
) -> None:
    """Refuse what the objective cannot be trained with, before anything is written."""
    name = objectives.name_of(objective)
    if objective.needs_density and not blueprint.posterior.has_density:
        raise InputError(
            f"objective {name!r} has a rate, which a deterministic encoder does not have; use posterior='diagonal'."
        )
    if "pairs" in objective.needs:
        Transition.check(data)
    if "labels" in objective.needs:
        class_labels(data, np.zeros(1, dtype=np.int64))
    objective.check(data, blueprint, settings.batch_size)


def train(
    data: Any,
    objective: str | Mapping[str, Any] | AbstractObjective = "vae",
    net: Any = "auto",
    n_latents: Any = 10,
    *,
    out: str | Path | None = None,
    device: Any = "auto",
    progress: bool | Listener = False,
    tensorboard: bool = False,
    **options: Any,
) -> Model:
    """Train a model on ``data``; with ``out``, as a run on disk that resumes where it was stopped.

    ``data`` is a dataset, or an array of observations as :func:`polariscope.from_arrays` takes it.
    ``objective`` and ``net`` (and ``posterior``, ``prior``, ``likelihood``) are names, mappings
    ``{"name": …, option: …}`` or objects. Their options and those of :class:`TrainSettings` are given by name:
    ``train(data, objective="beta", beta=4.0, steps=20_000, seed=0)``; where two parts have an option of the
    same name, put the part in front: ``prior_scale=2.0``. ``net="auto"`` is ``conv`` for images divisible by 16,
    else ``mlp`` with two layers of up to 128 units (:func:`polariscope.models.nets.mlp.for_table`);
    ``likelihood="auto"`` is ``bernoulli`` for values in [0, 1], else ``gaussian``.
    ``progress`` shows a live line, or is a function called after every step.

    Called again with the same ``out``: a finished run is loaded, an unfinished one resumed bit for bit, a
    longer one (more ``steps``) continued, and one with other settings refused.
    """
    job = plan(data, objective, net, n_latents, **options)
    place = choose_device(device)
    listeners: list[Listener] = [progress] if callable(progress) else []
    writer = _summary_writer() if tensorboard else None
    if out is None:
        if tensorboard:
            raise InputError("tensorboard needs a place to write to; give out= as well.")
        return _train(job, place, None, listeners, show=progress is True)
    record = job.describe(str(place))  # before anything is written
    with RunFolder(out) as run:
        begun = run.check(record)
        if begun and run.model_file.exists():
            _, metadata = files.read_tensors(run.model_file)
            if metadata.get("step") == job.settings.steps:
                return load_model(run.path, device=str(place))
        run.write_settings(record)
        if writer is not None:
            listeners.append(tensorboard_listener(writer(str(run.path / "tensorboard"))))
        try:
            return _train(job, place, run, listeners, show=progress is True)
        except Exception:
            if not begun:
                run.forget()
            raise


def _train(
    job: RunPlan, device: torch.device, run: RunFolder | None, listeners: list[Listener], show: bool
) -> Model:
    if device.type == "cpu":
        keep_freed_memory()
    model = job.blueprint.build(job.settings.seed, job.data).settle(device)
    if show:
        from polariscope.training.listeners import ProgressLine

        with ProgressLine(job.settings.steps) as line:
            state = fit(model, job.objective, job.data, job.split, job.settings, run, (*listeners, line))
    else:
        state = fit(model, job.objective, job.data, job.split, job.settings, run, tuple(listeners))
    if run is not None:
        model.save(run.model_file, step=state.step)
        model.folder = run.path
    return model


def route(chosen: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Give each option to the part that has it: training, or one of the chosen concepts.

    A name that two parts share must carry the part in front (``prior_scale``).
    """
    owners = {"training": options_of(TrainSettings)}
    for kind, choice in chosen.items():
        owners[kind] = options_of(concept_of(kind, choice))
    routed: dict[str, dict[str, Any]] = {owner: {} for owner in owners}
    for key, value in options.items():
        matches = [(owner, key) for owner, known in owners.items() if key in known]
        matches += [
            (owner, key.removeprefix(f"{owner}_"))
            for owner, known in owners.items()
            if key.startswith(f"{owner}_") and key.removeprefix(f"{owner}_") in known
        ]
        if not matches:
            every = {name for known in owners.values() for name in known} | {
                "n_latents",
                "net",
                "initialisation",
            }
            parts = ", ".join(f"{kind} {label(choice)}" for kind, choice in chosen.items())
            raise InputError(f"{unknown('option', key, every)} (The parts chosen are {parts}.)")
        if len(matches) > 1:
            forms = " or ".join(f"{owner}_{name}" for owner, name in matches)
            raise InputError(f"option {key!r} belongs to more than one part; say {forms}.")
        owner, name = matches[0]
        routed[owner][name] = value
    return routed


def concept_of(kind: str, choice: Any) -> Any:
    """The class of a concept given by name, as a mapping or as an object."""
    name = choice.get("name") if isinstance(choice, Mapping) else choice
    if isinstance(name, str):
        return FAMILIES[kind][name]
    if inspect.isclass(name) or not dataclasses.is_dataclass(name):
        raise InputError(
            f"{kind} must be a name, a mapping with a 'name', or an object of the family, got {choice!r}."
        )
    return type(name)


def label(choice: Any) -> str:
    """The name of a concept given by name, as a mapping or as an object.

    >>> label("conv"), label({"name": "mlp", "activation": "tanh"})
    ('conv', 'mlp')
    """
    choice = choice.get("name") if isinstance(choice, Mapping) else choice
    return choice if isinstance(choice, str) else type(choice).__name__


def choose_device(device: Any) -> torch.device:
    """``auto``: a GPU if there is one, else the CPU; anything else as PyTorch names it."""
    if device == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    try:
        place = torch.device(device)
        torch.empty(0, device=place)
    except (RuntimeError, AssertionError, TypeError):
        raise InputError(
            f"device must be auto, or one of cpu, cuda, mps that this machine has, got {device!r}."
        ) from None
    return place


def _summary_writer() -> Any:
    """TensorBoard's writer, asked for before anything is written."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise InputError(
            "tensorboard is not installed; install it with pip install 'polariscope[tensorboard]' or leave the "
            "option out."
        ) from None
    return SummaryWriter


def tensorboard_listener(writer: Any) -> Listener:
    """Writes each line of the log as TensorBoard events."""

    def listen(step: int, line: dict[str, Any] | None) -> None:
        if line is None:
            return
        scalars = {
            "loss": line["loss"],
            "trace": line["trace"],
            **{f"terms/{name}": value for name, value in line["terms"].items()},
            **{f"latents/{kind}": line[kind] for kind in ("active", "mixed", "passive")},
            **{f"validation/{name}": value for name, value in line.get("validation", {}).items()},
        }
        for name, value in scalars.items():
            writer.add_scalar(name, value, step)
        writer.flush()

    return listen
