"""Procrustes similarity and canonical correlations against SciPy, SVDs and closed forms."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.linalg
import scipy.spatial

from oracles import random_rotation
from polariscope.analysis.layer_forms import BY_SVD, nuclear_norm
from polariscope.analysis.similarity.cka import cka
from polariscope.analysis.similarity.procrustes import compress, procrustes
from polariscope.analysis.similarity.svcca import svcca
from polariscope.core.errors import InputError


def normalised(x: np.ndarray) -> np.ndarray:
    x = x - x.mean(axis=0)
    return x / np.linalg.norm(x)


def by_definition(x: np.ndarray, y: np.ndarray) -> float:
    """Eq. 7.8: 1 − ½ ‖Ẋ − ẎQ‖² at the best rotation Q, found by SciPy."""
    width = max(x.shape[1], y.shape[1])
    x, y = (np.pad(normalised(a), ((0, 0), (0, width - a.shape[1]))) for a in (x, y))
    rotation, _ = scipy.linalg.orthogonal_procrustes(y, x)
    return 1 - 0.5 * np.linalg.norm(x - y @ rotation) ** 2


@pytest.mark.parametrize(("p", "q"), [(4, 4), (3, 6), (60, 5), (60, 90)])
def test_it_is_what_the_best_rotation_leaves(p: int, q: int) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(25, p)), rng.normal(size=(25, q)) + 3
    assert procrustes(x, y) == pytest.approx(by_definition(x, y), abs=1e-10)


def test_scipys_disparity_is_one_minus_its_square() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(25, 4))
    y = x @ rng.normal(size=(4, 4)) + 2
    disparity = scipy.spatial.procrustes(x, y)[2]
    assert disparity == pytest.approx(1 - procrustes(x, y) ** 2, abs=1e-12)


def test_of_single_features_it_is_the_absolute_correlation() -> None:
    x, y = np.random.default_rng(0).normal(size=(2, 30, 1))
    y = y - x
    assert procrustes(x, y) == pytest.approx(abs(np.corrcoef(x[:, 0], y[:, 0])[0, 1]), abs=1e-12)


@pytest.mark.parametrize(("n", "p"), [(30, 100), (30, 40)])
def test_the_factor_of_a_wide_layer_has_its_gram_matrix_and_no_more_columns_than_rank(n: int, p: int) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, 7)) @ rng.normal(size=(7, p))
    factor = compress(x)
    assert factor.shape == (n, 7)
    np.testing.assert_allclose(factor @ factor.T, normalised(x) @ normalised(x).T, atol=1e-14)


def test_what_the_factor_drops_costs_less_than_a_millionth() -> None:
    """A spectrum that falls over 24 decades of variance: all of it counts, and 1e-14 of it may be dropped."""
    rng = np.random.default_rng(0)
    n, p = 60, 200
    spectrum = np.geomspace(1, 1e-12, n)
    x, y = (
        (random_rotation(n, seed) * spectrum) @ np.linalg.qr(rng.normal(size=(p, n)))[0].T for seed in (1, 2)
    )
    assert compress(x).shape[1] < n - 1
    exact = np.linalg.svd(normalised(x).T @ normalised(y), compute_uv=False).sum()
    assert procrustes(x, y) == pytest.approx(exact, abs=1e-6)


def test_large_nuclear_norms_come_from_eigenvalues_and_stay_exact() -> None:
    rng = np.random.default_rng(0)
    size = 2 * BY_SVD
    for shape, rank in (((size, size + 40), size), ((size + 9, size), size // 4)):
        matrix = rng.normal(size=(shape[0], rank)) @ rng.normal(size=(rank, shape[1]))
        matrix /= np.linalg.norm(matrix)
        expected = np.linalg.svd(matrix, compute_uv=False).sum()
        # Each singular value that should be 0 may come out as 1e-8 σ_max.
        assert nuclear_norm(matrix) == pytest.approx(expected, abs=size * 1e-8)


@pytest.mark.parametrize("shared", [0.8, 0.5])
def test_figure_7_1_shared_features_are_the_score(shared: float) -> None:
    """Features are standard normal; r of 50 in common. CKA tends to r/50 + bias, both within 0.05 of it at n = 5 000.

    Not shared: CKA adds p/(n + p) = 0.01 at most, Procrustes the nuclear norm of (50 − r)² correlations of size
    1/√n, about 0.85 (50 − r)^1.5 / (50 √n): 0.03 for half.
    """
    scores = {n: toy_scores(shared, n) for n in (500, 5000)}
    assert scores[5000] == pytest.approx((shared, shared), abs=0.05)
    assert abs(scores[5000][1] - shared) < abs(scores[500][1] - shared) + 0.01


def test_figure_7_1_procrustes_overestimates_where_nothing_is_shared() -> None:
    """For independent noise CKA is p/(n + p), Procrustes about 0.85 √(p/n): at n = 500, 0.09 against 0.27."""
    falling = [toy_scores(0.0, n) for n in (100, 500, 2000)]
    for n, (alignment, rotation) in zip((100, 500, 2000), falling, strict=True):
        assert alignment == pytest.approx(50 / (n + 50), rel=0.1)
        assert rotation > 2 * alignment or n == 100
        assert rotation > alignment
    assert falling[1][1] == pytest.approx(0.85 * math.sqrt(50 / 500), rel=0.1)


def toy_scores(shared: float, n: int) -> tuple[float, float]:
    """CKA and Procrustes of two matrices of 50 features of which a share is the same."""
    rng = np.random.default_rng(int(100 * shared))
    a, b = rng.normal(size=(n, 50)), rng.normal(size=(n, 50))
    b[:, : round(50 * shared)] = a[:, : round(50 * shared)]
    return cka(a, b), procrustes(a, b)


def canonical_correlations(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """From the covariance matrices: roots of the eigenvalues of Σxx⁻¹ Σxy Σyy⁻¹ Σyx."""
    x, y = x - x.mean(axis=0), y - y.mean(axis=0)
    product = np.linalg.solve(x.T @ x, x.T @ y) @ np.linalg.solve(y.T @ y, y.T @ x)
    values = np.sort(np.linalg.eigvals(product).real)[::-1]
    return np.sqrt(np.maximum(values[: min(x.shape[1], y.shape[1])], 0))


def test_with_all_variance_svcca_is_the_mean_canonical_correlation() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(50, 4)) * [100, 10, 1, 0.1]
    y = x[:, :3] @ rng.normal(size=(3, 3)) + 0.5 * rng.normal(size=(50, 3))
    expected = canonical_correlations(x, y).mean()
    assert svcca(x, y, variance=1.0) == pytest.approx(expected, abs=1e-9)
    mixed = x @ (random_rotation(4, 1) * [1.0, 5.0, 2.0, 9.0])
    assert svcca(mixed, y, variance=1.0) == pytest.approx(expected, abs=1e-9)


def test_svcca_keeps_as_few_components_as_hold_the_variance() -> None:
    basis = np.linalg.qr(np.random.default_rng(0).normal(size=(40, 4)))[0]
    basis = np.linalg.qr(basis - basis.mean(axis=0))[0]
    x = basis * np.sqrt([0.6, 0.3, 0.09, 0.01])
    # 0.9 of the variance is in the first two, of which y has the second alone.
    y = np.column_stack([basis[:, 1], basis[:, 3]])
    assert svcca(x, y, variance=0.9) == pytest.approx(0.5, abs=1e-9)
    assert svcca(x, y, variance=0.901) == pytest.approx(0.5, abs=1e-9)
    assert svcca(x, y, variance=1.0) == pytest.approx(1.0, abs=1e-9)


def test_svcca_of_a_wide_layer_is_that_of_its_rotation() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(30, 5)), rng.normal(size=(30, 4))
    wide = x @ np.linalg.qr(rng.normal(size=(80, 5)))[0].T
    assert svcca(wide, y) == pytest.approx(svcca(x, y), abs=1e-9)


@pytest.mark.parametrize("variance", [0.0, 1.5, math.nan])
def test_a_share_of_variance_lies_between_0_and_1(variance: float) -> None:
    x = np.random.default_rng(0).normal(size=(9, 2))
    with pytest.raises(InputError, match="variance must be a share"):
        svcca(x, x, variance=variance)
