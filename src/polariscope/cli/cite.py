"""``polariscope cite``: BibTeX entries of the cited works."""

from __future__ import annotations

from typing import Annotated

import typer

from polariscope.cli.command import command
from polariscope.core.tables import TextTable


@command()
def cite(
    keys: Annotated[
        list[str] | None,
        typer.Argument(
            help="Citation keys, for example kingma2014. By default, all keys are listed.", metavar="[KEY]..."
        ),
    ] = None,
) -> None:
    """Print BibTeX entries, or list all citation keys."""
    from polariscope.cli.console import printer, say
    from polariscope.core.references import cite as find
    from polariscope.core.references import references

    if keys:
        cited = [find(key) for key in keys]  # an unknown key raises an error before anything is printed
        say("\n\n".join(reference.bibtex for reference in cited))
        return
    shown = TextTable("key", "work", prose=("work",))
    for reference in references().values():
        shown.add_row(reference.key, reference.short)
    printer().print(shown)
