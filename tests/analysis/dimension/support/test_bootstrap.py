from __future__ import annotations

import numpy as np
import pytest

from polariscope.analysis.dimension.mle import mle
from polariscope.analysis.dimension.support.bootstrap import neighbourhood_resamples
from polariscope.analysis.dimension.twonn import twonn
from polariscope.numerics.neighbours import neighbours
from polariscope.testing.manifolds import torus


def test_a_resample_brings_every_point_that_has_the_centre_among_its_neighbours():
    table = neighbours(torus(60, 2), k=3)
    weights = neighbourhood_resamples(table, 3, n_bootstrap=500, seed=0)
    blocks = np.eye(60)
    for point, row in enumerate(table.indices):
        blocks[row, point] += 1  # block of each neighbour holds the point
    # Every resample is a sum of round(60/4) = 15 blocks: solve for how often each was drawn.
    drawn = np.linalg.lstsq(blocks.T, weights.T, rcond=None)[0].T
    np.testing.assert_allclose(drawn @ blocks, weights, atol=1e-9)
    assert weights.sum(axis=1).mean() == pytest.approx(60, rel=0.05)
    # All points count equally: 15 draws, each of which holds a point with probability 4/60.
    standard_error = np.sqrt(15 * 4 / 60 * (1 - 4 / 60) / 500)
    assert np.abs(weights.mean(axis=0) - 1).max() < 5 * standard_error


def replicate(estimate, n_replicates=60):
    found = [estimate(torus(200, 2, seed=seed)) for seed in range(n_replicates)]
    return np.array([each.value for each in found]), np.array([each.interval for each in found])


@pytest.mark.parametrize(
    "estimate",
    [lambda x: mle(x, k=8, normaliser="k-1", seed=1), lambda x: twonn(x, fit="likelihood", seed=1)],
    ids=["mle", "twonn"],
)
def test_the_interval_covers_the_truth_about_as_often_as_it_says(estimate):
    values, intervals = replicate(estimate)
    covered = ((intervals[:, 0] <= 2) & (intervals[:, 1] >= 2)).mean()
    # 95 % of 60: a standard error of 2.8 %; a bootstrap of so few blocks is known to fall short by a few per cent.
    assert covered > 0.95 - 5 * 0.028
    # Its width is that of ±1.96 standard deviations of the values; 60 values give their deviation to 9 %.
    width = (intervals[:, 1] - intervals[:, 0]).mean() / (2 * 1.96)
    assert width == pytest.approx(values.std(ddof=1), rel=0.25)


def test_points_drawn_one_by_one_would_give_too_narrow_an_interval():
    ratios = []
    for seed in range(10):
        table = neighbours(torus(500, 2, seed=seed), k=8)
        found = mle(table, k=8)
        inverse = 1 / np.array(found.pointwise)
        one_by_one = inverse.std() / inverse.mean() / np.sqrt(500)  # relative, of the harmonic mean
        weights = neighbourhood_resamples(table, 8, n_bootstrap=400, seed=seed)
        ratios.append(((weights @ inverse) / weights.sum(axis=1)).std() / inverse.mean() / one_by_one)
    assert np.mean(ratios) > 1.1
