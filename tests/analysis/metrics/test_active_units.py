"""Latents in use: counts, rules, and what each rule needs."""

from __future__ import annotations

from typing import get_args, get_type_hints

import numpy as np
import pytest

from analysis.metrics.known import noise
from polariscope.analysis.metrics.active_units import active_units
from polariscope.analysis.regime.criteria import CRITERIA
from polariscope.core.errors import InputError


def polarised(n: int = 2000) -> tuple[np.ndarray, np.ndarray]:
    """Three latents in use, two passive."""
    variance = np.tile([0.05, 0.05, 0.05, 1.0, 1.0], (n, 1))
    return noise(n, 5) * np.array([1.0, 1.0, 1.0, 0.01, 0.01]), variance


@pytest.mark.parametrize("rule", CRITERIA)
def test_every_rule_finds_the_latents_in_use(rule: str) -> None:
    codes, variance = polarised()
    score = active_units(codes, variant=rule, variance=variance)
    assert score.value == 3
    assert score.per_latent.tolist() == [1, 1, 1, 0, 0]  # type: ignore[union-attr]
    assert score.interval == (3, 3)
    assert score.bounds == (0, 5)
    np.testing.assert_allclose(score.details["variance_of_mean"], codes.var(axis=0))


def test_the_variants_are_the_rules_of_the_regime() -> None:
    assert set(get_args(get_type_hints(active_units)["variant"])) == set(CRITERIA)


def test_a_latent_at_the_threshold_is_counted_in_some_resamples_only() -> None:
    codes = noise(200, 1) * np.sqrt(0.01)
    codes *= np.sqrt(0.01) * 1.001 / codes.std()
    score = active_units(codes)
    assert score.value == 1
    assert score.interval == (0, 1)
    assert active_units(codes, threshold=0.02).value == 0


def test_constants_are_not_in_use() -> None:
    assert active_units(np.full((10, 3), 7.0)).value == 0


@pytest.mark.parametrize("rule", ["kl-udr", "mean-variance", "mixture"])
def test_rules_about_the_variance_need_it(rule: str) -> None:
    with pytest.raises(InputError, match="this variant requires posterior variances"):
        active_units(noise(10, 2), variant=rule)


def test_a_negative_threshold_is_refused() -> None:
    with pytest.raises(InputError, match="threshold must not be negative, got -"):
        active_units(noise(10, 2), threshold=-1.0)
