"""Catalogue of the members of a family, read from their files without importing them: for lists, help and suggestions.

Importing all members of some families imports PyTorch, which takes seconds. Names, docstrings and options are read from
the source. Annotations and defaults are evaluated; the names in them are resolved through the imports of the file. A
contract test compares the catalogue with the registry.
"""

from __future__ import annotations

import ast
import builtins
import dataclasses
import functools
import importlib
import inspect
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar, get_origin

from polariscope.core.errors import unknown
from polariscope.core.options import Option, documented_fields, documented_parameters, options_of
from polariscope.core.plugins import plugins_of
from polariscope.core.registry import first_line, group_of

PACKAGE = "polariscope"
ROOT = Path(__file__).parents[1]
OPENED = ("polariscope.core.",)
"""Modules of the package that are imported if one of their names is required; they do not import PyTorch."""
Definition = ast.ClassDef | ast.FunctionDef


@dataclasses.dataclass(frozen=True, eq=False)
class Member:
    """A member of a family as its file declares it."""

    name: str
    doc: str
    """Its docstring."""
    declared_options: Mapping[str, Option]
    """Its options, in the order of the file."""
    is_open: bool = True
    """If True, docstring and options are known; False for a plug-in that was not imported."""

    @property
    def summary(self) -> str:
        """First line of the docstring, without markup."""
        return first_line(self.doc)


class Catalogue(Mapping):  # not Mapping[str, Member], for the same reason as Family
    """The members of a family by name, read from their files."""

    def __init__(self, noun: str, members: Mapping[str, Member]) -> None:
        self.noun = noun
        self._members = dict(sorted(members.items()))

    def __getitem__(self, name: str) -> Member:
        if name not in self._members:
            raise unknown(self.noun, name, self._members)
        return self._members[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._members)

    def __len__(self) -> int:
        return len(self._members)


def read_catalogue(home: str) -> Catalogue:
    """Read the members of a family, including members that were registered elsewhere.

    For a plug-in that is not imported yet, only the name and the package are known.

    :param home: the module of the family: ``polariscope.objectives``.
    """
    noun, group, members = _read_files(home)
    opened = sys.modules[home].family.opened if home in sys.modules else {}
    others = {
        name: Member(name, inspect.getdoc(concept) or "", options_of(concept))
        for name, concept in opened.items()
        if name not in members
    }
    plugins = {
        name: Member(name, f"Plug-in of {plugin.package}, {plugin.value}.", {}, is_open=False)
        for name, plugin in (plugins_of(group) if group else {}).items()
    }
    # Built-in members replace plug-ins of the same name, as in the registry.
    return Catalogue(noun, {**plugins, **members, **others})


def read_family(name: str) -> Catalogue:
    """Read the members of a family from their files, without importing them.

    :param name: public name of the family: objectives.
    """
    return read_catalogue(importlib.import_module(PACKAGE)._FAMILIES[name])


@functools.cache
def _read_files(home: str) -> tuple[str, str | None, dict[str, Member]]:
    """Return the noun of a family, its group of entry points, and the members that its files declare."""
    module = _source(home)
    # The __init__ of each family contains ``family = open_family(__name__, noun, …)``.
    call = module.assignments["family"]
    assert isinstance(call, ast.Call)
    noun = ast.literal_eval(call.args[1])
    keywords = {keyword.arg: keyword.value for keyword in call.keywords}
    folders = module.evaluate(keywords["folders"]) if "folders" in keywords else (home,)
    members = {}
    for folder in folders:
        for file in sorted(_path(folder).glob("*.py")):
            if file.stem != "__init__":
                for member in _members(_source(f"{folder}.{file.stem}")):
                    members[member.name] = member
    group = ast.literal_eval(keywords["group"]) if "group" in keywords else group_of(home)
    return noun, group, members


def _members(module: _Source) -> Iterator[Member]:
    """Yield the definitions of a file that a decorator registers under a name."""
    for node in module.definitions.values():
        for decorator in node.decorator_list:
            if isinstance(decorator, ast.Call) and decorator.args and _is_text(decorator.args[0]):
                doc = inspect.cleandoc(ast.get_docstring(node) or "")
                yield Member(ast.literal_eval(decorator.args[0]), doc, module.options(node))


def _decorator_name(decorator: ast.expr) -> str:
    """Return the last name of a decorator: ``dataclass`` of ``@dataclasses.dataclass(frozen=True)``."""
    function = decorator.func if isinstance(decorator, ast.Call) else decorator
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _path(module: str) -> Path:
    return ROOT.joinpath(*module.split(".")[1:])


@functools.cache
def _source(module: str) -> _Source:
    return _Source(module)


