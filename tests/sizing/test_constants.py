"""Every constant of the search is in docs/sizing.md, with its value and where it comes from."""

from __future__ import annotations

import ast
from pathlib import Path

from polariscope.models.likelihoods import gaussian
from polariscope.sizing.support import candidates, closed_form, deciding, forecast, judge, search

ROOT = Path(__file__).resolve().parents[2]
FONDUE = ROOT / "src/polariscope/sizing/fondue.py"
MODULES = {
    "fondue": FONDUE,
    "forecast": forecast.__file__,
    "judge": judge.__file__,
    "deciding": deciding.__file__,
    "search": search.__file__,
    "candidates": candidates.__file__,
    "closed_form": closed_form.__file__,
    "gaussian": gaussian.__file__,
}
ELSEWHERE = {("search", "CAP"), ("gaussian", "SMALLEST_SCALE")}
"""Of the published searches, and of a variance for each value."""


def constants(file: str | Path) -> dict[str, object]:
    """Numbers, and tuples of them, that a module gives a name in capitals."""
    found: dict[str, object] = {}
    for node in ast.parse(Path(file).read_text()).body:
        if not isinstance(node, ast.Assign):
            continue
        (target,) = node.targets
        try:
            value = ast.literal_eval(node.value)
        except ValueError:
            continue
        names = [name.id for name in ast.walk(target) if isinstance(name, ast.Name)]
        values = value if isinstance(target, ast.Tuple) else (value,)
        found |= {
            name: v
            for name, v in zip(names, values, strict=True)
            if name.isupper() and not isinstance(v, str)
        }
    return found


def test_the_table_has_every_constant_with_its_value_and_source() -> None:
    rows = [
        line.split("|")[1:5]
        for line in (ROOT / "docs/sizing.md").read_text().splitlines()
        if line.startswith("|")
    ]
    said = {
        (module.strip(), name.strip()): (ast.literal_eval(value.strip()), source.strip())
        for module, name, value, source in rows[2:]
        if module.strip() in MODULES
    }
    assert all(source for _, source in said.values())
    there = {
        (module, name): value for module, file in MODULES.items() for name, value in constants(file).items()
    }
    there = {key: value for key, value in there.items() if key not in ELSEWHERE}
    assert {key: value for key, (value, _) in said.items()} == there
