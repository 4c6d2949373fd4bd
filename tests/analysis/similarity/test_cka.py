"""Centred kernel alignment against closed forms, limits and enumerations."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from oracles import STANDARD_ERRORS
from polariscope.analysis.layer_forms import VectorForm
from polariscope.analysis.similarity.cka import cka, compress
from polariscope.analysis.similarity.cka_debiased import cka_debiased
from polariscope.analysis.similarity.cka_rbf import cka_rbf
from polariscope.core.errors import InputError


def centred_basis(n: int, r: int, seed: int = 0) -> np.ndarray:
    """r orthonormal columns with mean 0."""
    x = np.random.default_rng(seed).normal(size=(n, r))
    return np.linalg.qr(x - x.mean(axis=0))[0]


def by_definition(x: np.ndarray, y: np.ndarray) -> float:
    """tr(KHLH) / √(tr(KHKH) tr(LHLH)), with n × n matrices."""
    H = np.eye(len(x)) - 1 / len(x)
    K, L = x @ x.T, y @ y.T
    return np.trace(K @ H @ L @ H) / math.sqrt(np.trace(K @ H @ K @ H) * np.trace(L @ H @ L @ H))


@pytest.mark.parametrize(("p", "q", "r"), [(3, 3, 3), (4, 7, 2), (5, 5, 0), (1, 8, 1)])
def test_bases_that_share_r_directions_score_r_over_root_pq(p: int, q: int, r: int) -> None:
    basis = centred_basis(40, p + q - r)
    assert cka(basis[:, :p], basis[:, p - r :]) == pytest.approx(r / math.sqrt(p * q), abs=1e-12)


def test_of_single_features_it_is_the_squared_correlation() -> None:
    x, y = np.random.default_rng(0).normal(size=(2, 30, 1))
    y = y + x
    assert cka(x, y) == pytest.approx(np.corrcoef(x[:, 0], y[:, 0])[0, 1] ** 2, abs=1e-12)


@pytest.mark.parametrize(("p", "q"), [(3, 5), (50, 5), (50, 70)])
def test_it_is_the_ratio_of_traces_whichever_side_is_smaller(p: int, q: int) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(20, p)), rng.normal(size=(20, q))
    assert cka(x, y) == pytest.approx(by_definition(x, y), abs=1e-12)


def test_more_features_than_are_read_at_once_make_no_difference() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(12, 5000)), rng.normal(size=(12, 4))
    assert cka(x, y) == pytest.approx(by_definition(x, y), abs=1e-12)


def test_noise_scores_p_over_n_plus_p() -> None:
    """E‖XᵀY‖² = npq and E‖XᵀX‖² ≈ np(n + p): the bias that the debiased form takes away."""
    rng = np.random.default_rng(0)
    n, p = 200, 100
    scores = [cka(rng.normal(size=(n, p)), rng.normal(size=(n, p))) for _ in range(20)]
    assert np.mean(scores) == pytest.approx(p / (n + p), rel=0.02)


@pytest.mark.parametrize("offset", [0.0, 1000.0])
def test_layers_in_float32_are_compressed_without_loss(offset: float) -> None:
    """Means are taken off in float64: a large one must not drown the products. The targets ask for 1e-6."""
    rng = np.random.default_rng(0)
    shared = rng.normal(size=(300, 20))
    x, y = (
        (shared @ rng.normal(size=(20, p)) + rng.normal(size=(300, p)) + offset).astype(np.float32)
        for p in (6000, 3000)
    )
    one, other = (compress(layer).astype(np.float32) for layer in (x, y))
    assert VectorForm(compress).score(one, other) == pytest.approx(
        by_definition(x.astype(np.float64) - offset, y.astype(np.float64) - offset), abs=1e-7
    )


def unbiased_hsic_by_enumeration(K: np.ndarray, L: np.ndarray) -> float:
    """Mean over ordered quadruples of different samples of K_ij (L_ij + L_kl − 2 L_ik): the U-statistic."""
    terms = [
        K[i, j] * (L[i, j] + L[k, m] - 2 * L[i, k]) for i, j, k, m in itertools.permutations(range(len(K)), 4)
    ]
    return float(np.mean(terms))


def test_debiased_is_the_ratio_of_u_statistics() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(8, 3))
    y = np.hstack([x[:, :1], rng.normal(size=(8, 2))]) + 4
    K, L = x @ x.T, y @ y.T
    h = unbiased_hsic_by_enumeration
    assert cka_debiased(x, y) == pytest.approx(h(K, L) / math.sqrt(h(K, K) * h(L, L)), abs=1e-12)


def test_debiased_of_noise_is_zero_on_average_and_sometimes_negative() -> None:
    rng = np.random.default_rng(0)
    scores = np.array(
        [cka_debiased(rng.normal(size=(30, 60)), rng.normal(size=(30, 60))) for _ in range(300)]
    )
    # The numerator is unbiased and, for independent X and Y, independent of the sign of the rest.
    assert abs(scores.mean()) < STANDARD_ERRORS * scores.std() / math.sqrt(len(scores))
    # A pair (i, j) of rows contributes K_ij L_ij with variance pq; ‖K̃‖² ≈ n(n − 1)p: the spread is 1/√(n(n − 1)/2).
    assert scores.std() == pytest.approx(1 / math.sqrt(30 * 29 / 2), rel=0.2)
    assert (scores < 0).any()
    assert cka(rng.normal(size=(30, 60)), rng.normal(size=(30, 60))) > 0.5


def test_debiased_approaches_plain_with_many_samples() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(4000, 3))
    y = x @ rng.normal(size=(3, 3))
    assert cka_debiased(x, y) == pytest.approx(cka(x, y), abs=5 / 4000)


def test_debiased_refuses_samples_that_are_all_equally_far() -> None:
    x = np.random.default_rng(0).normal(size=(6, 2))
    for pair in ((np.eye(6), x), (x, np.eye(6))):
        with pytest.raises(InputError, match="the same distance from each other"):
            cka_debiased(*pair)


def test_a_wide_gaussian_kernel_is_the_linear_one() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(50, 3))
    y = x @ rng.normal(size=(3, 4)) + rng.normal(size=(50, 4))
    linear = cka(x, y)
    gaps = [abs(cka_rbf(x, y, bandwidth=width) - linear) for width in (1.0, 10.0, 100.0, 1e4)]
    # exp(−d²/2b²) = 1 − d²/2b² + O(b⁻⁴): the gap falls as b⁻².
    assert gaps[1] < gaps[0] / 10
    assert gaps[2] == pytest.approx(gaps[1] / 100, rel=0.2)
    assert gaps[3] < 1e-7


@pytest.mark.parametrize("n", [15, 5])  # 105 pairs, and 10: the median of an even number is a mean of two
def test_a_gaussian_kernel_is_as_defined(n: int) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(n, 3)), rng.normal(size=(n, 2))
    kernels = []
    for array in (x, y):
        d = np.linalg.norm(array[:, None] - array[None], axis=2)
        kernels.append(np.exp(-(d**2) / (2 * (0.5 * np.median(d[np.triu_indices(n, 1)])) ** 2)))
    H = np.eye(n) - 1 / n
    K, L = (H @ kernel @ H for kernel in kernels)
    expected = np.sum(K * L) / (np.linalg.norm(K) * np.linalg.norm(L))
    assert cka_rbf(x, y, bandwidth=0.5) == pytest.approx(expected, abs=1e-12)


def test_with_a_narrow_kernel_any_two_are_alike() -> None:
    rng = np.random.default_rng(0)
    assert cka_rbf(rng.normal(size=(20, 9)), rng.normal(size=(20, 9)), bandwidth=0.05) > 0.999


@pytest.mark.parametrize("bandwidth", [0.0, -1.0, math.inf, math.nan])
def test_a_bandwidth_must_be_positive(bandwidth: float) -> None:
    x = np.random.default_rng(0).normal(size=(9, 2))
    with pytest.raises(InputError, match="bandwidth must be positive"):
        cka_rbf(x, x, bandwidth=bandwidth)


def test_duplicates_leave_no_bandwidth() -> None:
    x = np.zeros((10, 1))
    x[0] = 1
    with pytest.raises(InputError, match="more than half of the pairs"):
        cka_rbf(x, x)


def test_cka_cannot_see_how_many_variables_are_passive() -> None:
    """Against Theorem 7.4.1 of bonheme2023: a passive variance, constant at 1, leaves CKA at 1."""
    active = np.random.default_rng(0).uniform(0.01, 0.05, size=(50, 2))
    one_passive = np.column_stack([active, np.ones(50)])
    none_passive = np.column_stack([active, np.full(50, 0.01)])
    assert cka(one_passive, none_passive) == pytest.approx(1, abs=1e-12)
