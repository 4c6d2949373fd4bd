"""Members of families that other packages declare as entry points.

A package registers a metric in its ``pyproject.toml``::

    [project.entry-points."polariscope.metrics"]
    halves = "their_package.halves:halves"

The group is that of the family, the key the name of the member, the value the module and the object. The names are read
from the metadata of installed packages; a module of theirs is imported only when its member is asked for.
"""

from __future__ import annotations

import dataclasses
import functools
import sys
from importlib.metadata import EntryPoint, entry_points

from polariscope.core.errors import PolariscopeError


class PluginError(PolariscopeError):
    """A member of another package cannot be used; the message names the package."""


@dataclasses.dataclass(frozen=True)
class Plugin:
    """A member that another package declares, not imported."""

    name: str
    """The name of the member."""
    entries: tuple[EntryPoint, ...]
    """The entry points of this name: one, unless several packages chose the same name."""

    @property
    def package(self) -> str:
        """The packages that declare it, each with its version."""
        known = (entry.dist for entry in self.entries)
        return " and ".join("an unknown package" if d is None else f"{d.name} {d.version}" for d in known)

    @property
    def value(self) -> str:
        """The module and the object: ``their_package.halves:halves``."""
        return self.entries[0].value

    def load(self, noun: str) -> object:
        """Import the module of the member and return the object.

        :param noun: what the family calls its members, for the message if this fails.
        """
        if len(self.entries) > 1:
            raise PluginError(
                f"two {noun}s named {self.name!r}, of {self.package}; uninstall one of these packages."
            )
        try:
            return self.entries[0].load()
        except Exception as error:  # whatever a foreign module raises while it is imported
            raise self.error(noun, f"{type(error).__name__}: {error}") from error

    def error(self, noun: str, reason: str) -> PluginError:
        """Return the error for a member that cannot be opened.

        :param noun: what the family calls its members.
        :param reason: what went wrong.
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
    """Plugins by group and name. The metadata are read once, as long as ``sys.path`` stays as it is."""
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
