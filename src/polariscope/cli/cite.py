"""``polariscope cite``: the works behind the citation keys."""

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
            help="Citation keys, as in docstrings: kingma2014; none: list them all.", metavar="[KEY]..."
        ),
    ] = None,
) -> None:
    """Print the BibTeX entries of the works behind citation keys, or list every key."""
    from polariscope.cli.console import printer, say
    from polariscope.core.references import cite as find
    from polariscope.core.references import references

    if keys:
        cited = [find(key) for key in keys]  # all are looked up before any is printed
        say("\n\n".join(reference.bibtex for reference in cited))
        return
    shown = TextTable("key", "work", prose=("work",))
    for reference in references().values():
        shown.add_row(reference.key, reference.short)
    printer().print(shown)
