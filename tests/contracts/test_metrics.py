"""Every metric keeps the contract of its family."""

from __future__ import annotations

import importlib

import pytest

from forked import Forks
from polariscope.analysis.metrics import INVARIANCES, family
from polariscope.testing import MetricContract
from polariscope.testing.metrics import CHANGES, variants

NAMES = list(family)


class TestMetrics(MetricContract):
    names = NAMES


@pytest.mark.parametrize("name", NAMES)
def test_the_file_and_the_name_give_one_callable(name: str) -> None:
    word = name.replace("-", "_")
    metric = getattr(importlib.import_module(f"polariscope.analysis.metrics.{word}"), word)
    assert metric is family[name]
    assert metric.__module__ == f"polariscope.analysis.metrics.{word}"


def test_every_change_is_tested() -> None:
    assert set(CHANGES) == set(INVARIANCES)


WRONG_WORDS = """
import inspect, numpy as np
from polariscope.core.errors import InputError
from polariscope.analysis.metrics import family
rng = np.random.default_rng(0)
z, w = rng.normal(size=(60, 3)), rng.integers(2, size=(60, 2))
for name in family:
    arrays = {"models": [z, z], "codes": z, "factors": w}
    try:
        score = family[name](*(arrays[need] for need in family.traits(name)["needs"]), variant="foo")
    except InputError as error:
        print(name, error)
    else:
        print(name, "took it:", score)
"""


def test_a_variant_that_does_not_exist_is_refused_with_those_that_do(forks: Forks) -> None:
    # In a process of its own: the type checker of the tests would be first to refuse it.
    done = forks.run(WRONG_WORDS)
    assert done.returncode == 0, done.stderr
    found = dict(line.split(" ", 1) for line in done.stdout.splitlines())
    assert found == {
        name: f"option variant of metric {name!r} must be one of {', '.join(variants(name))}, got 'foo'."
        for name in NAMES
    }
