"""``polariscope data fetch`` and ``polariscope data clean``: files of published datasets, and what is kept of them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from polariscope.cli.flags import KEY, share_out


def fetch(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="A published dataset: dsprites, mnist …")],
    to: Annotated[
        Path | None,
        typer.Option(
            help="The folder for the files. [in the cache folder]", metavar="FOLDER", file_okay=False
        ),
    ] = None,
) -> None:
    """Download the original files of a dataset; again after it broke off: go on."""
    from polariscope.cli.console import as_typed, say
    from polariscope.cli.data import dataset_group
    from polariscope.data.fetch import fetch as fetch_files
    from polariscope.data.sources import original_of

    name = original_of(name)
    group = dataset_group(name)
    every = context.command.groups()  # type: ignore[attr-defined]
    options = share_out(context.meta[KEY], [group], every, ("--to",))["data"]
    fetched = fetch_files(name, options, to, lambda text: say(text, errors=True))
    for file in fetched:
        state = "was there" if file.was_there else "downloaded"
        say(f"{file.path}: {state}; {file.check}.")
    place = name if to is None else f"{name}:{to}"
    say(f"Look at it: {as_typed(f'polariscope data info {place}')}")


def clean(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="A dataset; none: all datasets.")
    ] = None,
    originals: Annotated[
        bool, typer.Option("--originals", help="Delete fetched original files as well.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Free what is kept of datasets: unpacked and rendered images. They are made again when they are needed."""
    from polariscope.cli.console import plural, say
    from polariscope.data.cache import cache_folder, in_bytes, kept_files, remove_kept
    from polariscope.data.dataset import family as datasets

    if name is not None:
        datasets[name]  # refuses unknown names
    kept = kept_files(name, originals)
    if not kept:
        say(f"Nothing {'' if name is None else f'of {name} '}is kept in {cache_folder()}.")
        return
    for each in sorted({file.dataset for file in kept}):
        sizes = [file.n_bytes for file in kept if file.dataset == each]
        say(f"{each}: {plural(len(sizes), 'file')}, {in_bytes(sum(sizes))}")
    total = in_bytes(sum(file.n_bytes for file in kept))
    if not yes and not typer.confirm(f"Delete {total} in {cache_folder()}?"):
        say("Nothing was deleted.")
        return
    remove_kept(kept)
    say(f"Freed {total}.")
