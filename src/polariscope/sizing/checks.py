"""Checks of data and options before models are trained."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral
from typing import Any

import numpy as np

from polariscope.core.errors import Argument, Either, InputError
from polariscope.core.options import build, check_options, options_of
from polariscope.core.types import OptionValue
from polariscope.data.dataset import AbstractDataset
from polariscope.models.priors.isotropic import IsotropicPrior
from polariscope.sizing.goal import Goal, Target
from polariscope.sizing.methods import family
from polariscope.training.plan import FAMILIES, RunPlan, choose, concept_of, label, plan, route, units_for
from polariscope.training.planner import IMAGES, Planned
from polariscope.training.settings import TrainSettings

BETA = Either(Argument("target", "beta"), "'polariscope size-beta'")
"""Name of the search for the largest β in messages."""
MAX_RMS = 25.0
"""Root mean square of a column above which the default networks diverge (rows of 30 do in one step)."""
BOUNDS = {name: option.default for name, option in options_of(Goal).items()}
"""Options of the goal, with their defaults."""


def own_options(method: str) -> set[str]:
    """Return the names of the options that only this method has."""
    return set(options_of(family[method]))


def split_options(
    method: str, options: Mapping[str, object]
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Split the options of ``size`` into options of the goal, of the method and of the models.

    An option of another method raises an error.
    """
    own = own_options(method)
    for name in options:
        homes = [each for each in family if name in own_options(each)]
        if homes and method not in homes:
            raise InputError(
                problem=(
                    f"{name} is an option of method {' and '.join(map(repr, homes))}, and the method is "
                    f"{method!r}"
                ),
                remedy="leave it out",
            )
    bounds = {name: value for name, value in options.items() if name in BOUNDS}
    for_method = {name: value for name, value in options.items() if name in own}
    recipe = {name: value for name, value in options.items() if name not in BOUNDS and name not in own}
    return bounds, check_options(f"sizing method {method!r}", family[method], for_method), recipe


def used_by(method: str) -> set[str]:
    """Return the options of the goal that a method uses."""
    traits = family.traits(method)
    used = {*traits["uses"]}
    used |= {"learning_rate"} if traits["trains"] else set()
    return used | ({"threshold"} if traits["threshold"] == "goal" else set())


def supported_options(
    method: str, options: Mapping[str, object], among: Iterable[str] = ()
) -> dict[str, Any]:
    """Return the options without those that a method does not use.

    :param method: name of the method
    :param options: options for all methods
    :param among: all methods to run; options that only one of them has are left out for the others
    """
    theirs = {*BOUNDS}.union(*map(own_options, among))
    used = used_by(method) | own_options(method)
    # Options outside `theirs` belong to the models, and are passed to every method.
    return {name: value for name, value in options.items() if name not in theirs or name in used}


def check_used(method: str, target: Target, bounds: Mapping[str, object]) -> None:
    """Reject an option of the goal that would be ignored."""
    used = {"threshold", "steps", "learning_rate"} if target == "beta" else used_by(method)
    user = "target 'beta'" if target == "beta" else f"method {method!r}"
    for name, value in bounds.items():
        # All options of the goal arrive here, so only other values than the default were passed by the caller.
        if name not in used and value != BOUNDS[name]:
            raise InputError(problem=(Argument(name), f" is not used by {user}"), remedy="leave it out")


def check_bounds_used(
    options: Mapping[str, object], methods: Sequence[str], also: Sequence[str] = ()
) -> None:
    """Reject an option of the goal that none of several methods uses.

    :param options: options for all methods
    :param methods: names of the methods
    :param also: (default none) options of the goal that are used elsewhere
    """
    used = {*also}.union(*map(used_by, methods))
    for name, default in BOUNDS.items():
        if name not in used and options.get(name, default) != default:
            users = f"the methods {', '.join(methods)}" if methods else "curves without a method"
            raise InputError(problem=(Argument(name), f" is not used by {users}"), remedy="leave it out")


