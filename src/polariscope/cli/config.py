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

import dataclasses
import tomllib
from collections.abc import Container
from pathlib import Path
from typing import Annotated, Any

from polariscope.cli.command import Flag
from polariscope.cli.flags import read_settings
from polariscope.core.errors import InputError, unknown
from polariscope.core.options import check_options, checked
from polariscope.core.registry import Family

SECTIONS = ("score", "compare", "dimension")
"""The tables that a file can hold."""


@checked
@dataclasses.dataclass(frozen=True)
class MemberOptions:
    """Options of metrics, similarities or dimension estimators."""

    settings: Annotated[tuple[str, ...], Flag("NAME.OPTION=VALUE", "--set", repeated=True)] = ()
    """An option of a metric, similarity or dimension estimator, as mig.n_bins=10; can be repeated. See 'polariscope
    list FAMILY NAME'."""
    config: Annotated[Path, Flag("FILE.toml")] | None = None
    """Options from a file, as [score.mig] n_bins = 10; --set wins."""


def settings_of(
    section: str, family: Family, options: MemberOptions, asked: Container[str]
) -> dict[str, dict[str, Any]]:
    """The options of members by name, checked: those of the file, then those of ``--set``, which win.

    :param section: the table of the file that is read
    :param family: the members that have the options
    :param options: what ``--set`` and ``--config`` were given
    :param asked: the members that are used; a file can hold options of others as well
    """
    from_file = read_config(options.config, section, family) if options.config is not None else {}
    settings = {name: values for name, values in from_file.items() if name in asked}
    for name, values in read_settings(family, options.settings).items():
        settings[name] = {**settings.get(name, {}), **values}
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
    for name, values in tables.get(section, {}).items():
        where = f"{path}: [{section}.{name}]"
        if not isinstance(values, dict):
            raise InputError(
                f"{path}: {section}.{name}", f"be a table, [{section}.{name}]", got=f"{values!r}"
            )
        options = {option.replace("-", "_"): value for option, value in values.items()}
        try:
            settings[name] = check_options(f"{family.noun} {name!r}", family[name], options)
        except InputError as error:
            raise InputError(problem=f"{where}: {error}") from None
    return settings
