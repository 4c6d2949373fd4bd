"""The rule that names a latent active, mixed or passive."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polariscope.analysis.regime.types import TYPES, classify


@pytest.mark.parametrize(
    ("mean", "variance", "expected"),
    [
        (0.0, 0.0, "active"),
        (0.1, 0.0, "active"),  # ≤ α
        (np.nextafter(0.1, 1), 0.0, "mixed"),
        (0.05, 0.1, "mixed"),  # the variance must be < α
        (0.05, np.nextafter(0.1, 0), "active"),
        (0.5, 0.0, "mixed"),
        (0.9, 0.0, "passive"),  # both ends of [1 − α, 1 + α] count
        (1.1, 0.0, "passive"),
        (np.nextafter(0.9, 0), 0.0, "mixed"),
        (np.nextafter(1.1, 2), 0.0, "mixed"),
        (1.0, 0.1, "mixed"),
        (1.0, np.nextafter(0.1, 0), "passive"),
        (3.0, 0.0, "mixed"),
    ],
)
def test_the_rule_at_its_edges(mean: float, variance: float, expected: str) -> None:
    assert classify(np.array([mean]), np.array([variance])) == [expected]


def test_alpha_moves_the_edges() -> None:
    mean, variance = np.array([0.2, 0.8, 0.5]), np.full(3, 0.15)
    assert classify(mean, variance, alpha=0.1) == ["mixed", "mixed", "mixed"]
    assert classify(mean, variance, alpha=0.2) == ["active", "passive", "mixed"]


@settings(deadline=None, derandomize=True)
@given(st.lists(st.tuples(st.floats(0, 2), st.floats(0, 1)), min_size=1, max_size=8), st.randoms())
def test_types_follow_their_latents_when_these_are_permuted(moments: list, random: object) -> None:
    mean, variance = np.array(moments).T
    order = list(range(len(mean)))
    random.shuffle(order)  # type: ignore[attr-defined]
    types = classify(mean, variance)
    assert set(types) <= set(TYPES)
    assert classify(mean[order], variance[order]) == [types[i] for i in order]
