"""Constants of FONDUE: each has a meaning and a source, and the table in the docs is made from them."""

from __future__ import annotations

import ast
import dataclasses
import runpy
from pathlib import Path

from polariscope.core.options import options_of
from polariscope.sizing.fondue_settings import FondueSettings, constants_table

ROOT = Path(__file__).resolve().parents[2]
SIZING = ROOT / "src/polariscope/sizing"


def test_every_constant_has_a_meaning_and_a_source() -> None:
    documented = options_of(FondueSettings)
    for field in dataclasses.fields(FondueSettings):
        assert documented[field.name].help, field.name
        assert field.metadata["source"], field.name
        assert f"| `{field.name}` | {field.default} |" in constants_table()


def test_the_docs_have_the_present_table() -> None:
    page = runpy.run_path(str(ROOT / "docs" / "sizing_constants.py"))["page"]
    assert (ROOT / "docs" / "sizing.md").read_text() == page()


def test_the_search_of_fondue_has_no_numbers_of_its_own() -> None:
    """Module-level numbers in capitals are constants that are missing in the table."""
    modules = [SIZING / "methods/fondue.py", SIZING / "trained.py"]
    modules += [SIZING / "deciding.py", SIZING / "judge.py"]
    modules += [SIZING / f"methods/support/{name}.py" for name in ("closed_form", "forecast")]
    for file in modules:
        for node in ast.parse(file.read_text()).body:
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant | ast.Tuple):
                numbers = [each for each in ast.walk(node.value) if isinstance(each, ast.Constant)]
                assert not any(isinstance(each.value, int | float) for each in numbers), ast.unparse(node)
