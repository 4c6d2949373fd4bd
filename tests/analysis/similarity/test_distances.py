"""Measures made of distances: shared neighbours and representational similarity analysis."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.spatial.distance import pdist
from scipy.stats import rankdata, spearmanr
from sklearn.neighbors import NearestNeighbors

from oracles import STANDARD_ERRORS
from polariscope.analysis.similarity.knn import knn
from polariscope.analysis.similarity.rsa import rsa
from polariscope.core.errors import InputError


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


def far_out(n: int, factor: float, *, levels: float = 0) -> tuple[np.ndarray, np.ndarray]:
    """Two noisy copies of samples of which the first ``n`` lie ``factor`` times as far out."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(60, 4))
    y = x + 0.3 * rng.normal(size=(60, 4))
    if levels:
        x, y = (levels * np.round(part / levels) for part in (x, y))
    x[:n] *= factor
    y[:n] *= factor
    return x, y


@pytest.mark.parametrize("factor", [1e2, 1e4, 1e6, 1e7, 1e9, 1e15])
@pytest.mark.parametrize("n", [1, 3])
def test_samples_that_lie_far_out_do_not_blur_the_others(n: int, factor: float) -> None:
    x, y = far_out(n, factor)
    assert knn(x, y) == pytest.approx(overlap(x, y, 10), abs=1e-12)
    # Distances from far out are alike to 1 / factor, and tie below 1e-9: 57 to 177 of the 1770 pairs, which keep their
    # place beyond all others and lose at most the order among themselves, (177 / 1770)³ of the variance of ranks.
    abs_tol = 1e-12 if factor < 1e5 else 1e-7 if factor < 1e9 else (59 * n / 1770) ** 3
    assert rsa(x, y) == pytest.approx(float(spearmanr(pdist(x), pdist(y)).statistic), abs=abs_tol)


@pytest.mark.parametrize("factor", [1.0, 1e2, 1e3, 1e5, 1e8])
def test_equal_distances_tie_beside_a_sample_that_lies_far_out(factor: float) -> None:
    x, y = far_out(0, 1.0, levels=0.7)
    x[0] = factor * np.array([1.0, 2.0, 3.0, 5.0])
    exact = [rankdata(np.round(pdist(part) ** 2 / 0.49, 4)) for part in (x, y)]
    # With 1e8 the 59 distances from it may tie, (59 / 1770)³ of the variance of ranks.
    abs_tol = 1e-12 if factor < 1e5 else 4e-5
    assert rsa(x, y) == pytest.approx(float(np.corrcoef(*exact)[0, 1]), abs=abs_tol)


def test_rsa_sees_order_alone() -> None:
    x = np.sort(np.random.default_rng(0).exponential(size=(12, 1)), axis=0)
    folded = np.hstack([x, np.zeros_like(x)])
    assert rsa(x, folded) == pytest.approx(1, abs=1e-12)
    assert rsa(x, x**3) > 0.5


def test_rsa_refuses_samples_that_are_all_equally_far() -> None:
    with pytest.raises(InputError, match="the same distance"):
        rsa(np.eye(4), np.eye(4))
