"""A docstring line for every argument of the public API."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import polariscope as ps
from polariscope.core.options import options_of
from polariscope.core.registry import Family

PARAM = re.compile(r"^:param (\w+): \S", flags=re.MULTILINE)
NUMPY_STYLE = re.compile(r"^Parameters\n-+\n(.*?)(?:\n\n[A-Z]\w+\n-+|\Z)", flags=re.MULTILINE | re.DOTALL)


def documented_in(text: str) -> set[str]:
    """Return the names of documented arguments: ``:param name: text``, or in scikit-learn's style."""
    names = set(PARAM.findall(text))
    for section in NUMPY_STYLE.findall(text):
        for heads in re.findall(r"^(\w[\w, ]*):$", section, flags=re.MULTILINE):
            names.update(heads.split(", "))
    return names


def arguments_of(function: Callable[..., Any]) -> list[str]:
    return [name for name in inspect.signature(function).parameters if name not in ("self", "cls")]


def own_classes(kind: type) -> list[type]:
    return [each for each in kind.__mro__ if each.__module__.startswith(("polariscope", __name__))]


def methods_of(kind: type) -> Iterator[tuple[str, Callable[..., Any], set[str]]]:
    """Yield public methods with the arguments that they, or the methods they override, document."""
    for name in sorted(
        {name for each in own_classes(kind) for name in vars(each) if not name.startswith("_")}
    ):
        found = [
            getattr(vars(each)[name], "__func__", vars(each)[name])
            for each in own_classes(kind)
            if name in vars(each)
        ]
        if inspect.isfunction(found[0]):
            yield name, found[0], {n for each in found for n in documented_in(inspect.getdoc(each) or "")}


def undocumented(public: Any) -> list[str]:
    """Return the arguments of a function, or of a class and its public methods, without a line in a docstring."""
    text = inspect.getdoc(public) or ""
    if not inspect.isclass(public):
        return [name for name in arguments_of(public) if name not in documented_in(text)]
    if dataclasses.is_dataclass(public):
        missing = [name for name, option in options_of(public).items() if not option.help]
    else:
        known = documented_in(text) | documented_in(inspect.getdoc(public.__init__) or "")
        missing = [] if issubclass(public, Exception) else [n for n in arguments_of(public) if n not in known]
    return missing + [
        f"{method}({name})"
        for method, function, known in methods_of(public)
        for name in arguments_of(function)
        if name not in known
    ]


def everything_public() -> Iterator[tuple[str, Any]]:
    for name in ps.__all__:
        public = getattr(ps, name)
        if isinstance(public, Family):
            for member in public:
                yield f"{name}.{member}", public[member]
        elif not isinstance(public, str):
            yield name, public


PUBLIC = dict(everything_public())


@pytest.mark.parametrize("name", PUBLIC)
def test_every_argument_has_its_line(name: str) -> None:
    assert undocumented(PUBLIC[name]) == []


def test_what_has_no_line_is_found() -> None:
    def function(told: int, forgotten: int, *, hinted: int = 0) -> None:
        """It takes ``hinted`` arguments.

        :param told: how many.
        """

    @dataclasses.dataclass(frozen=True)
    class Options:
        """Two."""

        told: int = 0
        """How many."""
        forgotten: int = 0

        def method(self, argument: int) -> None:
            """Does nothing."""

    class Child(Options):
        def method(self, argument: int) -> None:
            """Does more.

            :param argument: how much.
            """

    assert undocumented(function) == ["forgotten", "hinted"]
    assert undocumented(Options) == ["forgotten", "method(argument)"]
    assert undocumented(Child) == ["forgotten"]
