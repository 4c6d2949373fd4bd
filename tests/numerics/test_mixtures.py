"""Mixtures at the draws of their components, against SciPy and where exponents are extreme."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import norm

from polariscope.numerics import mixtures
from polariscope.numerics.mixtures import log_mixture, log_normal_mixture, log_sums


def test_sums_of_exponentials_neither_overflow_nor_vanish() -> None:
    x = np.random.default_rng(0).normal(size=(6, 9)) * np.array([[1e-3], [1], [1e2], [1e3], [1], [1]])
    x[4] += 1e5
    x[5] -= 1e5
    np.testing.assert_allclose(log_sums(x.copy()), logsumexp(x, axis=1), rtol=1e-14)


@pytest.mark.parametrize("block", [1, 40, 2**18])
def test_a_mixture_is_the_mean_density_however_many_rows_are_held(
    block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mixtures, "BLOCK", block)
    rng = np.random.default_rng(0)
    mean, deviation, noise = rng.normal(size=17), rng.uniform(0.1, 2, size=17), rng.normal(size=17)
    z = mean + deviation * noise
    pairs = norm.logpdf(z[:, None], mean, deviation)
    expected = logsumexp(pairs, axis=1) - math.log(17)
    asked = []

    def log_densities(rows: slice) -> np.ndarray:
        asked.extend(range(rows.start, rows.stop))
        return pairs[rows].copy()

    np.testing.assert_allclose(log_mixture(17, log_densities), expected, rtol=1e-13)
    assert asked == list(range(17))  # each row once, and none beyond
    np.testing.assert_allclose(log_normal_mixture(mean, deviation, noise), expected, rtol=1e-12)


def test_components_narrower_than_the_rounding_of_their_means_still_overlap() -> None:
    noise = np.array([0.3, -1.2, 0.5, 2.0])
    mean = np.array([1.0, 1.0, 7.0, 7.0])
    found = log_normal_mixture(mean, np.full(4, 1e-40), noise)
    # Two of four components have the same mean and deviation.
    np.testing.assert_allclose(found, math.log(2 / 4) + norm.logpdf(noise) + 40 * math.log(10), rtol=1e-13)
