"""Which observations: one record, checked when it is made."""

from __future__ import annotations

import dataclasses
from typing import get_type_hints

import numpy as np
import pytest

from polariscope.core.errors import InputError
from polariscope.data.observations import ObservationOptions, Observations, Subset, SubsetOptions
from polariscope.data.splits import Split

SPLIT = Split(np.array([3, 1, 4]), np.array([0, 2]), np.array([], dtype=int))


def test_type_checkers_know_every_field():
    for record, options in ((Subset, SubsetOptions), (Observations, ObservationOptions)):
        assert list(get_type_hints(options)) == [field.name for field in dataclasses.fields(record)]


def test_all_observations_keep_their_order_and_some_are_drawn_without_replacement():
    np.testing.assert_array_equal(Subset(n_samples=None).choose(5, None), np.arange(5))
    np.testing.assert_array_equal(Subset(n_samples=7).choose(5, None), np.arange(5))
    drawn = Subset(n_samples=50, seed=1).choose(100, None)
    assert len(set(drawn.tolist())) == 50
    np.testing.assert_array_equal(drawn, Subset(n_samples=50, seed=1).choose(100, None))
    assert set(drawn) != set(Subset(n_samples=50, seed=2).choose(100, None))


def test_a_part_is_taken_from_the_split():
    np.testing.assert_array_equal(Subset(part="train").choose(5, lambda: SPLIT), [3, 1, 4])
    with pytest.raises(InputError, match="the test part of the run's split is empty"):
        Subset(part="test").choose(5, lambda: SPLIT)
    with pytest.raises(InputError, match="requires a model that belongs to a run"):
        Subset(part="train").choose(5, None)


@pytest.mark.usefixtures("unannotated")
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"n_samples": 0}, "n_samples must be at least 1"),
        ({"n_samples": True}, "n_samples must be an integer"),
        ({"n_samples": "5"}, "n_samples must be an integer"),
        ({"seed": -1}, "seed must not be negative"),
        ({"seed": 1.5}, "seed must be an integer"),
        ({"seed": float("nan")}, "seed must be an integer"),
        ({"part": "tests"}, "did you mean 'test'"),
        ({"step": "100"}, "step must be an integer"),
        ({"step": -1}, "step must not be negative"),
    ],
)
def test_values_that_mean_nothing_are_refused(options: dict[str, object], words: str):
    with pytest.raises(InputError, match=words):
        Observations(**options)
