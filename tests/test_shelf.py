"""Order of imports: each package imports only from those before it; and a run's files have one owner."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import polariscope
from polariscope.core.registry import SUPPORT, Family
from polariscope.storage import NAMES

ROOMS = [
    *("core", "numerics", "analysis", "rendering", "data", "models", "geometry", "objectives", "storage"),
    *("training", "layers", "runs", "sizing", "manipulation", "estimators", "studies", "pages", "reproduce"),
    *("cli", "testing"),
    "__main__",
]
ARRAYS_ONLY = {"numerics", "analysis", "rendering"}
NETWORK_LIBRARIES = {"torch", "torchvision", "safetensors.torch"}
ROOT = Path(polariscope.__file__).parent


def imports_of(file: Path, package: str) -> Iterator[tuple[str, int]]:
    """Yield dotted names imported anywhere in a file of ``package``, also inside functions, with the line."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from names_of_import(node, package)


def names_of_import(node: ast.Import | ast.ImportFrom, package: str) -> Iterator[tuple[str, int]]:
    """Yield dotted names that a statement imports, with the line; ``package`` is that of its file."""
    if isinstance(node, ast.Import):
        yield from ((alias.name, node.lineno) for alias in node.names)
    else:
        parents = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
        module = ".".join([*parents, *([node.module] if node.module else [])])
        yield from ((f"{module}.{alias.name}", node.lineno) for alias in node.names)


def misplaced_imports(root: Path) -> list[str]:
    """Return every import in the package at ``root`` from a later package, as ``file:line: name``."""
    complaints = []
    for file in sorted(root.rglob("*.py")):
        path = file.relative_to(root)
        if path == Path("__init__.py"):
            continue  # the public face, which loads every part late
        room = path.parts[0].removesuffix(".py")
        if room not in ROOMS:
            complaints.append(
                f"{path}: {room} is no room of the house; give it a place in tests/test_shelf.py"
            )
            continue
        package = ".".join([root.name, *path.parts[:-1]])
        for name, line in imports_of(file, package):
            reason = _reason_against(room, name, root)
            if reason:
                complaints.append(f"{path}:{line}: {reason}")
    return complaints


def _reason_against(room: str, name: str, root: Path) -> str | None:
    if room in ARRAYS_ONLY and any(
        name == library or name.startswith(f"{library}.") for library in NETWORK_LIBRARIES
    ):
        return f"{room} has arrays only, but imports {name}"
    words = name.split(".")
    if words[0] != root.name:
        return None
    if len(words) == 1 or words[1] not in ROOMS:
        return None if words[1:] == ["__version__"] else f"{room} imports the public face ({name})"
    if ROOMS.index(words[1]) > ROOMS.index(room):
        return f"{room} imports {name} from a later room"
    return None


def test_no_room_imports_from_a_later_one() -> None:
    assert misplaced_imports(ROOT) == []


def path_of(name: str) -> str:
    """Return ``sizing/__init__.py`` for ``sizing____init__``: two underscores after a word separate folders."""
    return re.sub(r"(?<=[a-z])__(?=\w)", "/", name) + ".py"


def write(root: Path, **sources: str) -> Path:
    for name, source in sources.items():
        file = root / "house" / path_of(name)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(source)
    return root / "house"


@pytest.mark.parametrize(
    ("where", "source", "complaint"),
    [
        (
            "models__model",
            "from house.training import loop",
            "models imports house.training.loop from a later",
        ),
        (
            "models__nets__conv",
            "def late():\n    import house.runs.run",
            "models imports house.runs.run from a",
        ),
        ("core__errors", "from house import numerics", "core imports house.numerics from a later room"),
        ("data__own__arrays", "from ...models import net", "data imports house.models.net from a later room"),
        ("analysis__regime__rule", "import torch", "analysis has arrays only, but imports torch"),
        ("numerics__distances", "def f():\n    from torch import nn", "numerics has arrays only"),
        ("analysis__score", "from safetensors.torch import load", "analysis has arrays only"),
        ("rendering__mesh", "import torch.nn", "rendering has arrays only, but imports torch.nn"),
        (
            "rendering__mesh",
            "from house.data import cache",
            "rendering imports house.data.cache from a later",
        ),
        (
            "analysis__score",
            "from house.data import dataset",
            "analysis imports house.data.dataset from a later",
        ),
        ("cli__list", "from house.testing import each", "cli imports house.testing.each from a later room"),
        ("training__loop", "import house as h", "training imports the public face (house)"),
        ("training__loop", "from house import train", "training imports the public face (house.train)"),
        ("attic__box", "", "attic is no room of the house"),
    ],
)
def test_an_import_from_a_later_room_is_found(
    tmp_path: Path, where: str, source: str, complaint: str
) -> None:
    complaints = misplaced_imports(write(tmp_path, **{where: source}))
    assert len(complaints) == 1
    assert complaint in complaints[0]


