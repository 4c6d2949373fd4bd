"""Trends of curves, and the gain from another doubling of the steps."""

from __future__ import annotations

import math

import numpy as np
import pytest

from polariscope.numerics.trends import Gain, doubling_gain, trend

STEPS = list(range(50, 4001, 50))


def test_a_curve_that_is_straight_in_the_logarithm_gains_its_slope() -> None:
    gain = doubling_gain(STEPS, [10 - 0.7 * math.log2(step) for step in STEPS])
    assert gain.value == pytest.approx(0.7)
    assert gain.limit == pytest.approx(0.7)


@pytest.mark.parametrize("power", [0.5, 1.0, 2.0])
def test_the_gain_of_a_power_law_is_extrapolated_by_its_constant_ratio(power: float) -> None:
    """The falls over half-octaves of t^-p have the ratio 2^(-p/2), so two more of them add up to the true gain.

    Lines are fitted to curved falls, and the limits allow for that: 10 % cover both.
    """
    curve = [1000 * step**-power for step in STEPS]
    true = curve[-1] * (1 - 2**-power)
    gain = doubling_gain(STEPS, curve)
    assert gain.value == pytest.approx(true, rel=0.1)
    assert true < gain.limit < -trend(STEPS, curve).limits()[0]


def test_the_gain_of_an_exponential_lies_between_the_truth_and_the_slope() -> None:
    curve = [50 * math.exp(-step / 800) for step in STEPS]
    true = curve[-1] * (1 - math.exp(-5))
    gain = doubling_gain(STEPS, curve)
    assert true < gain.value < gain.limit < -0.7 * trend(STEPS, curve).slope


def test_noise_alone_is_no_evidence_of_slowing_down() -> None:
    rng = np.random.default_rng(0)
    plain = 0
    for _ in range(200):
        curve = rng.normal(size=len(STEPS)).tolist()
        line = trend(STEPS, curve)
        plain += doubling_gain(STEPS, curve) == Gain(-line.slope, -line.limits()[0])
    assert plain > 180  # two one-sided 95 % limits seldom miss each other


def test_few_values_have_the_gain_of_their_slope() -> None:
    curve = [5.0, 3.0, 2.5, 2.0, 1.6, 1.4, 1.3, 1.25]
    steps = list(range(100, 900, 100))
    line = trend(steps, curve)
    assert doubling_gain(steps, curve) == Gain(-line.slope, -line.limits()[0])
