"""Options and helpers shared by ``size``, ``size-compare``, ``size-curve``, ``size-table`` and ``size-beta``."""

from __future__ import annotations

import dataclasses
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

import typer
from annotated_types import Ge

from polariscope.cli import INTERRUPTED
from polariscope.cli.command import Flag, FlagsOf
from polariscope.cli.config import MemberOptions, settings_of
from polariscope.cli.data import Wrapping
from polariscope.cli.flags import KEY, Group, group_of, groups_of, typed
from polariscope.cli.shared import AUTO, Compute, ModelParts
from polariscope.cli.train import MODEL_FLAGS, TrainCommand, for_train, take_flags, training_group
from polariscope.core.errors import Argument, InputError
from polariscope.core.files import check_target
from polariscope.core.options import checked
from polariscope.core.types import OptionValue

if TYPE_CHECKING:
    from polariscope.data.dataset import AbstractDataset
    from polariscope.sizing.goal import Target
    from polariscope.sizing.result import Size

CHOSEN_BY_SEARCH = ("schedule", "patience", "seed", "log_every", "probe_samples")
"""Training options that the search sets, besides those that are options of the search."""
NOT_SAVED = "the search was not saved. Searches with --out FOLDER can be resumed."
MODEL = FlagsOf(ModelParts, only=("objective", "net", "likelihood"))
"""Parts of the models that can be selected."""


@checked
@dataclasses.dataclass(frozen=True)
class SearchOptions:
    """Seeds and folder of a search."""

    seed: int = 0
    """First seed; further seeds are seed + 1, seed + 2, …"""
    seeds: Annotated[int, Ge(1)] = 1
    """Number of seeds. The answer of a search is their median; curves and tables show the mean."""
    out: Annotated[Path, Flag("FOLDER")] | None = None
    """Folder for the models and the results."""
    quiet: bool = False
    """Print only the answer."""


RECORDS: dict[str, Any] = {
    "model": MODEL,
    "search": SearchOptions,
    "estimator": MemberOptions,
    "wrapping": Wrapping,
    "compute": Compute,
}
"""Records of options that every search has."""


class SearchRecords(TypedDict):
    """Keyword arguments of every search, besides its own options."""

    model: ModelParts
    estimator: MemberOptions
    wrapping: Wrapping
    compute: Compute


Methods = Annotated[tuple[str, ...], Flag("NAMES", "--method")]


class SizeCommand(TrainCommand):
    """A command with the options of the search, of its methods and of the trained models."""

    common = {
        "": (
            *("--method", "--latents", "--seed", "--seeds", "--objective", "--net", "--likelihood"),
            *("--standardise", "--scale", "--keep-units", "--out", "--device", "--threads", "--quiet"),
        ),
        "search": ("--threshold", "--cap", "--steps", "--minutes", "--learning-rate"),
        "objective beta": ("--beta",),
        "data sprites": ("--image-size",),
    }
    """The most common options."""

    def groups(self) -> list[Group]:
        """Return the options of the search, then those of its methods, then those of ``train``."""
        # models_group replaces the training options, without those that the search sets.
        rest = [group for group in super().groups() if group.part != "training"]
        return [search_group(), *groups_of("method", "sizing"), models_group(), *rest]

    def shown_flags(self, group: Group) -> dict[str, str]:
        """Return the flags of a group; a flag that the command or the search also has gets the part as a prefix."""
        taken = {flag for parameter in self.params for flag in parameter.opts}
        taken |= set() if group.part == "search" else search_group().flags.keys()
        longer = dict(zip(group.flags, group.flags_with_part, strict=True))
        return {longer[flag] if flag in taken else flag: name for flag, name in group.flags.items()}


def search_group() -> Group:
    """Return the options of every search."""
    from polariscope.sizing.goal import Goal

    return Group("search", "", Goal, called="the search")


def models_group() -> Group:
    """Return the training options that the search does not set."""
    return training_group(without=(*CHOSEN_BY_SEARCH, *search_group().options))


@dataclasses.dataclass(frozen=True)
class Job:
    """A search with checked options: the data and the arguments of the search function."""

    data: AbstractDataset
    """Data in the units in which models are trained."""
    options: Mapping[str, Any]
    """Seeds, folder, device, and the options of the search, its methods and the models."""
    recipe: Mapping[str, OptionValue]
    """Options of the models."""
    request: Mapping[str, OptionValue]
    """Options of the search, its methods and the models."""
    again: str
    """Data and options of the models as they were typed, for the suggested next command."""


def prepare(
    context: typer.Context,
    source: str,
    methods: Sequence[str],
    *,
    model: ModelParts,
    search: SearchOptions,
    estimator: MemberOptions,
    wrapping: Wrapping,
    compute: Compute,
) -> Job:
    """Open the data and assign every flag to its part.

    :param context: context of the call.
    :param source: name or path of the data.
    :param methods: names of the methods.
    :param model: the parts of the models.
    :param search: seeds and folder.
    :param estimator: options of the estimator of the dimension.
    :param wrapping: variants of the data.
    :param compute: device and threads.
    """
    from polariscope.sizing.checks import trained_units
    from polariscope.sizing.methods import family
    from polariscope.training.plan import FAMILIES

    if search.out is not None:
        check_target(search.out, "out", folder=True)
    concepts = model.concepts()
    groups = [search_group(), *(group_of("method", family, name) for name in methods)]
    searched = ("search", "method")
    # A flag that several parts have, such as --steps, is that of the search.
    defers = dict.fromkeys(("training", *FAMILIES), searched) | {"data": (*searched, "training")}
    data, flags = take_flags(context, source, concepts, wrapping, [*groups, models_group()], defers)
    settings = {**flags.pop("search"), **flags.pop("method", {})}
    settings |= estimator_with_options(settings.get("dimension"), estimator)
    recipe = {**{part: name for part, name in concepts.items() if name != AUTO}, **for_train(flags)}
    data = trained_units(data, recipe, keep_units=wrapping.keep_units)
    recipe |= {"keep_units": True} if wrapping.keep_units else {}
    where = {"seed": search.seed, "seeds": search.seeds, "out": search.out, **dataclasses.asdict(compute)}
    of_models = {
        flag: value
        for flag, value in context.meta[KEY].items()
        if not any(group.has(flag) for group in groups)
    }
    typed_source = as_words(
        source, {"net": model.net, "likelihood": model.likelihood}, of_models, wrapping.flags()
    )
    return Job(data, {**where, **settings, **recipe}, recipe, {**settings, **recipe}, typed_source)


