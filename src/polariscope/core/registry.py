"""Registry of concepts by name: the folder of a family is the list of its members.

A family is a folder whose modules each register one concept (an objective, a metric, a dataset …) with the family's
decorator. There is no other list. A file is named after its concept, so looking up one name imports one file; the
command line, the docs, the contract tests and the error messages import all of them. ``polariscope.metrics.mig``,
``polariscope.metrics["mig"]`` and an import from the file give the same object. Other packages add members through
entry points (:mod:`polariscope.core.plugins`). Their names are listed without importing them; a module is imported when
its member is used.
"""

from __future__ import annotations

import dataclasses
import importlib
import importlib.util
import inspect
import pkgutil
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from polariscope.core.errors import InputError, unknown
from polariscope.core.options import checked
from polariscope.core.text import without_markup

if TYPE_CHECKING:
    from polariscope.core.plugins import Plugin

Concept = TypeVar("Concept", bound=Callable[..., Any])
SUPPORT = "support"
"""Folder of the code that members share."""
NAME = r"[a-z0-9]+(-[a-z0-9]+)*"


class Family(Mapping):  # not Mapping[str, Any]: run-time type checkers would iterate over it during import
    """The concepts of one folder, by name.

    It is used as a decorator in a member's file: ``@metric("mig", higher_is_better=True)``. The keyword arguments are
    the member's *traits*: properties that it declares and the contract tests check. ``traits`` lists those that every
    member must declare. ``group`` is the group of entry points through which other packages add members, or None if
    they cannot.
    """

    def __init__(
        self,
        folders: tuple[str, ...],
        noun: str,
        traits: tuple[str, ...] = (),
        group: str | None = None,
    ) -> None:
        self.folders = folders
        self.noun = noun
        self.required_traits = traits
        self.group = group
        self._members: dict[str, Any] = {}
        self._traits: dict[str, dict[str, Any]] = {}
        self._read = False
        self._refused: set[str] = set()

    def __call__(self, name: str, **traits: object) -> Callable[[Concept], Concept]:
        if not re.fullmatch(NAME, name):
            raise InputError(f"a {self.noun}'s name", "be lower-case words joined by '-'", got=f"{name!r}")
        missing = [trait for trait in self.required_traits if trait not in traits]
        if missing:
            raise InputError(
                f"{self.noun} {name!r}",
                f"declare {', '.join(missing)} in its decorator",
                remedy="the contract tests check declared traits",
            )

        def register(concept: Concept) -> Concept:
            # A foreign module can be imported before the built-in file of that name, which must not fail then.
            if not concept.__module__.startswith(self.folders) and self._file_of(name) is not None:
                raise InputError(
                    problem=f"{concept.__module__} defines a {self.noun} {name!r}, which is the name of a built-in one",
                    remedy="choose another name",
                )
            known = self._members.get(name)
            if known is not None and _home(known) != _home(concept):
                raise InputError(
                    problem=f"two {self.noun}s are named {name!r}: in {known.__module__} and {concept.__module__}"
                )
            if dataclasses.is_dataclass(concept):  # so options are checked on every construction
                concept = checked(concept)
            self._members[name] = concept
            self._traits[name] = traits
            return concept

        return register

    def read(self) -> None:
        """Import every module of the folders, once; packages (shared code) are not members."""
        if self._read:
            return
        for folder in self.folders:
            for module in pkgutil.iter_modules(importlib.import_module(folder).__path__):
                if not module.ispkg:
                    importlib.import_module(f"{folder}.{module.name}")
        self._read = True

    def _find(self, name: str) -> bool:
        """Return True if there is such a member; only the file of that name is imported, or all without one."""
        file = None if name in self._members else self._file_of(name)
        if file is not None:
            importlib.import_module(file)
        elif name not in self._members and name in self.plugins:
            self._open(self.plugins[name])
        if name not in self._members:
            self.read()
        return name in self._members

    @property
    def plugins(self) -> Mapping[str, Plugin]:
        """Members of other packages, by name, not imported. Those with the name of a built-in member are ignored."""
        if self.group is None:
            return {}
        from polariscope.core.plugins import plugins_of

        declared = plugins_of(self.group)
        clashes = {name for name in declared if self._file_of(name) is not None}
        for name in sorted(clashes - self._refused):
            self._refused.add(name)
            warnings.warn(
                f"{self.noun} {name!r} of the package {declared[name].package} is ignored, because a built-in one has "
                "this name; the package must use another name.",
                stacklevel=2,
            )
        return {name: plugin for name, plugin in declared.items() if name not in clashes}

    def _open(self, plugin: Plugin) -> None:
        """Import the module of a plug-in, which registers its member; on failure nothing is registered."""
        members, traits = dict(self._members), dict(self._traits)
        try:
            loaded = plugin.load(self.noun)
            if plugin.name not in self._members:
                raise plugin.error(self.noun, f"its module does not register a {self.noun} of this name")
            if loaded is not self._members[plugin.name]:
                raise plugin.error(self.noun, f"the object is not the {self.noun} that its module registers")
        except BaseException:
            # Also for an interrupt, because a half-imported plug-in must not stay registered.
            self._members, self._traits = members, traits
            raise

    def working(self) -> Iterator[str]:
        """Import all members and yield their names; skip plug-ins that cannot be imported, with a warning."""
        from polariscope.core.plugins import PluginError

        for name in self:
            try:
                self[name]
            except PluginError as error:
                warnings.warn(str(error), stacklevel=2)
            else:
                yield name

    def _file_of(self, name: str) -> str | None:
        """Return the name of the module named after a member, without importing it; None if there is none."""
        for folder in self.folders if re.fullmatch(NAME, name) else ():
            spec = importlib.util.find_spec(f"{folder}.{name.replace('-', '_')}")
            if spec is not None and spec.submodule_search_locations is None:  # a package is not a member
                return spec.name
        return None

    @property
    def opened(self) -> dict[str, Any]:
        """Members registered so far, by name; no file is imported."""
        return dict(self._members)

    def __getitem__(self, name: str) -> Any:
        if not isinstance(name, str) or not self._find(name):
            raise unknown(self.noun, name, self)
        return self._members[name]

    def __getattr__(self, name: str) -> Any:
        """Return a member as an attribute, with ``_`` for ``-``: ``polariscope.metrics.beta_vae``."""
        for folder in self.folders if name == SUPPORT else ():  # for tools that resolve dotted names
            if f"{folder}.{SUPPORT}" in sys.modules:
                return sys.modules[f"{folder}.{SUPPORT}"]
        # Python and its tools look for private names such as __wrapped__, which must not import all members.
        if name.startswith("_") or not self._find(name.replace("_", "-")):
            raise AttributeError(str(unknown(self.noun, name, (member.replace("-", "_") for member in self))))
        return self._members[name.replace("_", "-")]

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *(name.replace("-", "_") for name in self)]

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._find(name)

    def has(self, name: str) -> bool:
        """Return True if there is such a member; no file is imported if one is named after it."""
        is_listed = name in self._members or self._file_of(name) is not None
        return is_listed or (bool(re.fullmatch(NAME, name)) and name in self.plugins) or self._find(name)

    def __iter__(self) -> Iterator[str]:
        self.read()
        return iter(sorted({*self._members, *self.plugins}))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def traits(self, name: str) -> Mapping[str, Any]:
        """Return the traits that a member declares in its decorator."""
        # This imports the member, which registers its traits.
        self[name]
        return dict(self._traits[name])

    def name_of(self, concept: object) -> str:
        """Return the registered name of a class, a function or an instance of a registered class."""
        kind = concept if inspect.isclass(concept) or inspect.isfunction(concept) else type(concept)
        for name, member in self._members.items():  # an existing concept was imported, so it is registered
            if member is kind:
                return name
        raise InputError(
            problem=f"{kind.__module__}.{kind.__qualname__} is not a registered {self.noun}",
            remedy=f"there are {', '.join(self)}",
        )

    def summary(self, name: str) -> str:
        """Return the first line of the member's docstring, without markup."""
        return first_line(inspect.getdoc(self[name]) or "")

    def __repr__(self) -> str:
        return f"<{self.noun}s: {', '.join(self)}>"


