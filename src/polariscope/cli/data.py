"""``polariscope data``: list, describe and preview datasets."""

from __future__ import annotations

import dataclasses
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from annotated_types import Ge, Le

from polariscope.cli.command import Flag, FlagsOf, command
from polariscope.cli.flags import KEY, FlagCommand, Group, assign_flags, group_of, typed
from polariscope.core.errors import Argument, InputError
from polariscope.core.options import checked
from polariscope.core.tables import TextTable
from polariscope.core.text import listed, plural

if TYPE_CHECKING:
    from polariscope.data.dataset import AbstractDataset

SOURCE_HELP = "A dataset's name, or the path of a table, an array or a folder of images."
Source = Annotated[str, typer.Argument(metavar="NAME", help=SOURCE_HELP)]
TrainingData = Annotated[str, typer.Argument(metavar="DATA", help=SOURCE_HELP)]


def dataset_group(source: str) -> Group:
    """Return the options of the dataset that a source names; an unknown name raises an error."""
    from polariscope.data.dataset import family as datasets
    from polariscope.data.sources import source_name

    return group_of("data", datasets, source_name(source))


@checked
@dataclasses.dataclass(frozen=True)
class Wrapping:
    """Variants of the data and their units."""

    variants: Annotated[tuple[str, ...], Flag("NAME[:OPTION=VALUE,…]", "--variant", repeated=True)] = ()
    """A variant of the data, for example colour or subset:n=50000,seed=1; can be repeated. See 'polariscope list
    variants'."""
    standardise: bool = False
    """Scale every feature of a table to mean 0 and standard deviation 1."""
    scale: bool = False
    """Scale every feature of a table to [0, 1]."""
    keep_units: bool = False
    """Train on a table in its original units, without centring or scaling."""

    def apply(self, data: AbstractDataset) -> AbstractDataset:
        """Return the dataset with these variants applied."""
        if not any(dataclasses.astuple(self)):
            return data
        from polariscope.data.chain import apply_variants, shorthands

        shorthands(standardise=self.standardise, scale=self.scale, keep_units=self.keep_units)
        return apply_variants(data, list(self.variants), standardise=self.standardise, scale=self.scale)

    def flags(self) -> list[str]:
        """Return the flags for these variants and units.

        >>> Wrapping(("colour",), scale=True).flags()
        ['--variant', 'colour', '--scale']
        """
        typed = [word for name in self.variants for word in ("--variant", name)]
        names = [name for name in ("standardise", "scale", "keep_units") if getattr(self, name)]
        return [*typed, *(f"--{name.replace('_', '-')}" for name in names)]


VARIANT_FLAGS = FlagsOf(Wrapping, without=("keep_units",))
"""Flags for variants in commands that show data and do not train on them."""


def open_source(source: str, options: dict[str, object], wrapping: Wrapping) -> AbstractDataset:
    """Open the dataset that a source names, with the options and variants of the command line."""
    from polariscope.data.sources import parse_source

    return wrapping.apply(parse_source(source, options))


def _open(context: typer.Context, source: str, wrapping: Wrapping) -> AbstractDataset:
    return open_source(source, data_flags(context, source), wrapping)


def data_flags(context: typer.Context, source: str) -> dict[str, object]:
    """Return the options of a dataset from the flags of a command that has no other parts.

    :param context: context of the call.
    :param source: name or path of the dataset.
    """
    every = context.command.groups  # type: ignore[attr-defined]
    own_flags = [flag for parameter in context.command.params for flag in parameter.opts]
    return assign_flags(context.meta[KEY], [dataset_group(source)], every, own_flags)["data"]


@command()
def list_datasets() -> None:
    """List the datasets."""
    from polariscope.cli.console import printer
    from polariscope.data.dataset import family as datasets

    headers = ("dataset", "observations", "factors", "shape", "description")
    shown = TextTable(*headers, numbers=("observations", "factors"), prose=("shape", "description"))
    for name in datasets.working():
        summary = datasets.summary(name)
        try:
            data = datasets[name]()
        except (TypeError, InputError):  # it reads files, so its size is unknown until there is a path
            shown.add_row(f"{name}:PATH", "–", "–", "–", summary)
            continue
        factors = str(len(data.factor_names))
        shown.add_row(name, f"{len(data):,}", factors, shape_in_words(data), summary)
    printer().print(shown)


