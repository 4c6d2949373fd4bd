"""The check of real files tells those that are not the published ones, check by check."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

import originals
from polariscope.data.cache import VARIABLE

FILE = Path(__file__).parents[2] / "benchmarks" / "originals" / "real_data.py"


def test_small_files_in_the_format_pass_what_they_can_and_fail_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = importlib.util.spec_from_file_location("originals_real_data", FILE)
    check = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(check)
    monkeypatch.setenv(VARIABLE, str(tmp_path / "cache"))
    written = originals.mnist(tmp_path)
    assert not np.array_equal(written.factors[:6, 0], check.FIRST_LABELS["mnist"][0][:6])
    arguments = ["--mnist", str(tmp_path), "--steps", "2", "--out", str(tmp_path / "out")]
    results = check.main(arguments)
    holds = {each["what"].removeprefix("mnist: "): each["holds"] for each in results["rows"]}
    assert not results["holds"]
    assert sum(what.startswith("MD5") and not right for what, right in holds.items()) == 4
    assert holds["shape"]
    assert holds["images that differ from the files'"]
    assert not holds["images"]
    assert not holds["first labels, train"]
