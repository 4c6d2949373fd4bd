"""Plans of training runs, which are checked completely before training starts."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import inspect
import platform
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import torch

from polariscope import __version__
from polariscope.core.errors import Argument, InputError, unknown
from polariscope.core.option_values import convert
from polariscope.core.options import build, check_options, options_of, to_record
from polariscope.core.options import route as route_options
from polariscope.core.records import to_plain
from polariscope.core.types import OptionValue
from polariscope.data.chain import VariantsLike, apply_variants, in_default_units, shorthands
from polariscope.data.counts import check_counts
from polariscope.data.data_like import DataLike
from polariscope.data.dataset import AbstractDataset
from polariscope.data.missing import Missing
from polariscope.data.pairs import Transition
from polariscope.data.splits import Split
from polariscope.data.streamed_statistics import mean_variance
from polariscope.models.likelihoods import AbstractLikelihood
from polariscope.models.likelihoods import family as likelihoods
from polariscope.models.model import Blueprint
from polariscope.models.nets import AbstractNet, Initialisation, conv
from polariscope.models.nets import family as nets
from polariscope.models.nets.mlp import for_table
from polariscope.models.posteriors import AbstractPosterior
from polariscope.models.posteriors import family as posteriors
from polariscope.models.priors import AbstractPrior
from polariscope.models.priors import family as priors
from polariscope.numerics.rounding import significant
from polariscope.objectives import AbstractObjective
from polariscope.objectives import family as objectives
from polariscope.storage import FORMAT, RUN
from polariscope.storage.documents import settings_hash
from polariscope.storage.folder import RunFolder
from polariscope.training.choices import choices, split_choices, training_choices
from polariscope.training.feed import class_labels
from polariscope.training.likelihood import likelihood_of
from polariscope.training.planner import Pace, planned_training
from polariscope.training.settings import TrainSettings

if TYPE_CHECKING:
    PartLike: TypeAlias = (
        str
        | Mapping[str, object]
        | AbstractObjective
        | AbstractNet
        | AbstractPosterior
        | AbstractPrior
        | AbstractLikelihood
    )
    """An objective, net, posterior, prior or likelihood: its name, a mapping with name and options, or an object."""
else:
    # Other objects are refused with a message that names the remedy, so they must reach the function.
    PartLike = object

FAMILIES = {
    "objective": objectives,
    "net": nets,
    "posterior": posteriors,
    "prior": priors,
    "likelihood": likelihoods,
}


@dataclasses.dataclass(frozen=True)
class RunPlan:
    """A checked training run; nothing has been written yet."""

    data: AbstractDataset
    objective: AbstractObjective
    blueprint: Blueprint
    settings: TrainSettings
    chosen: tuple[str, ...] = ()
    """Choices made for the user, in a few words each."""

    @property
    def feature_variance(self) -> float | None:
        """Mean variance of the features of a table in the units of the model; None for images."""
        return mean_variance(self.data) if len(self.data.shape) == 1 and self.blueprint.decodes else None

    @functools.cached_property
    def split(self) -> Split:
        """Training, validation and test indices of the run."""
        return self.settings.split_of(self.data)

    def describe(self, device: str, threads: Mapping[str, object] | None = None) -> dict[str, Any]:
        """Return the contents of settings.json.

        :param device: device of the training.
        :param threads: (default None: the current number of PyTorch) record of the number of threads, which is not
            part of the hash.
        """
        record: dict[str, Any] = {
            "format": FORMAT,
            "polariscope": __version__,
            "data": {**self.data.describe(), "fingerprint": self.data.fingerprint},
            "objective": to_record(self.objective, objectives),
            "model": self.blueprint.describe(),
            "training": to_plain(self.settings.describe()),
            "training_identity": to_plain(self.settings.identity()),
        }
        record["hash"] = settings_hash(record)
        # None of the entries below is part of the hash.
        record["n_observations"] = len(self.data)
        record["split"] = self.settings.split_in_words(self.data, self.split)
        if (feature_variance := self.feature_variance) is not None:
            record["feature_variance"] = significant(feature_variance)
        record["caution"] = self.objective.caution  # a warning that reports show for such models
        if self.objective.training:
            record["defaults_of_objective"] = sorted(self.objective.training)  # options with other defaults
        used: Mapping[str, object] = {"threads": torch.get_num_threads()} if threads is None else threads
        count = used["threads"]
        record["chosen"] = [*self.chosen, f"{count} thread{'s' if count != 1 else ''}"]
        record["environment"] = {
            "python": platform.python_version(),
            "torch": torch.__version__,
            "numpy": np.__version__,
            **used,
            "device": device,
        }
        return record


def plan(
    data: DataLike,
    objective: str | Mapping[str, object] | AbstractObjective = "vae",
    net: str | Mapping[str, object] | AbstractNet = "auto",
    n_latents: OptionValue = 10,
    posterior: str | Mapping[str, object] | AbstractPosterior = "auto",
    prior: str | Mapping[str, object] | AbstractPrior = "auto",
    likelihood: str | Mapping[str, object] | AbstractLikelihood = "auto",
    initialisation: Initialisation = "glorot",
    *,
    variants: VariantsLike = (),
    standardise: bool = False,
    scale: bool = False,
    keep_units: bool = False,
    missing: Missing = "refuse",
    recorded: Mapping[str, Any] | None = None,
    pace: Pace | None = None,
    **options: OptionValue,
) -> RunPlan:
    """Check a whole training run without training; other arguments as in :func:`train`.

    :param recorded: (default None: a new run) settings of the resumed run. Its net, likelihood, learning rate, batch
        size and length take precedence over the planner's, but not over arguments of the caller.
    :param pace: (default None: the planner's) default learning rate, batch size and length of a new run.
    """
    shorthands(standardise=standardise, scale=scale, keep_units=keep_units)
    data = apply_variants(data, variants, standardise=standardise, scale=scale, missing=missing)
    suitable = None
    if is_auto(likelihood):
        decodes = concept_of("objective", objective).trains_decoder
        before = None if recorded is None else recorded["model"]["likelihood"]["name"]
        suitable = likelihood_of(data, decodes=decodes, recorded=before)
    recorded_net = _recorded_net(recorded, data) if is_auto(net) else None
    selected = choose(
        data,
        objective,
        net if recorded_net is None else recorded_net,
        posterior,
        prior,
        likelihood if suitable is None else suitable.name,
    )
    # The likelihood is chosen in the original units and comes first, because counts and values in [0, 1] keep theirs.
    data = units_for(data, selected["likelihood"], keep_units=keep_units)
    routed = route(selected, options)
    if "steps" in routed["training"] and routed["training"].get("epochs") not in (None, "none"):
        raise InputError(
            problem=(Argument("steps"), " and ", Argument("epochs"), " both set the length of training"),
            remedy="pass one of them",
        )
    n_latents = _as_count(n_latents)
    concepts: dict[str, Any] = {}
    # The objective comes first in `selected`; the defaults of the likelihood depend on it.
    for kind, choice in selected.items():
        with _named_as_passed(kind, options):
            if kind == "likelihood" and not isinstance(choice, AbstractLikelihood):
                choice = likelihood_for(data, choice, routed[kind], concepts["objective"])
                concepts[kind] = build(FAMILIES[kind], choice)
            else:
                concepts[kind] = build(FAMILIES[kind], choice, routed[kind])
    with _named_as_passed("training", options):
        objective_options = training_defaults(concepts["objective"], routed["training"])
        named = check_options("training", TrainSettings, {**objective_options, **routed["training"]})
        before = None if recorded is None else recorded["training"]
        planned = planned_training(data, concepts["net"], named, before, pace)
        settings = TrainSettings(**{**planned.options, **named})
    if concepts["likelihood"].needs_unit_interval and not (
        data.is_unit_interval or data.value_facts.is_binary
    ):
        raise InputError(
            problem=(
                f"likelihood {label(selected['likelihood'])!r} requires values in [0, 1], which {data.name} "
                "does not guarantee"
            ),
            remedy=("use ", Argument("likelihood", "gaussian")),
        )
    if concepts["likelihood"].needs_counts:
        check_counts(data)
    if initialisation not in Initialisation.__args__:  # type: ignore[attr-defined]
        raise unknown("initialisation", str(initialisation), Initialisation.__args__)  # type: ignore[attr-defined]
    blueprint = Blueprint(
        net=concepts["net"],
        posterior=concepts["posterior"],
        prior=concepts["prior"],
        likelihood=concepts["likelihood"],
        n_latents=n_latents,
        shape=tuple(data.shape),
        initialisation=initialisation,
        n_auxiliary=n_auxiliary(concepts["prior"], data),
        decodes=concepts["objective"].trains_decoder,
        normalises=concepts["objective"].normalises_decoder,
    )
    settings = settings.for_data(data)
    parts = settings.split_of(data)
    # After the split, because an epoch is a pass over its training part.
    settings = settings.resolved(len(parts.train))
    check_objective(concepts["objective"], data, blueprint, settings)
    check_patience(concepts["objective"], settings, parts)
    arguments = {"net": net, "posterior": posterior, "prior": prior, "likelihood": likelihood}
    messages = choices(arguments, blueprint, routed["likelihood"], suitable)
    messages += training_choices(objective_options) + planned.in_words
    messages += split_choices(
        settings.split_in_words(data, parts), by_column=settings.split_column is not None
    )
    return RunPlan(data, concepts["objective"], blueprint, settings, (*data.choices, *messages))


def _as_count(n_latents: OptionValue) -> int:
    """Return the number of latents as an integer; texts are converted like those of other options."""
    try:
        return convert(n_latents, int)
    except ValueError:
        raise InputError("n_latents", "be an integer", got=f"{n_latents!r}") from None


def _recorded_net(recorded: Mapping[str, Any] | None, data: AbstractDataset) -> Mapping[str, Any] | None:
    """Return the net of the resumed run; None for a new run, or if the observations have another shape."""
    if recorded is None or tuple(recorded["model"]["shape"]) != tuple(data.shape):
        return None
    return recorded["model"]["net"]


def recorded_settings(out: str | Path | RunFolder | None) -> Mapping[str, Any] | None:
    """Return the settings of the run that is resumed in this folder; None for a new run.

    :param out: folder of the run; None if nothing is written.
    """
    if out is None:
        return None
    folder = out if isinstance(out, RunFolder) else RunFolder(out)
    # Settings without a model or checkpoint are left from a run that failed early, and need not be kept.
    has_model = folder.is_begun and (folder.checkpoints.steps or folder.model_file.exists())
    return folder.settings if has_model and folder.kind == RUN else None


def choose(
    data: AbstractDataset,
    objective: PartLike = "vae",
    net: PartLike = "auto",
    posterior: PartLike = "auto",
    prior: PartLike = "auto",
    likelihood: PartLike = "auto",
) -> dict[str, Any]:
    """Return the parts that ``auto`` selects for the data and the objective; other arguments are returned unchanged."""
    concept = concept_of("objective", objective)
    if is_auto(likelihood):
        likelihood = likelihood_of(data, decodes=concept.trains_decoder).name
    defaults: dict[str, Any] = {
        "net": "conv"
        if conv.takes(data.shape)
        else for_table(len(data), is_discrete=_is_discrete(data, likelihood)),
        "posterior": "diagonal",
        "prior": "isotropic",
        # After the general defaults, because those of the objective take precedence.
        **concept.defaults,
    }
    arguments = {"net": net, "posterior": posterior, "prior": prior, "likelihood": likelihood}
    choices = {kind: defaults[kind] if is_auto(choice) else choice for kind, choice in arguments.items()}
    return {"objective": objective, **choices}


def _is_discrete(data: AbstractDataset, likelihood: PartLike) -> bool:
    """Return whether a table is modelled as counts, or as 0 and 1."""
    concept = concept_of("likelihood", likelihood)
    if len(data.shape) != 1:
        return False
    return concept.needs_counts or (concept.needs_unit_interval and data.value_facts.is_binary)


def is_auto(choice: object) -> bool:
    """Return True if a part of the model is left to the planner.

    :param choice: argument of the caller.
    """
    return isinstance(choice, str) and choice == "auto"


def units_for(
    data: AbstractDataset, likelihood: PartLike, *, keep_units: OptionValue = False
) -> AbstractDataset:
    """Return the data in the units in which they are trained.

    Counts do not change for a likelihood of counts, nor values in [0, 1] for a likelihood of such values.

    :param data: the dataset, with the requested variants.
    :param likelihood: the selected likelihood, by name, as a mapping or as an object.
    :param keep_units: (default False) if True, the data are returned unchanged in any case.
    """
    concept = concept_of("likelihood", likelihood)
    return in_default_units(
        data, keep_units=keep_units or concept.needs_counts or concept.needs_unit_interval
    )


def likelihood_for(
    data: AbstractDataset, choice: PartLike, options: Mapping[str, object], objective: AbstractObjective
) -> dict[str, Any]:
    """Return the likelihood with its options as a mapping; missing options are chosen for the data.

    Objectives without a rate keep the likelihood's own defaults, because their weights are relative to those.

    :param data: the training data.
    :param choice: its name, or a mapping with a name and options.
    :param options: further options of the caller.
    :param objective: the objective.
    """
    concept = concept_of("likelihood", choice)
    in_choice = (
        {key: value for key, value in choice.items() if key != "name"} if isinstance(choice, Mapping) else {}
    )
    name = label(choice)
    checked = check_options(f"likelihood {name!r}", concept, {**in_choice, **options})
    has_rate = objective.needs_density and objective.trains_decoder
    return {"name": name, **(concept.options_for(data, checked) if has_rate else checked)}


def training_defaults(objective: AbstractObjective, named: Mapping[str, object]) -> dict[str, str | float]:
    """Return the objective's own defaults of the training options that the caller did not pass.

    They belong to its optimiser, so none of them is used with another optimiser.

    :param objective: the objective.
    :param named: options of the training that the caller passed.
    """
    defaults = objective.training
    if "optimiser" in named and str(named["optimiser"]) != str(defaults.get("optimiser")):
        return {}
    return {name: value for name, value in defaults.items() if name not in named}


def n_auxiliary(prior: AbstractPrior, data: AbstractDataset) -> int:
    """Return the width of the auxiliary variable: the number of factors if the prior is conditional, otherwise 0."""
    if not prior.is_conditional:
        return 0
    if not data.factor_names:
        raise InputError(
            problem=f"a conditional prior requires auxiliary data, and {data.name} has no factors or labels",
            remedy="pass factors when you create the dataset, or choose another objective",
        )
    return len(data.factor_names)


def check_objective(
    objective: AbstractObjective, data: AbstractDataset, blueprint: Blueprint, settings: TrainSettings
) -> None:
    """Raise an error if the objective does not support the data or the model, before anything is written."""
    name = objectives.name_of(objective)
    if objective.needs_density and not blueprint.posterior.has_density:
        raise InputError(
            problem=f"objective {name!r} has a rate, which a deterministic encoder does not have",
            remedy=("use ", Argument("posterior", "diagonal")),
        )
    if "pairs" in objective.needs:
        Transition.check(data)
    if "labels" in objective.needs:
        # Called for its error: a dataset without discrete factors is refused.
        class_labels(data, np.zeros(1, dtype=np.int64))
    objective.check(data, blueprint, settings.batch_size)


def check_patience(objective: AbstractObjective, settings: TrainSettings, parts: Split) -> None:
    """Raise an error if early stopping is requested without a held-out loss to monitor.

    :param objective: the objective.
    :param settings: settings of the training.
    :param parts: training, validation and test indices.
    """
    if not settings.patience:
        return
    problem: str | None = None
    if not objective.has_held_out_loss:
        name = objectives.name_of(objective)
        problem = f"objective {name!r} is a game with an adversary, without a loss that shows improvement"
    elif not parts.is_held_out:
        problem = "no observations are held out for validation"
    if problem is not None:
        raise InputError(
            problem=(Argument("patience"), f" requires a held-out loss, but {problem}"),
            remedy=("leave ", Argument("patience"), " out")
            if parts.is_held_out
            else ("pass a ", Argument("train_fraction"), " below 1, or leave ", Argument("patience"), " out"),
        )


OTHERS = ("n_latents", "net", "initialisation", "variants", "standardise", "scale", "keep_units", "missing")
"""Arguments of :func:`plan` that are not options of a part, for suggestions."""


def route(selected: Mapping[str, PartLike], options: Mapping[str, object]) -> dict[str, dict[str, Any]]:
    """Assign each option to the part that has it: training, or one of the selected concepts.

    A name that two parts share requires the part as prefix (``prior_scale``).
    """
    owners = {"training": options_of(TrainSettings)}
    for kind, choice in selected.items():
        owners[kind] = options_of(concept_of(kind, choice))

    def refuse(key: str) -> InputError:
        every = {name for known in owners.values() for name in known} | {*OTHERS}
        parts = ", ".join(f"{kind} {label(choice)}" for kind, choice in selected.items())
        return unknown("option", key, every, f"The selected parts are {parts}.")

    routed: dict[str, dict[str, Any]] = {owner: {} for owner in owners}
    for key, (owner, name) in route_options(options, owners, refuse).items():
        routed[owner][name] = options[key]
    return routed


@contextlib.contextmanager
def _named_as_passed(part: str, options: Mapping[str, object]) -> Iterator[None]:
    """Keep the prefix of an option that was passed with its part (``prior_scale``) in error messages."""
    try:
        yield
    except InputError as error:
        prefix = f"{part}_"
        arguments = {key.removeprefix(prefix): Argument(key) for key in options if key.startswith(prefix)}
        raise error.renamed(arguments) from None


def concept_of(kind: str, choice: PartLike) -> Any:
    """Return the class of a concept that is passed by name, as a mapping or as an object."""
    name = choice.get("name") if isinstance(choice, Mapping) else choice
    if isinstance(name, str):
        return FAMILIES[kind][name]
    # A class of the family is a dataclass, too, but it has no values for its options.
    if inspect.isclass(name) or not dataclasses.is_dataclass(name):
        raise InputError(
            kind, "be a name, a mapping with a 'name', or an object of the family", got=f"{choice!r}"
        )
    return type(name)


def label(choice: PartLike) -> str:
    """Return the name of a concept that is passed by name, as a mapping or as an object.

    >>> label("conv"), label({"name": "mlp", "activation": "tanh"})
    ('conv', 'mlp')
    """
    name = choice.get("name") if isinstance(choice, Mapping) else choice
    return name if isinstance(name, str) else type(name).__name__