def make_goal(bounds: Mapping[str, object], data: AbstractDataset, recipe: Mapping[str, Any]) -> Goal:
    """Return the goal of a search, with its options checked.

    :param bounds: options by name, the fields of :class:`~polariscope.sizing.goal.Goal`
    :param data: the data to size
    :param recipe: options of the models
    """
    chosen = choose(data, **{part: recipe[part] for part in FAMILIES if part in recipe})
    net_rate = concept_of("net", chosen["net"]).sizing_rate
    checked = check_options("the search", Goal, bounds)
    goal = Goal(**checked, images=len(data.shape) == 3, net_rate=net_rate)
    if goal.n_init is not None and goal.n_init > goal.cap:
        raise InputError("n_init", ("be at most ", Argument("cap")), got=f"{goal.n_init} and {goal.cap}")
    if goal.steps is not None and goal.epochs is not None:
        raise InputError(
            problem=(
                Argument("steps"),
                " and ",
                Argument("epochs"),
                " cannot be combined: each sets the length of training",
            ),
            remedy="use one of them",
        )
    return goal


def check_varies(data: AbstractDataset) -> None:
    """Reject observations that are all the same: there is nothing to encode."""
    # Evenly spread, because the first rows of a sorted dataset can be alike.
    rows = data.values(np.linspace(0, len(data) - 1, min(1000, len(data)), dtype=np.int64))
    if (rows == rows[0]).all():
        raise InputError("data", f"vary, but the {len(rows)} observations that were checked are all the same")


def check_units(data: AbstractDataset, recipe: Mapping[str, Any]) -> None:
    """Reject tables with values so large, or so far from 0, that a network diverges on them in its first steps.

    Counts are exempt, because networks receive their logarithm.

    :param data: the training data
    :param recipe: options of the models
    """
    chosen = choose(data, **{part: recipe[part] for part in FAMILIES if part in recipe})
    if len(data.shape) == 3 or concept_of("likelihood", chosen["likelihood"]).needs_counts:
        return
    rows = data.values(np.linspace(0, len(data) - 1, min(1000, len(data)), dtype=np.int64))
    # The squares of large float32 values overflow.
    size = float(np.sqrt((rows.astype(np.float64) ** 2).mean(axis=0).max()))
    if size > MAX_RMS:
        raise InputError(
            "data",
            "be in units in which values are near 1",
            got=f"a column whose values are about {size:.3g}, on which networks diverge",
            remedy=(
                "leave ",
                Argument("keep_units"),
                " out, or rescale each column to mean 0 and standard deviation 1 with ",
                Argument("standardise", True),
            ),
        )


def trained_units(
    data: AbstractDataset, recipe: Mapping[str, Any], *, keep_units: OptionValue = False
) -> AbstractDataset:
    """Return the data in the units in which models are trained, so all models share them.

    :param data: the dataset, with its variants
    :param recipe: options of the models
    :param keep_units: (default False) if True, the data keep their units
    """
    chosen = choose(data, **{part: recipe[part] for part in FAMILIES if part in recipe})
    return units_for(data, chosen["likelihood"], keep_units=keep_units)


def check_recipe(data: AbstractDataset, method: str, recipe: dict[str, Any], goal: Goal) -> tuple[str, ...]:
    """Check that models have the quantities that a method measures; return descriptions of automatic choices.

    :param data: the data to size
    :param method: a name of ``polariscope.sizing``
    :param recipe: options of the models
    :param goal: the goal, for the learning rate
    """
    if not family.traits(method)["trains"]:
        _check_unused(data, recipe)
        return data.choices
    # The method determines learning rate and length, so the plan must not choose (and announce) them; see pace below.
    job = plan(data, n_latents=1, **{**IMAGES.to_dict(), **recipe, "steps": 400})
    others = ", ".join(name for name in family if not family.traits(name)["needs_variances"])
    needs_variances = family.traits(method)["needs_variances"]
    if needs_variances and not job.blueprint.posterior.has_density:
        raise InputError(
            problem=(
                f"method {method!r} requires posterior variances, which a deterministic encoder does not have"
            ),
            remedy=(
                "use ",
                Argument("objective", "vae"),
                f" (the answer suits autoencoders as well), or a method that does not: {others}",
            ),
        )
    check_models(job, recipe)
    if needs_variances and not isinstance(job.blueprint.prior, IsotropicPrior):
        raise InputError(
            problem=f"method {method!r} compares posterior variances with the prior N(0, I)",
            got="another prior",
            remedy=("leave ", Argument("prior"), " out"),
        )
    pace = {"learning_rate": rate_of(method, goal), "batch_size": job.settings.batch_size}
    return job.chosen + Planned({name: pace[name] for name in pace if name not in recipe}, {}).in_words


