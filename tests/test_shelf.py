"""Each part may import from those above it on the shelf, never from those below."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import polariscope

SHELF = [
    *("errors", "registry", "settings", "seeds", "files", "arrays", "variable_types"),
    *(
        "data",
        "nets",
        "priors",
        "posteriors",
        "likelihoods",
        "model",
        "objectives",
        "training",
        "representations",
    ),
    *("regime", "metrics", "similarity", "dimension"),
    *("geometry", "sizing", "comparison", "estimator"),
    *("studies", "report", "cli", "__main__"),
]
BASE = set(SHELF[: SHELF.index("data")])
ARRAYS_ONLY = {"regime", "metrics", "similarity", "dimension"}
NETWORK_LIBRARIES = {"torch", "torchvision", "safetensors.torch"}


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
    """Every import in the package at ``root`` that reaches down the shelf, as ``file:line: what``."""
    found = []
    for file in sorted(root.rglob("*.py")):
        path = file.relative_to(root)
        if path == Path("__init__.py"):
            continue  # the public face, which loads every part late
        part = path.parts[0].removesuffix(".py")
        if part not in SHELF:
            found.append(f"{path}: {part} has no place on the shelf; give it one in tests/test_shelf.py")
            continue
        package = ".".join([root.name, *path.parts[:-1]])
        for name, line in imports_of(file, package):
            reason = _reason_against(part, name, root)
            if reason:
                found.append(f"{path}:{line}: {reason}")
    return found


def _reason_against(part: str, name: str, root: Path) -> str | None:
    if part in ARRAYS_ONLY and any(
        name == library or name.startswith(f"{library}.") for library in NETWORK_LIBRARIES
    ):
        return f"{part} has arrays only, but imports {name}"
    words = name.split(".")
    if words[0] != root.name:
        return None
    if len(words) == 1 or words[1] not in SHELF:
        return None if words[1:] == ["__version__"] else f"{part} imports the public face ({name})"
    other = words[1]
    if other == part:
        return None
    if SHELF.index(other) > SHELF.index(part):
        return f"{part} imports {name} from below"
    if part in ARRAYS_ONLY and other not in BASE | ARRAYS_ONLY:
        below_its_init = len(words) > 2 and (root / other / f"{words[2]}.py").exists()
        if other != "representations" or below_its_init:
            return f"{part} has arrays only, but imports {name}"
    return None


def test_no_part_of_the_package_imports_from_below_it() -> None:
    assert misplaced_imports(Path(polariscope.__file__).parent) == []


def write(root: Path, **sources: str) -> Path:
    for name, source in sources.items():
        file = root / "house" / f"{name.replace('__', '/')}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(source)
    return root / "house"


@pytest.mark.parametrize(
    ("where", "source", "complaint"),
    [
        ("nets__conv", "from house.model import Model", "nets imports house.model.Model from below"),
        (
            "nets__conv",
            "def late():\n    import house.training.run",
            "nets imports house.training.run from below",
        ),
        ("nets__conv", "from ..priors import prior", "nets imports house.priors.prior from below"),
        ("errors", "from house import registry", "errors imports house.registry from below"),
        ("regime__rule", "import torch", "regime has arrays only, but imports torch"),
        (
            "metrics__mig",
            "def f():\n    from torch import nn",
            "metrics has arrays only, but imports torch.nn",
        ),
        ("metrics__mig", "from safetensors.torch import load", "metrics has arrays only"),
        (
            "regime__rule",
            "from house.model import Model",
            "regime has arrays only, but imports house.model.Model",
        ),
        (
            "regime__rule",
            "from house.data import dataset",
            "regime has arrays only, but imports house.data.dataset",
        ),
        (
            "regime__rule",
            "from house.representations.encode import encode",
            "imports house.representations.encode",
        ),
        ("regime__rule", "from house.representations import encode", "imports house.representations.encode"),
        (
            "regime__rule",
            "from house.metrics import metric",
            "regime imports house.metrics.metric from below",
        ),
        ("training__run", "import house as h", "training imports the public face (house)"),
        ("training__run", "from house import train", "training imports the public face (house.train)"),
        ("attic__box", "", "attic has no place on the shelf"),
    ],
)
def test_an_import_that_reaches_down_is_found(
    tmp_path: Path, where: str, source: str, complaint: str
) -> None:
    root = write(tmp_path, **{where: source, "representations__encode": "", "representations____init__": ""})
    found = misplaced_imports(root)
    assert len(found) == 1
    assert complaint in found[0]


@pytest.mark.parametrize(
    ("where", "source"),
    [
        ("__init__", "from house.cli import main"),
        ("model", "from house import __version__, files\nfrom house.nets import net"),
        ("nets__conv", "from . import net\nfrom .mlp import dense\nimport torch"),
        (
            "regime__rule",
            "from house.representations import Representation\nfrom house.errors import InputError",
        ),
        ("regime__rule", "import numpy, torchlike"),
        ("metrics__mig", "from house.regime.rule import types_of"),
        ("cli__train", "from house.training.run import train"),
    ],
)
def test_an_import_that_reaches_up_is_allowed(tmp_path: Path, where: str, source: str) -> None:
    root = write(tmp_path, **{"representations__encode": "", where: source})
    assert misplaced_imports(root) == []
