"""Each room may import from those before it, never from those after it; and a run's files have one owner."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import polariscope
from polariscope.core.registry import Family
from polariscope.storage import NAMES

ROOMS = [
    *("core", "numerics", "analysis", "data", "models", "geometry", "objectives", "storage", "training"),
    *("layers", "runs", "sizing", "manipulation", "estimators", "studies", "pages", "reproduce", "cli"),
    "__main__",
]
ARRAYS_ONLY = {"numerics", "analysis"}
NETWORK_LIBRARIES = {"torch", "torchvision", "safetensors.torch"}
ROOT = Path(polariscope.__file__).parent


def imports_of(file: Path, package: str) -> Iterator[tuple[str, int]]:
    """Dotted names imported anywhere in a file, inside functions too, with the line; ``package`` is its own."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parents = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            module = ".".join([*parents, *([node.module] if node.module else [])])
            yield from ((f"{module}.{alias.name}", node.lineno) for alias in node.names)


def misplaced_imports(root: Path) -> list[str]:
    """Every import in the package at ``root`` that reaches into a later room, as ``file:line: what``."""
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


def write(root: Path, **sources: str) -> Path:
    for name, source in sources.items():
        file = root / "house" / f"{name.replace('__', '/')}.py"
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
        (
            "analysis__score",
            "from house.data import dataset",
            "analysis imports house.data.dataset from a later",
        ),
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
    """Where another room than storage spells out the name of a file of a run or of a search, docstrings included."""
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
    """Every string in a source, with its line."""
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
