"""Members of families that other packages declare as entry points.

A package registers a metric in its ``pyproject.toml``::

    [project.entry-points."polariscope.metrics"]
    halves = "their_package.halves:halves"

The group is that of the family, the key is the name of the member, and the value is its module and object. Names are
read from the metadata of installed packages; a plug-in's module is imported only when its member is used.
"""

from __future__ import annotations

import dataclasses
import functools
import sys
from importlib.metadata import EntryPoint, entry_points

from polariscope.core.errors import PolariscopeError


class PluginError(PolariscopeError):
    """Error about a member of another package that cannot be used; the message names the package."""


@dataclasses.dataclass(frozen=True)
class Plugin:
    """A member that another package declares; it is not imported yet."""

    name: str
    """The name of the member."""
    entries: tuple[EntryPoint, ...]
    """Entry points with this name; more than one if several packages use the same name."""

    @property
    def package(self) -> str:
        """Packages that declare it, each with its version."""
        known = (entry.dist for entry in self.entries)
        return " and ".join("an unknown package" if d is None else f"{d.name} {d.version}" for d in known)

    @property
    def value(self) -> str:
        """The module and the object: ``their_package.halves:halves``."""
        return self.entries[0].value

    def load(self, noun: str) -> object:
        """Import the module of the member and return the object.

        :param noun: noun for members of the family, for error messages.
        """
        if len(self.entries) > 1:
            raise PluginError(
                f"two {noun}s are named {self.name!r}, in {self.package}; uninstall one of these packages."
            )
        try:
            return self.entries[0].load()
        except Exception as error:  # the import of a foreign module can raise anything
            raise self.error(noun, f"{type(error).__name__}: {error}") from error

    def error(self, noun: str, reason: str) -> PluginError:
        """Return the error about a member that cannot be imported.

        :param noun: noun for members of the family.
        :param reason: the problem.
        """
        reason = reason.rstrip(". ")
        return PluginError(
            f"{noun} {self.name!r} of the package {self.package} cannot be opened ({self.value}): {reason}; "
            "update or uninstall this package."
        )


def plugins_of(group: str) -> dict[str, Plugin]:
    """Return the members that installed packages declare for a family, by name; none of them is imported.

    :param group: the group of entry points: ``polariscope.metrics``.
    """
    return dict(_read_metadata(tuple(sys.path)).get(group, {}))


@functools.cache
def _read_metadata(path: tuple[str, ...]) -> dict[str, dict[str, Plugin]]:  # noqa: ARG001 (the key of the cache)
    """Return plug-ins by group and name. The metadata are read once for each value of ``sys.path``."""
    declared = entry_points()
    groups: dict[str, dict[str, list[EntryPoint]]] = {}
    for group in sorted(declared.groups):
        for entry in declared.select(group=group) if group.startswith("polariscope.") else ():
            entries = groups.setdefault(group, {}).setdefault(entry.name, [])
            if entry not in entries:
                entries.append(entry)
    return {
        group: {name: Plugin(name, tuple(entries)) for name, entries in members.items()}
        for group, members in groups.items()
    }