@command(FlagCommand, wrapping=VARIANT_FLAGS)
def info(context: typer.Context, name: Source, wrapping: Wrapping) -> None:
    """Describe a dataset: size, shape, factors, options."""
    from polariscope.cli.console import printer, say
    from polariscope.cli.facts import say_facts
    from polariscope.data.dataset import family as datasets

    data = _open(context, name, wrapping)
    say(f"{data.name}: {datasets.summary(data.name)}")
    say(f"{plural(len(data), 'observation')} of {shape_in_words(data)}.")
    if data.factor_names:
        factors = TextTable("factor", "values", "kind", numbers=("values",))
        for factor, size, kind in zip(data.factor_names, data.factor_sizes, data.factor_kinds, strict=True):
            factors.add_row(factor, str(size) if size else "any", kind)
        printer().print(factors)
    else:
        say("No known factors.")
    for factor, classes in data.factor_classes.items():
        say(f"Classes of {factor}: {listed(classes, MAX_NAMED)}")
    if data.feature_names:
        say(f"Features: {listed(data.feature_names, MAX_NAMED)}")
    if data.choices:
        say(f"How it was read: {'; '.join(data.choices)}.")
    say_facts(data)
    hidden = ("name", "fingerprint", "root_fingerprint", "shape", "variants")
    record = data.describe()
    options = {key: value for key, value in record.items() if key not in hidden}
    if options:
        say("Options: " + ", ".join(f"{key} = {value}" for key, value in options.items()))
    if "variants" in record:
        from polariscope.data.chain import in_words

        say(f"Variants: {in_words(record['variants'])}")
    say(
        f"Preview: polariscope data preview {shlex.join([name, *typed(context.meta[KEY]), *wrapping.flags()])}"
    )


@checked
@dataclasses.dataclass(frozen=True)
class PreviewOptions:
    """Options of ``polariscope data preview``."""

    out: Annotated[Path, Flag("FILE", default="NAME.png")] | None = None
    """PNG file to write."""
    n_samples: Annotated[int, Ge(1), Le(10_000)] = 64
    """Number of observations."""
    seed: int = 0
    """Seed of the random choice of observations."""


@command(FlagCommand, options=PreviewOptions, wrapping=VARIANT_FLAGS)
def preview(context: typer.Context, name: Source, options: PreviewOptions, wrapping: Wrapping) -> None:
    """Draw a sheet of random images, or print a table of flat data."""
    from polariscope.cli.console import printer, say
    from polariscope.cli.preview import statistics_table, write_contact_sheet

    data = _open(context, name, wrapping)
    if len(data.shape) == 3:
        target = options.out or Path("-".join([data.name, *_names(data)]) + ".png")
        drawn = write_contact_sheet(target, data, options.n_samples, options.seed)
        say(f"{plural(drawn, 'image')} of {data.name} in {target}")
    elif options.out is not None:
        raise InputError(
            problem=(Argument("out"), f" is for images, and {data.name} contains flat rows"),
            remedy="leave it out to print a table",
        )
    else:
        printer().print(statistics_table(data, options.n_samples, options.seed))


def _names(data: AbstractDataset) -> list[str]:
    """Return the names of the variants, the innermost first."""
    return [each["name"] for each in data.describe().get("variants", [])]


MAX_NAMED = 12
"""Maximum number of features or classes that are printed."""


def shape_in_words(data: AbstractDataset) -> str:
    """Return the shape of one observation, for people."""
    if len(data.shape) == 1:
        return f"{data.shape[0]} features"
    channels, height, width = data.shape
    return f"{height}×{width} pixels, " + ("grey" if channels == 1 else f"{channels} channels")
