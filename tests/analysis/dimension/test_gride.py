from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import integrate, optimize, special

from analysis.dimension.tables import poisson_distances, table_of_distances
from oracles import STANDARD_ERRORS
from polariscope.analysis.dimension import gride as module
from polariscope.analysis.dimension.gride import gride, most_likely
from polariscope.analysis.dimension.support.bootstrap import neighbourhood_resamples
from polariscope.core.errors import InputError
from polariscope.numerics.neighbours import neighbours
from polariscope.testing.manifolds import swiss_roll, torus


def log_density(log_ratio, d, s):
    """log f(μ) of the docstring, as it stands."""
    mu = np.exp(log_ratio)
    return (
        math.log(d) + (s - 1) * np.log(mu**d - 1) - (d * (2 * s - 1) + 1) * log_ratio - special.betaln(s, s)
    )


@pytest.mark.parametrize("s", [1, 2, 8])
def test_the_density_integrates_to_one_and_the_ratios_of_a_poisson_process_have_it(s):
    d = 3.0

    def density(t):  # of t = log μ
        return math.exp(log_density(np.array(t), d, s) + t)

    assert integrate.quad(density, 1e-9, 15)[0] == pytest.approx(1, abs=1e-6)
    distances = poisson_distances(4000, 2 * s, d)
    logs = np.log(distances[:, 2 * s - 1] / distances[:, s - 1])
    mean = integrate.quad(lambda t: t * density(t), 1e-9, 15)[0]
    assert abs(logs.mean() - mean) < STANDARD_ERRORS * logs.std() / math.sqrt(4000)


@pytest.mark.parametrize("s", [1, 2, 4, 16, 32])
@pytest.mark.parametrize("d", [1.0, 6.0, 60.0])
def test_the_estimate_maximises_the_likelihood(s, d):
    distances = poisson_distances(300, 2 * s, d)
    logs = np.log(distances[:, 2 * s - 1] / distances[:, s - 1])
    best = optimize.minimize_scalar(
        lambda log_d: -log_density(logs, math.exp(log_d), s).sum(),
        bounds=(math.log(d / 3), math.log(3 * d)),
        method="bounded",
        options={"xatol": 1e-10},
    )
    assert most_likely(logs, s) == pytest.approx(math.exp(best.x), rel=1e-6)  # a maximum is flat: √ of 1e-14


def test_the_first_scale_is_the_likelihood_of_two_neighbours():
    logs = np.log(poisson_distances(100, 2, 4.0)[:, 1] / poisson_distances(100, 2, 4.0)[:, 0])
    assert most_likely(logs, 1) == pytest.approx(1 / logs.mean(), rel=1e-12)


@pytest.mark.parametrize("s", [1, 4, 32])
def test_the_slopes_are_the_derivatives_of_the_likelihood_in_log_d(s):
    logs = np.array([1e-9, 1e-5, 0.01, 0.3, 2.0])
    d, step = 5.0, 1e-4
    below, at, above = (
        log_density(logs, d * math.exp(shift), s)
        if s == 1
        else _stable_log_density(logs, d * math.exp(shift), s)
        for shift in (-step, 0, step)
    )
    slope, curvature = module._slopes(logs, d, s)
    np.testing.assert_allclose(slope, (above - below) / (2 * step), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(curvature, -(above - 2 * at + below) / step**2, rtol=1e-3, atol=2e-5)


def _stable_log_density(logs, d, s):
    return math.log(d) + (s - 1) * np.log(np.expm1(d * logs)) - (d * (2 * s - 1) + 1) * logs


def test_equal_distances_count_as_the_limit_of_close_ones():
    logs = np.log(poisson_distances(50, 8, 4.0)[:, 7] / poisson_distances(50, 8, 4.0)[:, 3])
    logs[:10] = 0.0
    nearly = logs.copy()
    nearly[:10] = 1e-9
    assert most_likely(logs, 4) == pytest.approx(most_likely(nearly, 4), rel=1e-7)


@pytest.mark.parametrize("d", [2.0, 9.0])
def test_every_scale_of_a_poisson_process_gives_its_dimension(d):
    n = 4000
    found = gride(table_of_distances(poisson_distances(n, 64, d)))
    assert found.curve.k == (2, 4, 8, 16, 32, 64)
    for value in found.curve.values:
        # One over the information is at most d²/n, that of the first scale.
        assert value == pytest.approx(d, rel=STANDARD_ERRORS / math.sqrt(n))
    assert found.curve.stable is not None


def test_the_bootstrap_step_agrees_with_solving_again():
    table = neighbours(torus(400, 3), k=8)
    logs = np.log(table.distances[:, 7] / table.distances[:, 3])
    value = most_likely(logs, 4)
    weights = neighbourhood_resamples(table, 8, n_bootstrap=30, seed=0)
    steps = module._one_step(weights, logs, value, 4)
    solved = [most_likely(np.repeat(logs, row.astype(int)), 4) for row in weights]
    # Second order: a resample moves the estimate by about 3 %, so that its square is left.
    np.testing.assert_allclose(steps, solved, rtol=0.005)
    assert np.std(solved) > 0.01 * value


def test_noise_shows_at_small_scales_and_not_at_large_ones():
    roll = swiss_roll(2000)
    noisy = roll + 0.3 * np.random.default_rng(1).normal(size=roll.shape)
    clean, found = gride(roll), gride(noisy)
    assert found.curve.values[0] > 2.4 > clean.curve.values[0]
    assert found.curve.values[-1] < 2.3


def test_a_scale_can_be_chosen():
    table = neighbours(torus(300, 2), k=32)
    found = gride(table, k=32, scale=4)
    assert (found.k, found.variant) == (8, "scale 4")
    assert found.value == found.curve.values[2]
    with pytest.raises(
        InputError, match=r"scale must be one of 1, 2, 4, 8, 16 \(2 · scale is at most k = 32\), got 3"
    ):
        gride(table, k=32, scale=3)