def announced(job: Job, method: str, target: Target = "latents", n_latents: int | None = None) -> str:
    """Return a line with the settings chosen automatically for the models of a method; empty if there are none.

    :param job: the search.
    :param method: a member of ``polariscope.sizing``.
    :param target: (default "latents") quantity that is estimated.
    :param n_latents: (default None) number of latents, if the target is β.
    """
    from polariscope.sizing.search import ask
    from polariscope.training.choices import announcement

    return announcement(ask(job.data, method, job.request, target, n_latents).chosen, MODEL_FLAGS)


@contextmanager
def interruptible(out: Path | None) -> Iterator[None]:
    """Print that an interrupted search without a folder is lost.

    :param out: folder of the search, or None.
    """
    try:
        yield
    except KeyboardInterrupt:
        if out is not None:
            raise
        # Not the usual message, which suggests to resume the command.
        print(f"\nInterrupted: {NOT_SAVED}", file=sys.stderr)
        raise typer.Exit(INTERRUPTED) from None


def print_answer(job: Job, answer: Size, *, quiet: bool) -> None:
    """Print an answer, write its page if there is a folder, and print the command that trains a model of that size.

    :param job: the search.
    :param answer: its answer.
    :param quiet: if True, print only the answer.
    """
    from polariscope.cli.console import say
    from polariscope.cli.sizes import print_size

    if quiet:
        say(answer.answer)
    else:
        print_size(answer)
    write_page_of(job, (answer,), quiet=quiet)
    say_training(
        job, answer, quiet=quiet, is_saved=job.options["out"] is not None and answer.target == "latents"
    )


def write_page_of(job: Job, sizes: Sequence[Size], *, quiet: bool, compared: bool = False) -> None:
    """Write the page of answers into the folder of a search, if there is one.

    :param job: the search.
    :param sizes: its answers.
    :param quiet: if True, do not print the path of the page.
    :param compared: (default False) if True, the page compares several methods.
    """
    from polariscope.cli.console import say
    from polariscope.pages.size import write_size_page

    out = job.options["out"]
    if out is None or all(size.value is None for size in sizes):
        return
    page = write_size_page(out, sizes if compared else None)
    if not quiet:
        say(f"All results are in {page}; open it in a browser.")


def say_training(job: Job, answer: Size, *, quiet: bool, is_saved: bool) -> None:
    """Print the command that trains a model of the estimated size.

    :param job: the search.
    :param answer: its answer.
    :param quiet: if True, print nothing.
    :param is_saved: if True, ``train --size FOLDER`` can read the answer.
    """
    from polariscope.cli.console import quoted, say_next
    from polariscope.sizing.checks import make_goal
    from polariscope.sizing.methods import family

    if quiet or not answer.value:
        return
    options = job.options
    flags = f"--size {quoted(options['out'])}" if is_saved else f"--latents {answer.n_latents}"
    flags += f" --objective {options['objective']}"
    flags += f" --beta {answer.value:.3g}" if answer.target == "beta" else ""
    has_sizing_rate = family.traits(answer.method).get("rate") == "sizing"
    rate = options.get("learning_rate")
    rate = rate or (make_goal({}, job.data, options).careful_rate() if has_sizing_rate else None)
    # The rate of the search is suggested too, because a larger one prunes more latents.
    flags += "" if rate is None else f" --learning-rate {rate:g}"
    say_next((f"polariscope train {job.again} {flags}", "train a model of this size"))


def estimator_with_options(estimator: str | None, options: MemberOptions) -> dict[str, dict[str, Any]]:
    """Return the dimension estimator with its options from the file and ``--set``; empty if it has none."""
    from polariscope.cli.families import open_family

    settings = settings_of("dimension", open_family("dimension"), options, {estimator or ""})
    for name in settings:
        if name != estimator:
            raise InputError(
                problem=(
                    Argument("set", f"{name}.…"),
                    f" is for the estimator {name} of ",
                    Argument("method", "id"),
                    ", and ",
                    Argument("dimension"),
                    f" is {estimator}" if estimator else " is not set",
                ),
                remedy=("use ", Argument("dimension", name)),
            )
    if estimator is None or estimator not in settings:
        return {}
    return {"dimension": {"name": estimator, **settings[estimator]}}


def as_words(
    source: str, concepts: dict[str, str], flags: dict[str, object], variants: Sequence[str] = ()
) -> str:
    """Return the data and the options of the models as words of a command line, for the suggested next command.

    >>> as_words("sprites", {"net": "auto", "likelihood": "gaussian"}, {"--image-size": "32"})
    'sprites --likelihood gaussian --image-size 32'
    """
    tokens = [source]
    for part, name in concepts.items():
        tokens += [] if name == "auto" else [f"--{part}", name]
    return shlex.join([*tokens, *typed(flags), *variants])
