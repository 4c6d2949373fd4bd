import math

import numpy as np
import pytest

from polariscope.numerics.dependence import effective_rank


def rotation(n, seed=0):
    return np.linalg.qr(np.random.default_rng(seed).normal(size=(n, n)))[0]


@pytest.mark.parametrize("n", [1, 2, 7])
def test_an_isotropic_covariance_has_full_rank_and_a_single_direction_rank_one(n):
    assert effective_rank(3 * np.eye(n)) == pytest.approx(n, abs=1e-12)
    direction = np.arange(1.0, n + 1)
    assert effective_rank(np.outer(direction, direction)) == pytest.approx(1, abs=1e-12)


def test_it_is_the_exponential_of_the_entropy_of_the_normalised_eigenvalues():
    # p = (1/2, 1/4, 1/4): entropy 3/2 log 2.
    turned = rotation(3) @ np.diag([2.0, 1.0, 1.0]) @ rotation(3).T
    assert effective_rank(turned) == pytest.approx(2**1.5, rel=1e-12)
    assert effective_rank(100 * turned) == pytest.approx(2**1.5, rel=1e-12)


def test_nothing_that_varies_has_rank_zero():
    assert effective_rank(np.zeros((3, 3))) == 0
    assert math.isfinite(effective_rank(np.diag([1.0, 1e-320])))
