"""Options of metrics, similarities and dimension estimators, from a file and from ``--set``.

A file contains a table for each member, under the name of the command that uses it::

    [score.mig]
    n_bins = 20

    [compare.knn]
    neighbours = 20

    [dimension.mle]
    k = 10
"""

from __future__ import annotations

import dataclasses
from collections.abc import Container
from pathlib import Path
from typing import Annotated, Any

from polariscope.cli.command import Flag
from polariscope.cli.flags import read_settings
from polariscope.core.errors import InputError, unknown
from polariscope.core.options import check_options, checked
from polariscope.core.parsing import read_toml
from polariscope.core.registry import Family

SECTIONS = ("score", "compare", "dimension")
"""Tables that a file can contain."""


@checked
@dataclasses.dataclass(frozen=True)
class MemberOptions:
    """Options of metrics, similarities or dimension estimators."""

    settings: Annotated[tuple[str, ...], Flag("NAME.OPTION=VALUE", "--set", repeated=True)] = ()
    """An option of a metric, similarity or dimension estimator, for example mig.n_bins=10; can be repeated. See
    'polariscope list FAMILY NAME'."""
    config: Annotated[Path, Flag("FILE.toml")] | None = None
    """File of such options, for example [score.mig] n_bins = 10; --set has precedence."""


def settings_of(
    section: str, family: Family, options: MemberOptions, used: Container[str]
) -> dict[str, dict[str, Any]]:
    """Return the checked options of members by name; ``--set`` has precedence over the file.

    :param section: table of the file that is read.
    :param family: family of the members.
    :param options: values of ``--set`` and ``--config``.
    :param used: members that are used; a file can also contain options of other members.
    """
    from_file = read_config(options.config, section, family) if options.config is not None else {}
    settings = {name: values for name, values in from_file.items() if name in used}
    for name, values in read_settings(family, options.settings).items():
        settings[name] = {**settings.get(name, {}), **values}
    return settings


def read_config(path: Path, section: str, family: Family) -> dict[str, dict[str, Any]]:
    """Return the checked options in one section of a file, by member.

    :param path: a TOML file.
    :param section: the table that is read; other known tables are ignored.
    :param family: family of the members.
    """
    try:
        tables = read_toml(path)
    except OSError as error:
        raise InputError("config", "be a file that can be read", got=f"{path}: {error.strerror}") from None
    except ValueError as error:  # not TOML, or not text
        raise InputError("config", "be a TOML file", got=str(error).rstrip(".")) from None
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
