"""What is refused before anything is trained."""

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
"""The search for the largest β, as messages name it."""
MAX_RMS = 25.0
"""Root mean square of a column above which the default networks diverge (rows of 30 do in one step)."""
BOUNDS = {name: option.default for name, option in options_of(Goal).items()}
"""The options of every search, with the value that says nothing."""


def own_options(method: str) -> set[str]:
    """The options that a method has for itself."""
    return set(options_of(family[method]))


def split_options(
    method: str, given: Mapping[str, object]
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """What was given to ``size``: options of the goal, the method's own, and the recipe of the models.

    An option of another method is refused.
    """
    own = own_options(method)
    for name in given:
        homes = [each for each in family if name in own_options(each)]
        if homes and method not in homes:
            raise InputError(
                problem=(
                    f"{name} is an option of method {' and '.join(map(repr, homes))}, and the method is "
                    f"{method!r}"
                ),
                remedy="leave it out",
            )
    bounds = {name: value for name, value in given.items() if name in BOUNDS}
    its = {name: value for name, value in given.items() if name in own}
    recipe = {name: value for name, value in given.items() if name not in BOUNDS and name not in own}
    return bounds, check_options(f"sizing method {method!r}", family[method], its), recipe


def used_by(method: str) -> set[str]:
    """The bounds that a method heeds."""
    traits = family.traits(method)
    used = {*traits["uses"]}
    used |= {"learning_rate"} if traits["trains"] else set()
    return used | ({"threshold"} if traits["threshold"] == "goal" else set())


def supported_options(
    method: str, options: Mapping[str, object], among: Iterable[str] = ()
) -> dict[str, Any]:
    """The options without those that mean nothing to a method.

    :param method: the method that is to be asked
    :param options: what was given for all methods
    :param among: the methods that are asked, whose own options are for them alone
    """
    theirs = {*BOUNDS}.union(*map(own_options, among))
    used = used_by(method) | own_options(method)
    return {name: value for name, value in options.items() if name not in theirs or name in used}


def check_used(method: str, target: Target, given: Mapping[str, object]) -> None:
    """Refuse a bound that would be passed over in silence."""
    used = {"threshold", "steps", "learning_rate"} if target == "beta" else used_by(method)
    who = "target 'beta'" if target == "beta" else f"method {method!r}"
    for name, value in given.items():
        if name not in used and value != BOUNDS[name]:
            raise InputError(problem=(Argument(name), f" means nothing to {who}"), remedy="leave it out")


def check_bounds_used(
    options: Mapping[str, object], methods: Sequence[str], also: Sequence[str] = ()
) -> None:
    """Refuse a bound that none of several methods would look at.

    :param options: what was given for all methods
    :param methods: their names
    :param also: (default none) bounds that something else looks at
    """
    used = {*also}.union(*map(used_by, methods))
    for name, default in BOUNDS.items():
        if name not in used and options.get(name, default) != default:
            asked = f"the methods {', '.join(methods)}" if methods else "curves without a method"
            raise InputError(problem=(Argument(name), f" means nothing to {asked}"), remedy="leave it out")


def make_goal(given: Mapping[str, object], data: AbstractDataset, recipe: Mapping[str, Any]) -> Goal:
    """The goal with its options checked.

    :param given: options by name, the fields of :class:`~polariscope.sizing.Goal`
    :param data: what is sized
    :param recipe: of the models
    """
    chosen = choose(data, **{part: recipe[part] for part in FAMILIES if part in recipe})
    net_rate = concept_of("net", chosen["net"]).sizing_rate
    checked = check_options("the search", Goal, given)
    goal = Goal(**checked, images=len(data.shape) == 3, net_rate=net_rate)
    if goal.n_init is not None and goal.n_init > goal.cap:
        raise InputError("n_init", ("be at most ", Argument("cap")), got=f"{goal.n_init} and {goal.cap}")
    if goal.steps is not None and goal.epochs is not None:
        raise InputError(
            problem=(Argument("steps"), " and ", Argument("epochs"), " both say how long to train"),
            remedy="give one of them",
        )
    return goal


def check_varies(data: AbstractDataset) -> None:
    """Refuse observations that are all the same: there is nothing to encode."""
    rows = data.values(np.linspace(0, len(data) - 1, min(1000, len(data)), dtype=np.int64))
    if (rows == rows[0]).all():
        raise InputError("data", f"vary, but the {len(rows)} observations looked at are all the same")


def check_units(data: AbstractDataset, recipe: Mapping[str, Any]) -> None:
    """Refuse tables in units so small, or so far from 0, that a network diverges on them in its first steps.

    Networks see the logarithm of counts.

    :param data: what is trained on
    :param recipe: of the models
    """
    chosen = choose(data, **{part: recipe[part] for part in FAMILIES if part in recipe})
    if len(data.shape) == 3 or concept_of("likelihood", chosen["likelihood"]).needs_counts:
        return
    rows = data.values(np.linspace(0, len(data) - 1, min(1000, len(data)), dtype=np.int64))
    size = float(np.sqrt((rows.astype(np.float64) ** 2).mean(axis=0).max()))
    if size > MAX_RMS:
        raise InputError(
            "data",
            "be in units in which values are near 1",
            got=f"a column whose values are about {size:.3g}, on which networks diverge",
            remedy=(
                "leave ",
                Argument("keep_units"),
                " out, or bring each column to mean 0 and deviation 1 with ",
                Argument("standardise", True),
            ),
        )


def trained_units(
    data: AbstractDataset, recipe: Mapping[str, Any], *, keep_units: OptionValue = False
) -> AbstractDataset:
    """The data in the units in which the models of a recipe are trained; measured once, for all of them.

    :param data: the dataset, with the variants that were asked for
    :param recipe: of the models
    :param keep_units: (default False) leave the data as they are
    """
    chosen = choose(data, **{part: recipe[part] for part in FAMILIES if part in recipe})
    return units_for(data, chosen["likelihood"], keep_units=keep_units)


def check_recipe(data: AbstractDataset, method: str, recipe: dict[str, Any], goal: Goal) -> tuple[str, ...]:
    """Refuse models that lack what the method measures, before anything is trained; return what is chosen for the user.

    :param data: what is sized
    :param method: a name of ``polariscope.sizing``
    :param recipe: of the models
    :param goal: what is asked of the method, for the learning rate
    """
    if not family.traits(method)["trains"]:
        _check_unused(data, recipe)
        return data.choices
    # The method decides on rate and length, so they are named here and announced below.
    job = plan(data, n_latents=1, **{**IMAGES.to_dict(), **recipe, "steps": 400})
    others = ", ".join(name for name in family if not family.traits(name)["needs_variances"])
    needs_variances = family.traits(method)["needs_variances"]
    if needs_variances and not job.blueprint.posterior.has_density:
        raise InputError(
            problem=(
                f"method {method!r} needs posterior variances, which a deterministic encoder does not have"
            ),
            remedy=(
                "use ",
                Argument("objective", "vae"),
                f" (the answer suits autoencoders as well), or a method without: {others}",
            ),
        )
    check_models(job, recipe)
    if needs_variances and not isinstance(job.blueprint.prior, IsotropicPrior):
        raise InputError(
            problem=f"method {method!r} measures posterior variances against the prior N(0, I)",
            got="another prior",
            remedy=("leave ", Argument("prior"), " out"),
        )
    pace = {"learning_rate": rate_of(method, goal), "batch_size": job.settings.batch_size}
    return job.chosen + Planned({name: pace[name] for name in pace if name not in recipe}, {}).in_words


def rate_of(method: str, goal: Goal) -> float:
    """Return the learning rate of the models that a method trains.

    :param method: a name of ``polariscope.sizing``
    :param goal: what is asked of it
    """
    kind = family.traits(method).get("rate", "published")
    published = goal.learning_rate or IMAGES.learning_rate
    return {"sizing": goal.careful_rate(), "quick": goal.rate(), "published": published}[kind]


def check_models(job: RunPlan, recipe: Mapping[str, Any]) -> None:
    """Refuse models that cannot be sized whatever is asked of them.

    :param job: how one of them would be trained
    :param recipe: of the models
    """
    if not job.blueprint.decodes:
        raise InputError(
            problem=(
                f"objective {label(recipe['objective'])!r} trains no decoder, so there is nothing to size"
            ),
            remedy=("use ", Argument("objective", "vae")),
        )
    if job.settings.schedule != "constant":
        raise InputError(
            problem=(
                f"sizing trains a model until it is decided, and schedule {job.settings.schedule!r} has to know "
                "the end beforehand"
            ),
            remedy=("leave ", Argument("schedule"), " out"),
        )
    if job.settings.patience:
        raise InputError(
            problem=(
                "sizing trains a model until it is decided, and ",
                Argument("patience"),
                " would stop it before",
            ),
            remedy=("leave ", Argument("patience"), " out"),
        )


def _check_unused(data: AbstractDataset, recipe: Mapping[str, Any]) -> None:
    """Refuse options of models that do not exist or that no model takes, also where none is trained.

    Those that are right are passed over: several methods may be asked at once, and some of them train.
    """
    chosen = choose(data, **{part: recipe[part] for part in FAMILIES if part in recipe})
    known = (*FAMILIES, "initialisation", "device", "threads", "keep_units")
    routed = route(chosen, {name: value for name, value in recipe.items() if name not in known})
    for part, choice in chosen.items():
        build(FAMILIES[part], choice, routed[part])
    check_options("training", TrainSettings, routed["training"])


def check_seeds(seeds: object) -> None:
    """Refuse what is no number of seeds.

    :param seeds: what was given
    """
    if isinstance(seeds, bool) or not isinstance(seeds, Integral) or seeds < 1:
        raise InputError("seeds", "be an integer from 1", got=f"{seeds!r}")


def check_call(
    method: str, target: str, n_latents: int | None, seeds: object, recipe: dict[str, OptionValue]
) -> Target:
    """Refuse what cannot be asked; returns the target, which is one of two."""
    if not isinstance(method, str):
        raise InputError(
            "method",
            "be one name",
            got=f"{method!r}",
            remedy=Either("compare_sizes asks several", "'polariscope size-compare' asks several"),
        )
    family[method]
    check_seeds(seeds)
    if target not in ("latents", "beta"):
        raise InputError("target", "be 'latents' or 'beta'", got=f"{target!r}")
    if target == "latents" and n_latents is not None:
        raise InputError(
            problem=(Argument("n_latents"), " is what is sought"),
            remedy=("give it with ", BETA, " only"),
        )
    if target == "beta":
        if (
            n_latents is None
            or isinstance(n_latents, bool)
            or not isinstance(n_latents, int)
            or n_latents < 1
        ):
            raise InputError(
                problem=(BETA, " needs ", Argument("n_latents"), ", an integer from 1"),
                got=f"{n_latents!r}",
            )
        if not family.traits(method).get("finds_beta", False):
            able = " or ".join(repr(name) for name in family if family.traits(name).get("finds_beta", False))
            raise InputError(
                problem=f"the largest β is searched by method {able} only",
                got=f"{method!r}",
            )
        if "beta" in recipe:
            raise InputError(
                problem=(Argument("beta"), " is what is sought"),
                remedy=("leave it out with ", BETA),
            )
        if recipe.setdefault("objective", "beta") != "beta":
            raise InputError(
                problem=(BETA, " needs ", Argument("objective", "beta")),
                got=f"{recipe['objective']!r}",
            )
    return "beta" if target == "beta" else "latents"
