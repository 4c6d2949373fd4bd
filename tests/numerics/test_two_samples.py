import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import ks_2samp, kstest, norm

from polariscope.numerics.two_samples import (
    N_NEIGHBOURS,
    coverage,
    energy_distance,
    kolmogorov_distance,
    sliced_coverage,
)


def covered_share(std: float) -> float:
    """Return the limit of the coverage of N(0, 1) by N(0, std²): E_p[1 − (1 + q/p)^−k], by quadrature."""

    def share(z: float) -> float:
        return norm.pdf(z) * (1 - (1 + norm.pdf(z, scale=std) / norm.pdf(z)) ** -N_NEIGHBOURS)

    return 2 * quad(share, 0, 8)[0]


def test_the_energy_distance_of_two_points_is_twice_their_distance():
    distance = energy_distance(np.zeros((4, 2)), np.full((6, 2), 3.0), np.random.default_rng(0))
    assert distance.value == pytest.approx(2 * np.sqrt(18))
    # Only assignments that separate the samples, 1 in 210, are as extreme.
    assert distance.p_value < 0.05


def test_the_energy_distance_of_shifted_normals_has_its_closed_form():
    """In one dimension it is 2 ∫ (F − G)² for the two distribution functions."""
    rng, shift = np.random.default_rng(0), 1.0
    expected = 2 * quad(lambda z: (norm.cdf(z) - norm.cdf(z - shift)) ** 2, -10, 11)[0]
    values = [
        energy_distance(
            rng.normal(size=(500, 1)), shift + rng.normal(size=(500, 1)), rng, n_permutations=19
        ).value
        for _ in range(60)
    ]
    # A mean over all pairs includes pairs of a point with itself: the bias is E|X − X'| (1/n + 1/m).
    bias = 2 / np.sqrt(np.pi) * (2 / 500)
    assert np.mean(values) == pytest.approx(expected + bias, abs=4 * np.std(values) / np.sqrt(60))


def test_p_values_are_uniform_for_equal_distributions():
    rng, trials = np.random.default_rng(0), 300
    energy = [
        energy_distance(rng.normal(size=(60, 3)), rng.normal(size=(60, 3)), rng, n_permutations=99).p_value
        for _ in range(trials)
    ]
    kolmogorov = [kolmogorov_distance(rng.normal(size=80)).p_value for _ in range(trials)]
    # A share of 5 % of the trials, up to 4 standard errors.
    for p_values in (energy, kolmogorov):
        assert np.mean(np.array(p_values) <= 0.05) == pytest.approx(
            0.05, abs=4 * np.sqrt(0.05 * 0.95 / trials)
        )


def test_kolmogorov_distances_are_those_of_scipy():
    rng = np.random.default_rng(0)
    x, y = rng.normal(0.2, 1, size=150), rng.normal(size=90)
    assert kolmogorov_distance(x).value == pytest.approx(kstest(x, "norm").statistic, rel=1e-12)
    assert kolmogorov_distance(x, y).value == pytest.approx(ks_2samp(x, y).statistic, rel=1e-12)
    # Stephens' correction agrees with the exact distribution to about 1 %.
    assert kolmogorov_distance(x).p_value == pytest.approx(kstest(x, "norm").pvalue, rel=0.03)
    assert kolmogorov_distance(np.sort(x)[::-1]).null_high == kolmogorov_distance(x).null_high


@pytest.mark.parametrize("std", [1.0, 0.5, 0.1])
def test_the_coverage_of_a_normal_prior_has_its_closed_form(std: float):
    """For q = p it is 1 − 2⁻⁵. The interval covers the limit in at least 95 % of 100 trials, up to 4 errors."""
    rng, trials = np.random.default_rng(0), 100
    expected = covered_share(std)
    assert covered_share(1.0) == pytest.approx(1 - 2**-N_NEIGHBOURS)
    results = [coverage(std * rng.normal(size=1000), rng.normal(size=1000)) for _ in range(trials)]
    values = np.array([result.value for result in results])
    assert values.mean() == pytest.approx(expected, abs=4 * values.std() / np.sqrt(trials) + 0.002)
    inside = [result.interval[0] <= expected <= result.interval[1] for result in results]
    assert np.mean(inside) > 0.95 - 4 * np.sqrt(0.95 * 0.05 / trials)
    # The value for equal distributions does not depend on the distribution, only on the numbers.
    assert results[0].expected == pytest.approx(1 - 2**-N_NEIGHBOURS, abs=1e-3)


@pytest.mark.parametrize("dimension", [3, 30])
def test_the_sliced_coverage_does_not_depend_on_the_dimension(dimension: int):
    rng = np.random.default_rng(0)
    for std in (1.0, 0.3):
        results = [
            sliced_coverage(
                std * rng.normal(size=(500, dimension)), rng.normal(size=(500, dimension)), rng, 40
            )
            for _ in range(10)
        ]
        values = np.array([result.value for result in results])
        assert values.mean() == pytest.approx(covered_share(std), abs=4 * values.std() / np.sqrt(10) + 0.01)


def test_a_shift_or_scale_of_both_samples_changes_nothing_and_disjoint_samples_cover_nothing():
    rng = np.random.default_rng(0)
    points, reference = 0.4 * rng.normal(size=300), rng.normal(size=300)
    assert coverage(8 * points + 16, 8 * reference + 16).value == pytest.approx(
        coverage(points, reference).value
    )
    assert coverage(points + 100, reference).value == 0
    assert coverage(reference, reference).value == 1