def first_line(docstring: str) -> str:
    """Return the first line of a docstring, without markup.

    :param docstring: the docstring.

    >>> first_line("The ``beta`` of :cite:`higgins2017`.\\n\\nMore.")
    'The beta of higgins2017.'
    """
    return without_markup(docstring.split("\n", 1)[0])


def _home(concept: Any) -> tuple[str, str]:
    """Return the file and name of a concept, which are the same if its file is imported a second time."""
    return inspect.getfile(inspect.unwrap(concept)), concept.__qualname__


def group_of(package: str) -> str:
    """Return the default group of entry points of a family.

    :param package: the module of the family.

    >>> group_of("polariscope.analysis.metrics")
    'polariscope.metrics'
    """
    return f"polariscope.{package.rpartition('.')[2]}"


def open_family(
    package: str,
    noun: str,
    traits: tuple[str, ...] = (),
    folders: tuple[str, ...] = (),
    group: str | None = "",
) -> Family:
    """Create the family whose members are the files of ``package`` (its ``__name__``), or of several ``folders``.

    It is called in the package's ``__init__``: ``metric = family = open_family(__name__, "metric")``. The docstring of
    the package becomes that of the family. Other packages add members as entry points of ``group``, by default
    ``polariscope.`` and the last name of the package; with None they cannot.
    """
    family = Family(folders or (package,), noun, traits, group_of(package) if group == "" else group)
    family.__doc__ = sys.modules[package].__doc__
    return family
