"""Measures made of distances: shared neighbours and representational similarity analysis."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.spatial.distance import pdist
from scipy.stats import spearmanr
from sklearn.neighbors import NearestNeighbors

from oracles import STANDARD_ERRORS
from polariscope.errors import InputError
from polariscope.similarity.knn import knn
from polariscope.similarity.rsa import rsa


def overlap(x: np.ndarray, y: np.ndarray, k: int) -> float:
    """Neighbours by scikit-learn, sets by Python."""
    near = [NearestNeighbors(n_neighbors=k).fit(a).kneighbors(return_distance=False) for a in (x, y)]
    return float(np.mean([len({*a} & {*b}) / k for a, b in zip(*near, strict=True)]))


@pytest.mark.parametrize("k", [1, 5, 20])
def test_neighbours_are_those_of_an_independent_search(k: int) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(80, 3))
    y = np.hstack([x[:, :2], rng.normal(size=(80, 40))])
    assert knn(x, y, neighbours=k) == pytest.approx(overlap(x, y, k), abs=1e-12)


def test_independent_representations_share_neighbours_by_chance() -> None:
    rng = np.random.default_rng(0)
    n, k = 400, 20
    score = knn(rng.normal(size=(n, 8)), rng.normal(size=(n, 8)), neighbours=k)
    # Hypergeometric overlap of each sample, nearly independent between samples.
    p = k / (n - 1)
    error = math.sqrt(p * (1 - p) * (n - 1 - k) / (n - 2) / (k * n))
    assert abs(score - p) < STANDARD_ERRORS * error


@pytest.mark.parametrize("k", [0, 8, 9, 100])
def test_neighbours_must_leave_some_others(k: int) -> None:
    x = np.random.default_rng(0).normal(size=(9, 2))
    with pytest.raises(InputError, match="neighbours must lie between 1 and 7 for 9 samples"):
        knn(x, x, neighbours=k)


@pytest.mark.parametrize("decimals", [8, 0])
def test_rsa_is_spearmans_correlation_of_distances_with_and_without_ties(decimals: int) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(25, 3)).round(decimals) * 2
    y = (x[:, :2] + rng.normal(size=(25, 2))).round(decimals) * 2
    assert rsa(x, y) == pytest.approx(float(spearmanr(pdist(x), pdist(y)).statistic), abs=1e-12)


def test_rsa_sees_order_alone() -> None:
    x = np.sort(np.random.default_rng(0).exponential(size=(12, 1)), axis=0)
    folded = np.hstack([x, np.zeros_like(x)])
    assert rsa(x, folded) == pytest.approx(1, abs=1e-12)
    assert rsa(x, x**3) > 0.5


def test_rsa_refuses_samples_that_are_all_equally_far() -> None:
    with pytest.raises(InputError, match="equally far"):
        rsa(np.eye(4), np.eye(4))