@pytest.mark.parametrize(
    ("where", "source"),
    [
        ("__init__", "from house.cli import main"),
        ("models__model", "from house import __version__\nfrom house.core import files\nimport torch"),
        ("models__nets__conv", "from . import net\nfrom .mlp import dense"),
        ("analysis__regime__rule", "import numpy, torchlike\nfrom house.numerics import intervals"),
        ("cli__train", "from house.training.train import train"),
    ],
)
def test_an_import_from_an_earlier_room_is_allowed(tmp_path: Path, where: str, source: str) -> None:
    assert misplaced_imports(write(tmp_path, **{where: source})) == []


# Imports that break the rule. Keep it empty: a test fails when an entry is no longer needed.
REACHES_INTO_SUPPORT: set[tuple[str, str]] = set()


def reaches_into_support(root: Path) -> dict[tuple[str, str], str]:
    """Return imports of a ``support`` folder by files outside its parent folder, as ``file:line: name``.

    Keys are the file and the imported support module, both relative to the package at ``root``.
    """
    complaints = {}
    for file in sorted(root.rglob("*.py")):
        path = file.relative_to(root)
        folder = [root.name, *path.parts[:-1]]
        for name, line in imports_of(file, ".".join(folder)):
            parts = name.split(".")
            if parts[0] != root.name or SUPPORT not in parts:
                continue
            # The innermost one decides: what is in a/support/b/support belongs to a/support/b.
            index = len(parts) - 1 - parts[::-1].index(SUPPORT)
            owner = parts[:index]
            if folder[: len(owner)] != owner:
                module = ".".join(parts[1 : index + 2])
                complaints[path.as_posix(), module] = (
                    f"{path}:{line}: {module} is private to {'.'.join(owner)}"
                )
    return complaints


def test_support_is_imported_only_by_the_folder_that_it_belongs_to() -> None:
    complaints = reaches_into_support(ROOT)
    assert [text for key, text in complaints.items() if key not in REACHES_INTO_SUPPORT] == []


def test_every_exception_of_support_is_still_needed() -> None:
    assert set(REACHES_INTO_SUPPORT) - set(reaches_into_support(ROOT)) == set()


@pytest.mark.parametrize(
    ("where", "source", "module"),
    [
        ("cli__size", "from house.sizing.support.size import size", "sizing.support.size"),
        ("cli__size", "def late():\n    import house.sizing.support.size", "sizing.support.size"),
        ("cli__size", "from house.sizing.support import size", "sizing.support.size"),
        ("cli__size", "from house.sizing import support", "sizing.support"),
        ("analysis__score", "from .metrics.support import table", "analysis.metrics.support.table"),
        ("analysis__metrics_of", "from .metrics.support import table", "analysis.metrics.support.table"),
        ("__init__", "from house.sizing.support.size import size", "sizing.support.size"),
        ("data__support__files", "from house.data.own.support.rows import rows", "data.own.support.rows"),
        ("data__own__a", "from house.data.support.own.support import b", "data.support.own.support.b"),
    ],
)
def test_an_import_of_anothers_support_is_found(tmp_path: Path, where: str, source: str, module: str) -> None:
    complaints = reaches_into_support(write(tmp_path, **{where: source}))
    assert list(complaints) == [(path_of(where), module)]


@pytest.mark.parametrize(
    ("where", "source"),
    [
        ("sizing__fondue", "from house.sizing.support.search import search"),
        ("sizing____init__", "from .support import search"),
        ("sizing__support__size", "from house.sizing.support import search\nfrom . import judge"),
        ("data__own__deep__file", "from house.data.own.support.rows import rows"),
        ("cli__help", "from elsewhere.support import table\nfrom house.core.supported import names"),
    ],
)
def test_an_import_of_ones_own_support_is_allowed(tmp_path: Path, where: str, source: str) -> None:
    assert reaches_into_support(write(tmp_path, **{where: source})) == {}


