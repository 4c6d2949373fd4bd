import numpy as np
import pytest

from polariscope.analysis.regime.regime import Partner
from polariscope.analysis.regime.structure import partners, redundancy


def test_the_strongest_partner_keeps_the_sign_and_others_are_counted_above_a_fifth():
    correlation = np.array(
        [[1.0, 0.3, -0.6, 0.2], [0.3, 1.0, 0.1, 0.0], [-0.6, 0.1, 1.0, 0.0], [0.2, 0.0, 0.0, 1.0]]
    )
    assert partners(correlation) == (
        Partner(0, 2, -0.6, 2),
        Partner(1, 0, 0.3, 1),
        Partner(2, 0, -0.6, 1),
        Partner(3, 0, 0.2, 0),  # exactly 0.2 does not count
    )


def test_a_single_latent_has_no_partner():
    assert partners(np.ones((1, 1))) == (Partner(0, None, 0.0, 0),)


def test_a_latent_uncorrelated_with_all_others_still_names_another():
    assert partners(np.eye(3))[0] == Partner(0, 1, 0.0, 0)


def test_redundancy_is_the_adjusted_r_squared_of_a_linear_regression():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 4)) @ rng.normal(size=(4, 4))
    in_use = np.array([True, True, False, False])
    found = redundancy(np.cov(x.T), in_use, len(x))
    for j, others in ((0, [1]), (1, [0]), (2, [0, 1]), (3, [0, 1])):
        design = np.column_stack([np.ones(200), x[:, others]])
        rest = x[:, j] - design @ np.linalg.lstsq(design, x[:, j], rcond=None)[0]
        free = 200 - design.shape[1]
        assert found[j] == pytest.approx(max(0.0, 1 - (rest @ rest / free) / x[:, j].var(ddof=1)), abs=1e-12)


def test_a_function_of_the_others_is_redundant_whatever_its_scale_and_noise_is_not():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(1000, 4))
    x[:, 2] = 1e-6 * (x[:, 0] - 2 * x[:, 1])
    found = redundancy(np.cov(x.T), np.array([True, True, False, False]), 1000)
    assert found[2] == pytest.approx(1, abs=1e-9)
    assert found[3] < 0.01  # expected 0; its standard deviation is about 2/1000


def test_redundancy_is_not_defined_for_a_constant_or_too_few_samples():
    x = np.random.default_rng(0).normal(size=(50, 3))
    x[:, 2] = 1.0
    in_use = np.array([True, True, False])
    assert redundancy(np.cov(x.T), in_use, 50)[2] is None
    assert redundancy(np.cov(x[:2].T), in_use, 2)[0] is None


def test_redundancy_needs_as_many_samples_as_its_equation_divides_by():
    """n − k − 1 ≥ 1: with k = 2 predictors 4 samples suffice and 3 do not; a constant is no predictor."""
    x = np.random.default_rng(0).normal(size=(4, 4)) * [1, 1, 1, 0]
    in_use = np.array([True, True, False, True])
    four, three = (redundancy(np.cov(x.T), in_use, n) for n in (4, 3))
    design = np.column_stack([np.ones(4), x[:, :2]])
    rest = x[:, 2] - design @ np.linalg.lstsq(design, x[:, 2], rcond=None)[0]
    assert four[2] == pytest.approx(max(0.0, 1 - rest @ rest / x[:, 2].var(ddof=1)), abs=1e-9)
    assert four[:2] != [None, None]
    assert three[2] is None
    assert three[0] is not None  # predicted by one other only


def test_redundancy_is_a_share_whatever_rounding_and_the_adjustment_leave():
    exact = redundancy(np.array([[1.0, 1.0], [1.0, 1.0]]), np.array([True, True]), 10)
    assert exact == [1.0, 1.0]
    # R² = 0.01 of 5 samples: 1 − 0.99 · 4/3 is below 0.
    assert redundancy(np.array([[1.0, 0.1], [0.1, 1.0]]), np.array([True, True]), 5) == [0.0, 0.0]


def test_the_diagonal_of_a_correlation_is_nobodys_partner():
    found = partners(np.array([[1.0, 0.0, -0.9], [0.0, 1.0, 0.1], [-0.9, 0.1, 1.0]]))
    assert [(one.partner, one.n_correlated) for one in found] == [(2, 1), (2, 0), (0, 1)]
