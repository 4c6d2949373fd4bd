"""Informative types of public parameters."""

from __future__ import annotations

import ast
import dataclasses
import functools
from collections.abc import Iterator
from pathlib import Path

import polariscope

PACKAGE = Path(polariscope.__file__).parent
MOST = 0.02
"""Maximum share of public parameters whose annotation contains Any."""


@dataclasses.dataclass(frozen=True)
class Parameter:
    """An annotated argument of a public function or method, or a field of a public class."""

    place: str
    annotation: str

    @property
    def is_any(self) -> bool:
        """True if Any is part of the annotation; strings and aliases of the package are resolved by name."""
        return any(
            (isinstance(node, ast.Name) and node.id in aliases())
            or (isinstance(node, ast.Attribute) and node.attr == "Any")
            for node in ast.walk(ast.parse(self.annotation, mode="eval"))
        )


def public(name: str) -> bool:
    return not name.startswith("_") or name in ("__init__", "__call__")


def parameters_of(body: list[ast.stmt], place: str, *, in_class: bool = False) -> Iterator[Parameter]:
    """Yield the parameters of a module or class: arguments of its functions, fields of its classes."""
    for node in body:
        if isinstance(node, ast.ClassDef) and public(node.name):
            yield from parameters_of(node.body, f"{place}.{node.name}", in_class=True)
        elif isinstance(node, ast.FunctionDef) and public(node.name):
            given = node.args
            every = (*given.posonlyargs, *given.args, given.vararg, *given.kwonlyargs, given.kwarg)
            for argument in every:
                if argument is not None and argument.annotation is not None:
                    yield Parameter(f"{place}.{node.name}({argument.arg})", ast.unparse(argument.annotation))
        elif in_class and isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            fields = [node.target.id] if public(node.target.id) else []
            yield from (Parameter(f"{place}.{name}", ast.unparse(node.annotation)) for name in fields)


def aliases_of_any(trees: list[ast.Module]) -> set[str]:
    """Return Any and the names of the package that are only aliases of it, which would hide it."""
    return {"Any"} | {
        node.targets[0].id
        for tree in trees
        for node in tree.body
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and isinstance(node.value, ast.Name)
        and node.value.id == "Any"
    }


@functools.cache
def trees() -> dict[str, ast.Module]:
    """Return every file of the package, parsed once, and not during test collection."""
    return {
        str(file.relative_to(PACKAGE)): ast.parse(file.read_text(encoding="utf-8"))
        for file in sorted(PACKAGE.rglob("*.py"))
    }


@functools.cache
def aliases() -> set[str]:
    return aliases_of_any(list(trees().values()))


def every_parameter() -> list[Parameter]:
    return [parameter for file, tree in trees().items() for parameter in parameters_of(tree.body, file)]


def test_any_is_rare_among_the_types_of_public_parameters() -> None:
    every = every_parameter()
    vague = [parameter for parameter in every if parameter.is_any]
    assert len(every) > 1000  # or the files were not found
    listed = "\n".join(f"{parameter.place}: {parameter.annotation}" for parameter in vague)
    assert len(vague) <= MOST * len(every), f"{len(vague)} of {len(every)} are Any:\n{listed}"


def test_any_is_seen_wherever_it_hides() -> None:
    hidden = ("Any", "dict[str, Any] | None", "typing.Any", "Callable[..., Any]", "Mapping[str, list[Any]]")
    assert all(Parameter("", text).is_any for text in hidden)
    assert not any(Parameter("", text).is_any for text in ("object", "Mapping[str, object]", "Anything"))
    assert aliases_of_any([ast.parse("Whatever = Any\nNumber = int")]) == {"Any", "Whatever"}
