"""Squared distances and products of all pairs, against differences and where products cancel."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import pdist, squareform

from polariscope.numerics import distances
from polariscope.numerics.distances import FEATURES_AT_ONCE, centred, gram, gram_product, squared_distances


@pytest.mark.parametrize("p", [3, 5000])
@pytest.mark.parametrize("apart", [0.0, 1e3, 1e6, 1e9, 1e12])
def test_distances_are_those_of_differences_in_clusters_within_clusters(apart: float, p: int) -> None:
    rng = np.random.default_rng(0)
    clusters = np.repeat(rng.normal(size=(4, p)) * apart, 10, axis=0)
    clusters[20:] += rng.normal(size=p) * apart**2
    x = clusters + rng.normal(size=(40, p))
    x[7] = x[3]  # a duplicate is at 0 exactly
    found, expected = squared_distances(x), squareform(pdist(x)) ** 2
    np.testing.assert_allclose(found / found.max(), expected / expected.max(), rtol=1e-9)


def test_a_given_unit_scales_the_values_and_the_default_is_a_power_of_two() -> None:
    x = np.random.default_rng(0).normal(size=(20, 4)) + 1e4
    exact = squareform(pdist(x)) ** 2
    np.testing.assert_allclose(squared_distances(x, unit=1.0), exact, rtol=1e-9)
    np.testing.assert_allclose(squared_distances(x, unit=0.3), 0.09 * exact, rtol=1e-9)
    np.testing.assert_array_equal(squared_distances(x), 2.0**-28 * squared_distances(x, unit=1.0))


@pytest.mark.parametrize("scale", [1e-300, 1e300])
def test_squares_of_huge_and_tiny_values_neither_overflow_nor_vanish(scale: float) -> None:
    x = scale * np.array([[0.0], [3.0], [4.0]])
    found = squared_distances(x)
    np.testing.assert_allclose(found / found[1, 2], [[0, 9, 16], [9, 0, 1], [16, 1, 0]], rtol=1e-12)


@pytest.mark.parametrize("p", [2, FEATURES_AT_ONCE + 1])
@pytest.mark.parametrize("largest", [0, -1])
def test_the_largest_feature_decides_the_unit_wherever_it_is(p: int, largest: int) -> None:
    x = np.random.default_rng(0).normal(size=(6, p))
    x[:, largest] = 1e200 * np.arange(6)
    found = squared_distances(x)
    expected = np.subtract.outer(np.arange(6), np.arange(6)) ** 2.0
    np.testing.assert_allclose(found / found[0, 1], expected, rtol=1e-12)


def test_samples_that_are_all_the_same_have_no_distance() -> None:
    assert not squared_distances(np.full((5, 3), 0.1)).any()


@pytest.mark.parametrize("at_once", [3, FEATURES_AT_ONCE])
def test_centred_features_are_the_deviations_of_those_that_vary(
    at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(distances, "FEATURES_AT_ONCE", at_once)
    x = np.random.default_rng(0).normal(size=(30, 8)) + np.arange(8)
    x[:, [1, 3, 4, 5]] = 7.0  # never vary; three of them are a whole part
    unit = 2.0 ** -np.ceil(np.log2(np.abs(x[:, [0, 2, 6, 7]]).max()))
    expected = unit * (x - x.mean(axis=0))[:, [0, 2, 6, 7]]
    np.testing.assert_allclose(centred(x), expected, atol=1e-15)
    np.testing.assert_allclose(gram(x), expected @ expected.T, atol=1e-14)


def test_the_gram_matrix_is_that_of_the_centred_features_and_its_product_takes_the_smaller_way() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(30, 4)) + 5, rng.normal(size=(30, 90))
    x[:, 2] = 7.0  # never varies
    a, b = centred(x), centred(y)
    assert a.shape == (30, 3)
    np.testing.assert_allclose(gram(x), a @ a.T, atol=1e-14)
    expected = np.sum((a @ a.T) * (b @ b.T))
    for u, v in ((a, b), (b, a)):
        assert gram_product(u, v) == pytest.approx(expected, rel=1e-12)
    assert gram_product(b, b) == pytest.approx(np.linalg.norm(b.T @ b) ** 2, rel=1e-12)
