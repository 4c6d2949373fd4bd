"""``polariscope data fetch`` and ``polariscope data clean``: download and delete files of datasets."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated

import typer

from polariscope.cli.command import Flag, command
from polariscope.cli.data import data_flags
from polariscope.cli.flags import FlagCommand
from polariscope.core.options import checked
from polariscope.core.text import file_size, plural


@checked
@dataclasses.dataclass(frozen=True)
class FetchOptions:
    """Options of ``polariscope data fetch``."""

    to: Annotated[Path, Flag("FOLDER", default="in the cache folder")] | None = None
    """Folder for the files."""


@command(FlagCommand, options=FetchOptions)
def fetch(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="A published dataset: dsprites, mnist …")],
    options: FetchOptions,
) -> None:
    """Download the original files of a dataset.

    An interrupted download is resumed.
    """
    from polariscope.cli.console import as_typed, say
    from polariscope.data.fetch import fetch as fetch_files
    from polariscope.data.sources import original_of

    name = original_of(name)
    to = options.to
    fetched = fetch_files(name, data_flags(context, name), to, lambda text: say(text, errors=True))
    for file in fetched:
        state = "already present" if file.was_there else "downloaded"
        say(f"{file.path}: {state}; {file.check}.")
    source = name if to is None else f"{name}:{to}"
    say(f"Inspect the dataset: {as_typed(f'polariscope data info {source}')}")


@checked
@dataclasses.dataclass(frozen=True)
class CleanOptions:
    """Options of ``polariscope data clean``."""

    originals: bool = False
    """Also delete downloaded original files."""
    yes: bool = False
    """Delete without confirmation."""


@command(options=CleanOptions)
def clean(
    options: CleanOptions,
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="A dataset. By default, all datasets.")
    ] = None,
) -> None:
    """Delete cached images of datasets.

    These are unpacked and rendered images. They are created again when they are needed.
    """
    from polariscope.cli.console import say
    from polariscope.data.cache import cache_folder, cached_files, remove_cached
    from polariscope.data.dataset import family as datasets

    if name is not None:
        datasets[name]  # refuses unknown names
    files = cached_files(name, options.originals)
    if not files:
        say(f"Nothing {'' if name is None else f'of {name} '}is cached in {cache_folder()}.")
        return
    for each in sorted({file.dataset for file in files}):
        sizes = [file.n_bytes for file in files if file.dataset == each]
        say(f"{each}: {plural(len(sizes), 'file')}, {file_size(sum(sizes))}")
    total = file_size(sum(file.n_bytes for file in files))
    if not options.yes and not typer.confirm(f"Delete {total} in {cache_folder()}?"):
        say("Nothing was deleted.")
        return
    remove_cached(files)
    say(f"Freed {total}.")