def runtime_imports(node: ast.AST) -> Iterator[ast.Import | ast.ImportFrom]:
    """Yield import statements in a tree, also inside functions, except those for type checkers."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        yield node
    elif isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
        for child in node.orelse:
            yield from runtime_imports(child)
    else:
        for child in ast.iter_child_nodes(node):
            yield from runtime_imports(child)


def import_graph(root: Path) -> dict[str, set[str]]:
    """Return the modules of the package at ``root`` by name, except the package itself, with the modules they import.

    The public module and members that a family imports by name are left out.
    """
    parts_of = {
        file: tuple(part for part in file.relative_to(root).with_suffix("").parts if part != "__init__")
        for file in root.rglob("*.py")
    }
    modules = {".".join(parts) for parts in parts_of.values() if parts}
    graph: dict[str, set[str]] = {}
    for file, parts in parts_of.items():
        if not parts:
            continue
        package = ".".join([root.name, *(parts if file.name == "__init__.py" else parts[:-1])])
        names = [
            name
            for node in runtime_imports(ast.parse(file.read_text(encoding="utf-8")))
            for name, _ in names_of_import(node, package)
        ]
        inside = [name.removeprefix(f"{root.name}.") for name in names if name.startswith(f"{root.name}.")]
        # "package.module.thing" imports the module, "package.module" too.
        targets = {name if name in modules else name.rpartition(".")[0] for name in inside}
        own = ".".join(parts)
        graph[own] = (targets & modules) - {own}
    return graph


def circles(graph: dict[str, set[str]]) -> set[frozenset[str]]:
    """Return sets of modules that import each other, directly or through others."""
    reached: dict[str, set[str]] = {}
    for module in graph:
        seen: set[str] = set()
        waiting = [module]
        while waiting:
            new = graph[waiting.pop()] - seen
            seen |= new
            waiting += new
        reached[module] = seen
    return {
        frozenset(other for other in reached[module] if module in reached[other])
        for module in graph
        if module in reached[module]
    }


def test_no_modules_import_each_other_in_a_circle() -> None:
    assert [sorted(circle) for circle in circles(import_graph(ROOT))] == []


@pytest.mark.parametrize(
    "sources",
    [
        {"a": "from house.b import x", "b": "from house.a import y"},
        {"a": "def late():\n    from house import b", "b": "import house.a"},
        {"a": "from . import b", "b": "class C:\n    def late(self):\n        from .a import x"},
        {"a": "if TYPE_CHECKING:\n    pass\nelse:\n    import house.b", "b": "import house.a"},
    ],
)
def test_a_circle_is_found(tmp_path: Path, sources: dict[str, str]) -> None:
    assert circles(import_graph(write(tmp_path, **sources))) == {frozenset({"a", "b"})}


def test_a_circle_of_three_through_a_package_is_found(tmp_path: Path) -> None:
    root = write(
        tmp_path,
        **{"a": "from house import b", "b____init__": "from .c import x", "b__c": "import house.a"},
    )
    assert circles(import_graph(root)) == {frozenset({"a", "b", "b.c"})}


def test_imports_for_type_checkers_and_of_the_public_face_make_no_circle(tmp_path: Path) -> None:
    root = write(
        tmp_path,
        **{
            "__init__": "import house.a",
            "a": "if typing.TYPE_CHECKING:\n    from house.b import x",
            "b": "import numpy\nfrom house.a import y\nfrom house import __version__",
        },
    )
    assert circles(import_graph(root)) == set()


def test_a_public_family_keeps_its_name_whatever_is_imported() -> None:
    for module in pkgutil.walk_packages([str(ROOT)], "polariscope."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    for name in polariscope._FAMILIES:
        assert isinstance(getattr(polariscope, name), Family), name


def test_a_member_is_an_attribute_an_item_and_in_completion() -> None:
    for name in polariscope._FAMILIES:
        family = getattr(polariscope, name)
        for member in family:
            attribute = member.replace("-", "_")
            assert getattr(family, attribute) is family[member]
            assert attribute in dir(family)


def test_a_familys_folder_holds_its_members_and_nothing_else() -> None:
    for name in polariscope._FAMILIES:
        family = getattr(polariscope, name)
        files = {
            module.name
            for folder in family.folders
            for module in pkgutil.iter_modules(importlib.import_module(folder).__path__)
            if not module.ispkg
        }
        assert files == {member.replace("-", "_") for member in family}, name


def file_names_outside_storage(root: Path) -> list[str]:
    """Return the places outside storage that spell out the name of a file of a run or search, including docstrings."""
    names = re.compile(rf"(?<![\w.-])({'|'.join(map(re.escape, NAMES))})(?![\w.-])")
    complaints = []
    for file in sorted(root.rglob("*")):
        path = file.relative_to(root)
        if path.parts[0] == "storage" or file.suffix not in (".py", ".j2"):
            continue
        text = file.read_text(encoding="utf-8")
        found = [(1, text)] if file.suffix == ".j2" else strings_of(text)
        complaints += [
            f"{path}:{line}: {match[1]}" for line, string in found for match in names.finditer(string)
        ]
    return complaints


def strings_of(source: str) -> list[tuple[int, str]]:
    """Return every string in a source, with its line."""
    return [
        (node.lineno, node.value)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]


def test_no_room_but_storage_names_a_file_of_a_run() -> None:
    assert file_names_outside_storage(ROOT) == []


def test_a_file_name_in_another_room_is_found(tmp_path: Path) -> None:
    root = write(
        tmp_path,
        cli__a='open(run / "settings.json")',
        cli__b='"""Reads ``log.jsonl``."""',
        cli__c='f"{run}/model.safetensors"',
        cli__d='"my-settings.json.j2 and rescore.json"',
        storage__layout='LOG = "log.jsonl"',
    )
    assert [line.partition(": ")[2] for line in file_names_outside_storage(root)] == [
        "settings.json",
        "log.jsonl",
        "model.safetensors",
    ]
