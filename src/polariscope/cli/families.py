"""``polariscope list``: families, their members and options."""

from __future__ import annotations

import importlib
import re
from typing import TYPE_CHECKING, Annotated

import typer

from polariscope.cli.command import command
from polariscope.core.errors import unknown
from polariscope.core.registry import Family
from polariscope.core.tables import TextTable
from polariscope.core.text import without_markup

if TYPE_CHECKING:
    from polariscope.core.catalogue import Catalogue

FAMILIES = tuple(importlib.import_module("polariscope")._FAMILIES)
"""Names of the families."""
IN_PYTHON = {
    "variants": 'In Python: polariscope.load_dataset("sprites", variants=["colour", {"name": "subset", "n": 50_000}]), '
    "or polariscope.apply_variants(data, …). With polariscope train, size and data: --variant subset:n=50000,seed=1.",
    "metrics": 'In Python: polariscope.metrics["dci"](codes, factors, n_trees=50). With polariscope score: a variant '
    "after a colon, dci:lasso, and other options with --set dci.n_trees=50.",
    "similarity": 'In Python: polariscope.similarity["cka-rbf"](x, y, bandwidth=0.4). With polariscope compare: '
    "--set cka-rbf.bandwidth=0.4.",
    "dimension": 'In Python: polariscope.dimension["mle"](x, k=20). With polariscope size --method id --dimension mle: '
    "--set mle.k=20.",
    "workers": 'In Python: study.run(on="ray", address="auto"). With polariscope study run: --on ray '
    "--set ray.address=auto.",
}
"""Usage of the families whose options are arguments of functions, not flags."""


@command()
def list_family(
    family: Annotated[
        str | None,
        typer.Argument(
            help=f"One of {', '.join(FAMILIES)}. By default, all names are listed.", metavar="[FAMILY]"
        ),
    ] = None,
    name: Annotated[
        str | None, typer.Argument(help="A member to explain, with its options.", metavar="[NAME]")
    ] = None,
) -> None:
    """List the members of a family, or explain one."""
    from polariscope.cli.console import printer, say
    from polariscope.core.catalogue import read_family

    if family is None:
        overview = TextTable("family", "members", prose=("members",))
        for each in FAMILIES:
            overview.add_row(each, ", ".join(read_family(each)) or "no members yet")
        printer().print(overview)
        return
    if family not in FAMILIES:
        raise unknown("family", family, FAMILIES)
    members = read_family(family)
    if name is not None:
        if name in members and not members[name].is_open:
            open_family(family)[name]  # plug-ins are imported only when the user names one
            members = read_family(family)
        explain_member(members, name, flags=family not in IN_PYTHON)
    elif len(members):
        printer().print(table_of(members, flags=family not in IN_PYTHON))
        if family in IN_PYTHON:
            say(IN_PYTHON[family])
    else:
        say(f"{family} has no members yet.")


def open_family(name: str) -> Family:
    """Return the registry of a family by its public name."""
    return getattr(importlib.import_module("polariscope"), name)


def table_of(members: Catalogue, flags: bool = True) -> TextTable:
    """Return a table of the members with their summaries, and a row for each option.

    :param members: the family.
    :param flags: (default True) if True, options are spelled as flags, otherwise as arguments.
    """
    from polariscope.cli.command import explain, show_default
    from polariscope.cli.flags import group_of, show_flag

    shown = TextTable(members.noun, "option", "default", "description", prose=("description",))
    for member in members.values():
        shown.add_row(member.name, "", "", member.summary)
        for option in group_of(members.noun, members, member.name).options.values():
            name = show_flag(option) if flags else option.name
            shown.add_row("", name, show_default(option), explain(option))
    return shown


def explain_member(members: Catalogue, name: str, flags: bool) -> None:
    """Print the docstring of a member, and each of its options with type, default and description."""
    from polariscope.cli.command import show_default
    from polariscope.cli.console import printer, say
    from polariscope.cli.flags import show_flag
    from polariscope.core.option_values import describe
    from polariscope.core.references import keys_in, references

    text = members[name].doc
    say(f"{members.noun} {name}\n")
    # Options are listed in a table below, so their lines in the docstring are left out.
    body = re.sub(r"(?:^:param .*\n?(?:[ \t]+.*\n?)*)+\n?", "", text, flags=re.MULTILINE).strip()
    say(without_markup(body))
    cited = [references()[key] for key in keys_in(text)]
    if cited:
        say("\nReferences (polariscope cite KEY prints BibTeX):")
        for reference in cited:
            say(f"  {reference.key}: {reference.full}")
    options = members[name].declared_options
    if not options:
        say("\nIt has no options.")
        return
    shown = TextTable("option", "type", "default", "description", prose=("type", "description"))
    for option in options.values():
        spelled = show_flag(option) if flags else option.name
        shown.add_row(spelled, describe(option.annotation), show_default(option), option.help)
    say("")
    printer().print(shown)
