"""Names to concepts: a family's folder is its list.

A family is a package whose modules each register one concept (an objective, a metric, a dataset …) with the
family's decorator. Nothing else lists them: asking for a name imports the modules of the folder once, and the
command line, the docs, the contract tests and the error messages read what they found. The package itself
answers by name, so that ``polariscope.metrics["mig"]`` and ``from polariscope.metrics.mig import mig`` give
the same thing.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from types import ModuleType
from typing import Any, TypeVar

from polariscope.errors import InputError, unknown

Concept = TypeVar("Concept", bound=Callable[..., Any])


class Family(Mapping):  # bare: run-time type checkers would open a Mapping[str, Any], while it is imported
    """The concepts of one folder, by name.

    Used as a decorator in a member's file: ``@metric("mig", higher_is_better=True)``. What is given beside
    the name are the member's *traits*: properties it declares and the contract tests check. ``traits`` lists
    those that every member has to declare.
    """

    def __init__(self, package: str, noun: str, traits: tuple[str, ...] = ()) -> None:
        self.package = package
        self.noun = noun
        self.required_traits = traits
        self._members: dict[str, Any] = {}
        self._traits: dict[str, dict[str, Any]] = {}
        self._read = False

    def __call__(self, name: str, **traits: Any) -> Callable[[Concept], Concept]:
        if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name):
            raise InputError(f"a {self.noun}'s name must be lower-case words joined by '-', got {name!r}.")
        missing = [trait for trait in self.required_traits if trait not in traits]
        if missing:
            raise InputError(
                f"{self.noun} {name!r} must declare {', '.join(missing)} in its decorator; "
                "the contract tests check what is declared."
            )

        def register(concept: Concept) -> Concept:
            known = self._members.get(name)
            if known is not None and _home(known) != _home(concept):
                raise InputError(
                    f"two {self.noun}s named {name!r}: in {known.__module__} and {concept.__module__}."
                )
            self._members[name] = concept
            self._traits[name] = traits
            return concept

        return register

    def read(self) -> None:
        """Import every module of the folder, once; names with a leading underscore are not members."""
        if self._read:
            return
        package = importlib.import_module(self.package)
        for module in pkgutil.iter_modules(package.__path__):
            if not module.name.startswith("_"):
                importlib.import_module(f"{self.package}.{module.name}")
        self._read = True

    def __getitem__(self, name: str) -> Any:
        self.read()
        if name not in self._members:
            raise InputError(unknown(self.noun, name, self._members))
        return self._members[name]

    def __contains__(self, name: object) -> bool:
        self.read()
        return name in self._members

    def __iter__(self) -> Iterator[str]:
        self.read()
        return iter(sorted(self._members))

    def __len__(self) -> int:
        self.read()
        return len(self._members)

    def traits(self, name: str) -> Mapping[str, Any]:
        """What the member declared in its decorator."""
        self[name]
        return dict(self._traits[name])

    def name_of(self, concept: Any) -> str:
        """The name under which a class, a function or an instance of a registered class is listed."""
        kind = concept if inspect.isclass(concept) or inspect.isfunction(concept) else type(concept)
        for name in self:
            if self._members[name] is kind:
                return name
        raise InputError(
            f"{kind.__module__}.{kind.__qualname__} is not a registered {self.noun}; there are {', '.join(self)}."
        )

    def summary(self, name: str) -> str:
        """First line of the member's docstring, without markup."""
        line = (inspect.getdoc(self[name]) or "").split("\n", 1)[0]
        return re.sub(r":\w+:`([^`]*)`|``([^`]*)``", r"\1\2", line)

    def __repr__(self) -> str:
        return f"<{self.noun}s: {', '.join(self)}>"


def _home(concept: Any) -> tuple[str, str]:
    """Where a concept is written; importing its file a second time does not make it another one."""
    return inspect.getfile(inspect.unwrap(concept)), concept.__qualname__


class _FamilyPackage(ModuleType):
    """A package that answers by name for the family it holds."""

    family: Family

    def __getitem__(self, name: str) -> Any:
        return self.family[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.family)

    def __len__(self) -> int:
        return len(self.family)

    def __contains__(self, name: object) -> bool:
        return name in self.family

    def __bool__(self) -> bool:
        return True


def open_family(package: str, noun: str, traits: tuple[str, ...] = ()) -> Family:
    """Make ``package`` (its ``__name__``) a family: returns the decorator its members use.

    In the package's ``__init__``: ``metric = family = open_family(__name__, "metric")``.
    """
    family = Family(package, noun, traits)
    module = sys.modules[package]
    module.__class__ = _FamilyPackage
    module.family = family  # type: ignore[attr-defined]
    return family
