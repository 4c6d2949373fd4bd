"""The panel of the thresholds: no data in both halves, and the arithmetic behind its tables."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def script():
    """The script as a module; it imports its neighbour."""
    sys.path.insert(0, str(FOLDER))
    try:
        spec = importlib.util.spec_from_file_location("in_use_panel", FOLDER / "in_use.py")
        module = importlib.util.module_from_spec(spec)
        sys.modules["in_use_panel"] = module
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(FOLDER))
    return module


def test_every_member_has_a_half_and_no_data_are_in_both(script):
    members = list(script.members())
    assert len({member.name for member in members}) == len(members)
    halves = {}
    for member in members:
        halves.setdefault(member.data, set()).add(script.HALVES[member.family])
    assert all(len(found) == 1 for found in halves.values())
    assert set(halves) == set(script.DATA)
    assert {half for found in halves.values() for half in found} == {script.CHOSEN_ON, script.REPORTED}


def test_lower_limits_are_compared_with_the_thresholds(script):
    rows = [
        {"effect": 1.0, "effect_error": 0.1, "information": 0.5, "information_error": 0.0},
        {"effect": 1.0, "effect_error": 0.6, "information": 0.5, "information_error": 0.0},
    ]
    by_decoder, by_information = script.decisions(rows, 0.1, 0.1)
    assert by_decoder.tolist() == [True, False]
    assert by_information.tolist() == [True, True]


def test_kappa_is_1_for_equal_rules_and_0_for_independent_ones(script):
    first = np.array([True, True, False, False])
    assert script.kappa(first, first) == 1
    assert script.kappa(first, np.array([True, False, True, False])) == 0