class _Source(dict[str, Any]):
    """A module that is parsed and not executed; as a namespace it evaluates names on demand."""

    def __init__(self, name: str) -> None:
        super().__init__(__name__=name, __builtins__=builtins)
        path = _path(name)
        self.file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        self.assignments: dict[str, ast.expr] = {}
        self.definitions: dict[str, Definition] = {}
        self.imports: dict[str, tuple[str, str | None]] = {}
        self._read(ast.parse(self.file.read_text(encoding="utf-8")).body)

    def _read(self, body: list[ast.stmt]) -> None:
        for node in body:
            if isinstance(node, ast.Assign):
                self.assignments |= {
                    target.id: node.value for target in node.targets if isinstance(target, ast.Name)
                }
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value:
                self.assignments[node.target.id] = node.value
            elif isinstance(node, Definition):
                self.definitions[node.name] = node
            elif isinstance(node, ast.Import):
                for alias in node.names:
                    self.imports[alias.asname or alias.name.partition(".")[0]] = (
                        alias.name if alias.asname else alias.name.partition(".")[0],
                        None,
                    )
            elif isinstance(node, ast.ImportFrom) and node.module:
                for alias in node.names:
                    self.imports[alias.asname or alias.name] = node.module, alias.name
            elif isinstance(node, ast.If):  # TYPE_CHECKING
                self._read(node.body)

    def __missing__(self, name: str) -> Any:
        if name in self.assignments:
            self[name] = self.evaluate(self.assignments[name])
        elif name in self.definitions:
            # Making the class would execute the file, so a stand-in has its name and defaults.
            self[name] = _ReadClass(name, (), {"__module__": self["__name__"], "source": self})
        elif name in self.imports:
            self[name] = _imported(*self.imports[name])
        else:
            return getattr(builtins, name)
        return self[name]

    def evaluate(self, node: ast.expr) -> Any:
        """Return the value of an expression."""
        # Names are resolved by __missing__, which Python calls for locals but not for globals.
        return eval(compile(ast.Expression(node), str(self.file), "eval"), {}, self)

    def find(self, name: str) -> tuple[_Source, Definition] | None:
        """Find the definition of a class or function: in this module, or in the module it is imported from."""
        if name in self.definitions:
            return self, self.definitions[name]
        module, attribute = self.imports.get(name, ("", None))
        if not module.startswith(f"{PACKAGE}.") or attribute is None:
            return None
        return _source(module).find(attribute)

    def options(self, node: Definition) -> dict[str, Option]:
        """Return the options of a class (own and inherited fields) or of a function (keyword-only arguments)."""
        if isinstance(node, ast.FunctionDef):
            return self._parameters(node)
        options: dict[str, Option] = {}
        # As in the method resolution order, fields of the first base replace those of later ones.
        for base in reversed(node.bases):
            base = base.value if isinstance(base, ast.Subscript) else base  # AbstractAnalysis[Representation]
            home = self.find(base.id) if isinstance(base, ast.Name) else None
            if home is not None:
                options |= home[0].options(home[1])
        if "dataclass" not in map(_decorator_name, node.decorator_list):
            return options
        helps = documented_fields(node)
        for field in node.body:
            if not isinstance(field, ast.AnnAssign) or not isinstance(field.target, ast.Name):
                continue
            annotation = self.evaluate(field.annotation)
            if isinstance(annotation, dataclasses.InitVar) or ClassVar in (
                annotation,
                get_origin(annotation),
            ):
                continue
            name = field.target.id
            default = dataclasses.MISSING if field.value is None else self.evaluate(field.value)
            is_option = True
            if isinstance(default, dataclasses.Field):
                is_option = default.init and default.metadata.get("is_option", True)
                factory = default.default_factory
                default = default.default if factory is dataclasses.MISSING else factory()
            if is_option:
                options[name] = Option(name, annotation, default, helps.get(name, ""))
            else:
                # A subclass can withdraw an inherited option.
                options.pop(name, None)
        return options

    def _parameters(self, node: ast.FunctionDef) -> dict[str, Option]:
        helps = documented_parameters(ast.get_docstring(node) or "")
        options = {}
        for argument, default in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True):
            annotation = Any if argument.annotation is None else self.evaluate(argument.annotation)
            value = dataclasses.MISSING if default is None else self.evaluate(default)
            options[argument.arg] = Option(argument.arg, annotation, value, helps.get(argument.arg, ""))
        return options


def _imported(module: str, name: str | None) -> Any:
    """Return an imported name: read from its file if that is in the package, imported otherwise."""
    is_read = module == PACKAGE or module.startswith(f"{PACKAGE}.")
    if name is not None and is_read and not module.startswith(OPENED) and module != PACKAGE:
        if _path(f"{module}.{name}").with_suffix(".py").exists():
            return _Names(_source(f"{module}.{name}"))
        return _source(module)[name]
    opened = importlib.import_module(module)
    return opened if name is None else getattr(opened, name)


class _ReadClass(type):
    """A parsed class: its name, and the defaults of its fields as attributes (``TypeRule.alpha``)."""

    def __getattr__(cls, name: str) -> Any:
        source: _Source = cls.__dict__["source"]
        options = source.options(source.definitions[cls.__name__])
        if name not in options:
            raise AttributeError(name)
        return options[name].default


class _Names:
    """A parsed module, with its names as attributes."""

    def __init__(self, source: _Source) -> None:
        self._source = source

    def __getattr__(self, name: str) -> Any:
        return self._source[name]
