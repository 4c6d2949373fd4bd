"""Names to concepts: a family's folder is its list.

A family is a folder whose modules each register one concept (an objective, a metric, a dataset …) with the
family's decorator. Nothing else lists them. A file is named after its concept, so asking for one name imports one
file; the command line, the docs, the contract tests and the error messages import them all and read what they found.
``polariscope.metrics.mig``, ``polariscope.metrics["mig"]`` and an import from the file give the same thing.
Other packages add members through entry points (:mod:`polariscope.core.plugins`). Their names are listed without
importing them; a module of theirs is imported when its member is asked for.
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

if TYPE_CHECKING:
    from polariscope.core.plugins import Plugin

Concept = TypeVar("Concept", bound=Callable[..., Any])
SUPPORT = "support"
"""Folder of what members share."""
NAME = r"[a-z0-9]+(-[a-z0-9]+)*"


class Family(Mapping):  # bare: run-time type checkers would open a Mapping[str, Any], while it is imported
    """The concepts of one folder, by name.

    Used as a decorator in a member's file: ``@metric("mig", higher_is_better=True)``. What is given beside
    the name are the member's *traits*: properties it declares and the contract tests check. ``traits`` lists
    those that every member has to declare. ``group`` is the group of entry points by which other packages add members;
    None: they cannot.
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
                remedy="the contract tests check what is declared",
            )

        def register(concept: Concept) -> Concept:
            # A foreign module can be imported before our own file of that name, which would then be refused.
            if not concept.__module__.startswith(self.folders) and self._file_of(name) is not None:
                raise InputError(
                    problem=f"{concept.__module__} defines a {self.noun} {name!r}, and there is a built-in one",
                    remedy="choose another name",
                )
            known = self._members.get(name)
            if known is not None and _home(known) != _home(concept):
                raise InputError(
                    problem=f"two {self.noun}s named {name!r}: in {known.__module__} and {concept.__module__}"
                )
            if dataclasses.is_dataclass(concept):  # its options are checked whoever makes it
                concept = checked(concept)
            self._members[name] = concept
            self._traits[name] = traits
            return concept

        return register

    def read(self) -> None:
        """Import every module of the folders, once; packages (what members share) are not members."""
        if self._read:
            return
        for folder in self.folders:
            for module in pkgutil.iter_modules(importlib.import_module(folder).__path__):
                if not module.ispkg:
                    importlib.import_module(f"{folder}.{module.name}")
        self._read = True

    def _find(self, name: str) -> bool:
        """Whether there is such a member; imports only the file of its name, unless it is not there."""
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
        """The members of other packages, by name; none is imported. Those with the name of a built-in are refused."""
        if self.group is None:
            return {}
        from polariscope.core.plugins import plugins_of

        declared = plugins_of(self.group)
        clashes = {name for name in declared if self._file_of(name) is not None}
        for name in sorted(clashes - self._refused):
            self._refused.add(name)
            warnings.warn(
                f"{self.noun} {name!r} of the package {declared[name].package} is ignored: there is a built-in one "
                "of this name; the package must choose another name.",
                stacklevel=2,
            )
        return {name: plugin for name, plugin in declared.items() if name not in clashes}

    def _open(self, plugin: Plugin) -> None:
        """Import the module of a plug-in, which registers its member; nothing is registered if this fails."""
        members, traits = dict(self._members), dict(self._traits)
        try:
            loaded = plugin.load(self.noun)
            if plugin.name not in self._members:
                raise plugin.error(self.noun, f"its module registers no {self.noun} of this name")
            if loaded is not self._members[plugin.name]:
                raise plugin.error(self.noun, f"the object is not the {self.noun} that its module registers")
        except BaseException:
            self._members, self._traits = members, traits
            raise

    def working(self) -> Iterator[str]:
        """Iterate over the names of all members and open each; warn of plug-ins that cannot be opened and skip them."""
        from polariscope.core.plugins import PluginError

        for name in self:
            try:
                self[name]
            except PluginError as error:
                warnings.warn(str(error), stacklevel=2)
            else:
                yield name

    def _file_of(self, name: str) -> str | None:
        """The module that is named after a member, not imported; None without one."""
        for folder in self.folders if re.fullmatch(NAME, name) else ():
            spec = importlib.util.find_spec(f"{folder}.{name.replace('-', '_')}")
            if spec is not None and spec.submodule_search_locations is None:  # a package is not a member
                return spec.name
        return None

    @property
    def opened(self) -> dict[str, Any]:
        """The members that are registered so far, by name; no file is opened for that."""
        return dict(self._members)

    def __getitem__(self, name: str) -> Any:
        if not self._find(name):
            raise unknown(self.noun, name, self)
        return self._members[name]

    def __getattr__(self, name: str) -> Any:
        """A member as an attribute, with ``_`` for ``-``: ``polariscope.metrics.beta_vae``."""
        for folder in self.folders if name == SUPPORT else ():  # for tools that walk dotted names
            if f"{folder}.{SUPPORT}" in sys.modules:
                return sys.modules[f"{folder}.{SUPPORT}"]
        if name.startswith("_") or not self._find(name.replace("_", "-")):
            raise AttributeError(str(unknown(self.noun, name, (member.replace("-", "_") for member in self))))
        return self._members[name.replace("_", "-")]

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *(name.replace("-", "_") for name in self)]

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._find(name)

    def has(self, name: str) -> bool:
        """Whether there is such a member, where files are named after their members: no file is opened for that."""
        is_listed = name in self._members or self._file_of(name) is not None
        return is_listed or (bool(re.fullmatch(NAME, name)) and name in self.plugins) or self._find(name)

    def __iter__(self) -> Iterator[str]:
        self.read()
        return iter(sorted({*self._members, *self.plugins}))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def traits(self, name: str) -> Mapping[str, Any]:
        """What the member declared in its decorator."""
        self[name]
        return dict(self._traits[name])

    def name_of(self, concept: object) -> str:
        """The name under which a class, a function or an instance of a registered class is listed."""
        kind = concept if inspect.isclass(concept) or inspect.isfunction(concept) else type(concept)
        for name, member in self._members.items():  # a concept that exists was imported, so it is listed
            if member is kind:
                return name
        raise InputError(
            problem=f"{kind.__module__}.{kind.__qualname__} is not a registered {self.noun}",
            remedy=f"there are {', '.join(self)}",
        )

    def summary(self, name: str) -> str:
        """First line of the member's docstring, without markup."""
        return first_line(inspect.getdoc(self[name]) or "")

    def __repr__(self) -> str:
        return f"<{self.noun}s: {', '.join(self)}>"


def first_line(docstring: str) -> str:
    """Return the first line of a docstring, without markup.

    :param docstring: the docstring.

    >>> first_line("The ``beta`` of :cite:`higgins2017`.\\n\\nMore.")
    'The beta of higgins2017.'
    """
    return re.sub(r":\w+:`([^`]*)`|``([^`]*)``", r"\1\2", docstring.split("\n", 1)[0])


def _home(concept: Any) -> tuple[str, str]:
    """Where a concept is written; importing its file a second time does not make it another one."""
    return inspect.getfile(inspect.unwrap(concept)), concept.__qualname__


def group_of(package: str) -> str:
    """Return the group of entry points of a family, if it does not name one itself.

    :param package: the module that holds the family.

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
    """The family whose members are the files of ``package`` (its ``__name__``), or of several ``folders``.

    In the package's ``__init__``: ``metric = family = open_family(__name__, "metric")``. Its docstring becomes the
    family's. Members of other packages are entry points of ``group``, by default ``polariscope.`` and the last name of
    the package; None: there are none.
    """
    family = Family(folders or (package,), noun, traits, group_of(package) if group == "" else group)
    family.__doc__ = sys.modules[package].__doc__
    return family
