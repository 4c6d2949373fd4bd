from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import optimize

from analysis.dimension.tables import poisson_distances, table_of_distances
from oracles import STANDARD_ERRORS
from polariscope.analysis.dimension.twonn import fitted, twonn
from polariscope.core.errors import InputError
from polariscope.core.seeds import generator
from polariscope.testing.manifolds import torus


def table_of_ratios(ratios):
    return table_of_distances(np.column_stack([np.ones_like(ratios), ratios]))


@pytest.mark.parametrize(("fit", "first"), [("line", 1), ("line-from-zero", 0)])
def test_ratios_on_the_line_give_its_slope(fit, first):
    n, d = 200, 6.5
    share = (first + np.arange(n)) / n
    ratios = np.where(share < 1, 1 - np.minimum(share, 0.999), 1e-9) ** (-1 / d)  # 1 − F = μ^-d
    shuffled = np.random.default_rng(0).permutation(ratios)
    assert twonn(table_of_ratios(shuffled), fit=fit).value == pytest.approx(d, rel=1e-12)


def test_starting_the_distribution_at_zero_lowers_the_slope_by_its_first_order_term():
    n, d = 5000, 4.0
    table = table_of_distances(poisson_distances(n, 2, d))
    lower = twonn(table).value - twonn(table, fit="line-from-zero").value
    # ΔF = 1/N raises y by e^{dx}/N. Over x ~ Exp(d) up to F = 0.9, with t = d x, L = log 10:
    # Σ Δy x / Σ x² = (d/N) ∫₀ᴸ t dt / ∫₀ᴸ t² e^-t dt.
    big = math.log(10)
    expected = d / n * (big**2 / 2) / (2 - 0.1 * (big**2 + 2 * big + 2))
    assert lower == pytest.approx(expected, rel=0.1)
    assert expected == pytest.approx(3.3 * d / n, rel=0.01)


def test_the_likelihood_of_all_ratios_is_unbiased():
    n, d, repeats = 10, 3.0, 1500
    ratios = np.sort(np.random.default_rng(0).exponential(1 / d, size=(repeats, n)), axis=1)
    for share in (1.0, 0.5):
        found = np.array([fitted(row, np.ones((1, n)), "likelihood", share)[0] for row in ratios])
        error = found.std() / math.sqrt(len(found))
        assert abs(found.mean() - d) < STANDARD_ERRORS * error


def test_the_likelihood_of_the_lowest_ratios_has_its_maximum_where_calculus_says():
    logs = np.sort(np.log(poisson_distances(50, 2, 5.0)[:, 1] / poisson_distances(50, 2, 5.0)[:, 0]))
    kept = logs[:40]

    def minus_log_likelihood(d):  # 40 exact values, and 10 known only to be at least the 40th
        return -(40 * math.log(d) - d * kept.sum() - 10 * d * kept[-1])

    best = optimize.minimize_scalar(
        minus_log_likelihood, bounds=(0.1, 50), method="bounded", options={"xatol": 1e-9}
    ).x
    found = fitted(logs, np.ones((1, 50)), "likelihood", 0.8)[0]
    assert found == pytest.approx(best * 39 / 40, rel=1e-6)


@pytest.mark.parametrize("fit", ["line", "line-from-zero", "likelihood"])
def test_weights_count_points_as_often_as_they_say(fit):
    rng = np.random.default_rng(0)
    logs = np.sort(rng.exponential(size=2000))
    times = rng.integers(0, 3, size=2000)
    repeated = np.repeat(logs, times)
    weighted = fitted(logs, times[None].astype(float), fit, 0.9)[0]
    # A point counted twice stands once at the upper F and not at both: of order 1/n.
    assert weighted == pytest.approx(fitted(repeated, np.ones((1, len(repeated))), fit, 0.9)[0], rel=5 / 2000)


@pytest.mark.parametrize("fit", ["line", "line-from-zero", "likelihood"])
def test_a_poisson_process_gives_its_dimension(fit):
    n, d = 5000, 11.0
    found = twonn(table_of_distances(poisson_distances(n, 2, d)), fit=fit).value
    # The line weighs its points unevenly; its variance is below twice that of the likelihood, 1/0.9n.
    assert found == pytest.approx(d, rel=STANDARD_ERRORS * math.sqrt(2 / (0.9 * n)))


def test_outliers_move_the_lowest_ratios_little():
    distances = poisson_distances(2000, 2, 5.0)
    spoiled = distances.copy()
    spoiled[:40, 1] *= 1e6  # 2 % of the points have a far second neighbour
    for fit in ("line", "likelihood"):
        before, after = (twonn(table_of_distances(each), fit=fit).value for each in (distances, spoiled))
        # The ranks of the others fall by at most 2 % of N.
        assert after == pytest.approx(before, rel=0.06)
    assert twonn(table_of_distances(spoiled), fit="likelihood", share=1.0).value < 4


def test_two_neighbours_suffice_and_no_more_are_looked_for():
    found = twonn(torus(200, 2))
    assert (found.k, found.variant) == (2, "line, lowest 90%")


@pytest.mark.parametrize("share", [0.0, 1.0, 1.2])
def test_impossible_shares_are_refused(share):
    with pytest.raises(InputError, match="share must lie between 0 and 1"):
        twonn(torus(50, 2), share=share)


def test_rounded_data_have_ties_whatever_rounding_makes_of_them():
    rounded = np.round(generator(0, "rounded").random((2000, 3)), 1)  # a grid of tenths: ties differ by 1e-16
    with pytest.raises(InputError, match="if x is a grid or rounded"):
        twonn(rounded)
    finer = twonn(np.round(generator(0, "rounded").random((2000, 3)), 2))
    assert "have the same distance, so the dimension is too large" in finer.notes[-1]
    found = twonn(np.round(generator(0, "rounded").random((2000, 3)), 3))
    assert found.value == pytest.approx(3, rel=0.08)
    assert not found.notes
