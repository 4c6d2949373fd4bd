"""Signatures of public functions for type checkers, also of functions that are generated at import."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CALLS = ROOT / "tests" / "typed_calls.py"


def test_the_stub_has_the_present_signatures() -> None:
    stub = runpy.run_path(str(ROOT / "docs" / "signatures.py"))["stub"]
    assert (ROOT / "src" / "polariscope" / "_signatures.pyi").read_text() == stub(), "run make docs"


def test_mypy_accepts_right_calls_and_refuses_wrong_ones() -> None:
    run = subprocess.run(
        [sys.executable, "-m", "mypy", str(CALLS)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    refused = {int(line) for line in re.findall(r"typed_calls\.py:(\d+): error", run.stdout)}
    wrong = {
        number
        for number, line in enumerate(CALLS.read_text().splitlines(), start=1)
        if line.endswith("# error")
    }
    assert refused == wrong, run.stdout
