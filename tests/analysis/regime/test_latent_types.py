"""The rule that names a latent active, mixed or passive."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polariscope.analysis.regime.diagnose import diagnose
from polariscope.analysis.regime.latent_types import TYPES, Moments, classify, is_fragile, types_of
from polariscope.analysis.regime.rule import TypeRule
from polariscope.analysis.representation import Representation
from polariscope.core.errors import InputError


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


@pytest.mark.parametrize(
    ("alpha_range", "fragile"),
    [
        ((0.0, 0.5), False),
        ((0.08, 0.5), False),  # α = 0.1 may fall by a fifth
        ((0.081, 0.5), True),
        ((0.0, 0.12), False),  # or rise by a fifth
        ((0.0, 0.119), True),
        ((0.09, 0.11), True),
    ],
)
def test_a_type_is_fragile_if_a_tolerance_a_fifth_larger_or_smaller_changes_it(alpha_range, fragile):
    assert is_fragile(alpha_range, 0.1) is fragile


@pytest.mark.parametrize(
    ("alpha_range", "fragile"),
    [
        ((0.2, 0.5), False),  # α = 1/4: four fifths and six fifths of it are exact
        ((math.nextafter(0.2, 1), 0.5), True),
        ((0.0, 0.3), False),
        ((0.0, math.nextafter(0.3, 0)), True),
    ],
)
def test_a_type_that_changes_just_a_fifth_away_is_not_fragile(alpha_range, fragile):
    assert is_fragile(alpha_range, 0.25) is fragile


@pytest.mark.parametrize("alpha", [-0.1, 0.0, 0.5, 0.6])
def test_a_tolerance_that_names_everything_mixed_or_twice_is_refused(alpha):
    with pytest.raises(InputError, match=r"alpha must lie between 0 and 0\.5"):
        TypeRule(alpha, 200)


@pytest.mark.parametrize("alpha", [1e-9, np.nextafter(0.5, 0)])
def test_every_other_tolerance_and_a_single_resample_are_accepted(alpha):
    TypeRule(alpha, 1)
    with pytest.raises(InputError, match="n_bootstrap must be at least 1, got 0"):
        TypeRule(alpha, 0)


def test_no_tolerance_beyond_one_half_is_asked_for():
    assert not is_fragile((0.0, 0.5), 0.45)


def test_under_a_conditional_prior_a_latent_on_the_bound_is_mixed():
    below = np.nextafter(0.1, 0)
    found = types_of(
        Moments(
            mean=np.array([1.0, 1.0, 0.0, 0.0]),
            variance=np.zeros(4),
            displacement=np.array([0.1, below, 5.0, 5.0]),
            noise=np.array([np.inf, np.inf, 0.1, below]),
        ),
        0.1,
    )
    assert found.tolist() == ["mixed", "passive", "mixed", "active"]


@pytest.mark.parametrize("alpha", [0.05, 0.1, 0.2])
@pytest.mark.parametrize("n_samples", [100, 1000, 4321])
def test_a_variance_that_equals_alpha_has_one_type_on_all_samples_and_in_resamples(
    alpha: float, n_samples: int
) -> None:
    """The rule is mean ≤ α. A plain sum of 1,000 times 0.1 exceeds 100, so rounding decided."""
    mean = np.random.default_rng(0).normal(size=(n_samples, 1))
    latent = diagnose(
        Representation(mean, np.full_like(mean, alpha), mean), alpha=alpha, n_bootstrap=20
    ).latents[0]
    assert latent.type == "active"
    assert latent.confidence == 1
