"""Options of metrics, similarities and dimension estimators: from a file, and from ``--set`` on the line.

A file holds a table for each member, under the name of what runs it::

    [score.mig]
    n_bins = 20

    [compare.knn]
    neighbours = 20

    [dimension.mle]
    k = 10
"""

from __future__ import annotations

import tomllib
from collections.abc import Container, Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from polariscope.cli.flags import read_settings
from polariscope.core.errors import InputError, unknown
from polariscope.core.options import check_options
from polariscope.core.registry import Family

SECTIONS = ("score", "compare", "dimension")
"""The tables that a file may hold."""
Config = Annotated[
    Path | None,
    typer.Option(
        "--config", help="Options from a file, as [score.mig] n_bins = 10; --set wins.", metavar="FILE.toml"
    ),
]


def settings_of(
    section: str, family: Family, words: Iterable[str], config: Path | None, asked: Container[str]
) -> dict[str, dict[str, Any]]:
    """The options of members by name, checked: those of the file, then those of ``--set``, which win.

    :param section: the table of the file that is read
    :param family: whose members have the options
    :param words: what ``--set`` was given, NAME.OPTION=VALUE
    :param config: the file, or None
    :param asked: the members that are used; a file may hold options of others as well
    """
    from_file = read_config(config, section, family) if config is not None else {}
    settings = {name: options for name, options in from_file.items() if name in asked}
    for name, options in read_settings(family, words).items():
        settings[name] = {**settings.get(name, {}), **options}
    return settings


def read_config(path: Path, section: str, family: Family) -> dict[str, dict[str, Any]]:
    """The options that one section of a file holds, checked, by member.

    :param path: a TOML file
    :param section: the table that is read; others may be there, if they are known
    :param family: whose members have the options
    """
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError("config", "be a file that can be read", got=f"{path}: {error.strerror}") from None
    except ValueError as error:  # no TOML, or no text
        raise InputError("config", "be a TOML file", got=f"{path}: {error}") from None
    for name, table in tables.items():
        if name not in SECTIONS:
            raise InputError(problem=f"{path}: {unknown('table', name, SECTIONS)}")
        if not isinstance(table, dict):
            raise InputError(f"{path}: {name}", f"be tables of members, [{name}.NAME]", got=f"{table!r}")
    settings = {}
    for name, given in tables.get(section, {}).items():
        place = f"{path}: [{section}.{name}]"
        if not isinstance(given, dict):
            raise InputError(f"{path}: {section}.{name}", f"be a table, [{section}.{name}]", got=f"{given!r}")
        options = {option.replace("-", "_"): value for option, value in given.items()}
        try:
            settings[name] = check_options(f"{family.noun} {name!r}", family[name], options)
        except InputError as error:
            raise InputError(problem=f"{place}: {error}") from None
    return settings
