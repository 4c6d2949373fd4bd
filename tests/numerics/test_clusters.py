import numpy as np
import pytest

from polariscope.numerics.clusters import effective_number, intraclass_correlation


def clustered(n: int, members: int, rho: float, seed: int = 0) -> np.ndarray:
    """Return standard normal values (cluster, 1, member) with correlation ρ within a cluster."""
    rng = np.random.default_rng(seed)
    common, own = rng.normal(size=(n, 1, 1)), rng.normal(size=(n, 1, members))
    return np.sqrt(rho) * common + np.sqrt(1 - rho) * own


def test_equal_members_count_once_and_independent_members_count_each():
    rng = np.random.default_rng(0)
    equal = np.repeat(rng.normal(size=(50, 1, 1)), 9, axis=2)
    assert intraclass_correlation(equal) == pytest.approx(1, abs=1e-12)
    assert effective_number(50, 9, intraclass_correlation(equal)) == pytest.approx(50)
    # Fisher: Var ρ̂ ≈ 2 (1 − ρ)² (1 + (P − 1)ρ)² / (P (P − 1) N); 4 standard errors at ρ = 0.
    independent = clustered(4000, 16, 0.0)
    assert intraclass_correlation(independent)[0] < 4 * np.sqrt(2 / (16 * 15 * 4000))
    assert effective_number(4000, 16, np.zeros(1))[0] == 64_000


@pytest.mark.parametrize("rho", [0.1, 0.5, 0.9])
def test_the_anova_estimate_is_the_correlation_of_the_simulation(rho: float):
    n, members = 4000, 8
    error = np.sqrt(2 * (1 - rho) ** 2 * (1 + (members - 1) * rho) ** 2 / (members * (members - 1) * n))
    assert intraclass_correlation(clustered(n, members, rho))[0] == pytest.approx(rho, abs=4 * error)


def test_the_effective_number_is_that_of_the_variance_of_the_mean():
    rho, members, n = 0.3, 16, 50
    means = [clustered(n, members, rho, seed).mean() for seed in range(2000)]
    # The variance of 2000 means of variance v has the relative standard error √(2/2000).
    expected = effective_number(n, members, np.array([rho]))[0]
    assert 1 / np.var(means) == pytest.approx(expected, rel=4 * np.sqrt(2 / 2000))


def test_the_estimate_does_not_depend_on_the_order_of_members_and_clusters():
    values, rng = clustered(100, 6, 0.4), np.random.default_rng(1)
    shuffled = values[rng.permutation(100)][:, :, rng.permutation(6)]
    np.testing.assert_allclose(intraclass_correlation(shuffled), intraclass_correlation(values), rtol=1e-12)


def test_degenerate_columns_have_no_correlation():
    values = np.concatenate([np.full((20, 1, 4), 3.3), clustered(20, 4, 0.5)], axis=1)
    assert intraclass_correlation(values)[0] == 0
    assert intraclass_correlation(values[:, :, :1]).tolist() == [0, 0]
    # Members that balance within each cluster would have a negative correlation.
    balanced = np.tile([[1.0, -1.0]], (20, 1))[:, None] * np.arange(1, 21)[:, None, None]
    assert intraclass_correlation(balanced).tolist() == [0]