def rate_of(method: str, goal: Goal) -> float:
    """Return the learning rate of the models that a method trains.

    :param method: a name of ``polariscope.sizing``
    :param goal: the goal of the search
    """
    kind = family.traits(method).get("rate", "published")
    published = goal.learning_rate or IMAGES.learning_rate
    return {"sizing": goal.careful_rate(), "quick": goal.rate(), "published": published}[kind]


def check_models(job: RunPlan, recipe: Mapping[str, Any]) -> None:
    """Reject models that no method can size.

    :param job: the plan of a model's training
    :param recipe: options of the models
    """
    if not job.blueprint.decodes:
        raise InputError(
            problem=(
                f"objective {label(recipe['objective'])!r} does not train a decoder, so there is nothing to size"
            ),
            remedy=("use ", Argument("objective", "vae")),
        )
    if job.settings.schedule != "constant":
        raise InputError(
            problem=(
                f"sizing trains a model until it is decided, and schedule {job.settings.schedule!r} requires the "
                "number of steps in advance"
            ),
            remedy=("leave ", Argument("schedule"), " out"),
        )
    if job.settings.patience:
        raise InputError(
            problem=(
                "sizing trains a model until it is decided, and ",
                Argument("patience"),
                " would stop it earlier",
            ),
            remedy=("leave ", Argument("patience"), " out"),
        )


def _check_unused(data: AbstractDataset, recipe: Mapping[str, Any]) -> None:
    """Reject unknown and invalid options of models, although no model is trained.

    Valid options are ignored, because they can be meant for other methods of the same call.
    """
    chosen = choose(data, **{part: recipe[part] for part in FAMILIES if part in recipe})
    # Arguments of plan and train that are not options of a part.
    known = (*FAMILIES, "initialisation", "device", "threads", "keep_units")
    routed = route(chosen, {name: value for name, value in recipe.items() if name not in known})
    for part, choice in chosen.items():
        build(FAMILIES[part], choice, routed[part])
    check_options("training", TrainSettings, routed["training"])


def check_seeds(seeds: object) -> None:
    """Check the number of seeds.

    :param seeds: the number of seeds
    """
    if isinstance(seeds, bool) or not isinstance(seeds, Integral) or seeds < 1:
        raise InputError("seeds", "be an integer from 1", got=f"{seeds!r}")


def check_call(
    method: str, target: str, n_latents: int | None, seeds: object, recipe: dict[str, OptionValue]
) -> Target:
    """Check the arguments of ``size`` against each other, and return the target."""
    if not isinstance(method, str):
        raise InputError(
            "method",
            "be one name",
            got=f"{method!r}",
            remedy=Either("compare_sizes runs several", "'polariscope size-compare' runs several"),
        )
    # Raises an error if there is no such method.
    family[method]
    check_seeds(seeds)
    if target not in ("latents", "beta"):
        raise InputError("target", "be 'latents' or 'beta'", got=f"{target!r}")
    if target == "latents" and n_latents is not None:
        raise InputError(
            problem=(Argument("n_latents"), " is the result of the search"),
            remedy=("set it only with ", BETA),
        )
    if target == "beta":
        if (
            n_latents is None
            or isinstance(n_latents, bool)
            or not isinstance(n_latents, int)
            or n_latents < 1
        ):
            raise InputError(
                problem=(BETA, " requires ", Argument("n_latents"), ", an integer from 1"),
                got=f"{n_latents!r}",
            )
        if not family.traits(method).get("finds_beta", False):
            able = " or ".join(repr(name) for name in family if family.traits(name).get("finds_beta", False))
            raise InputError(
                problem=f"only method {able} can search for the largest β",
                got=f"{method!r}",
            )
        if "beta" in recipe:
            raise InputError(
                problem=(Argument("beta"), " is the result of the search"),
                remedy=("leave it out with ", BETA),
            )
        # Also stores the default, with which the models are trained.
        if recipe.setdefault("objective", "beta") != "beta":
            raise InputError(
                problem=(BETA, " requires ", Argument("objective", "beta")),
                got=f"{recipe['objective']!r}",
            )
    return "beta" if target == "beta" else "latents"
