"""Theorems 6.4.1 and 6.4.2 of bonheme2023: what passive latents do to dependence in the sampled representation."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from oracles import linear_model, linear_posterior, optimal_decoder, random_rotation, set_linear
from polariscope.analysis.regime.latent_types import classify
from polariscope.numerics.dependence import noise_free_covariance, total_correlation, total_correlation_of
from polariscope.numerics.information import (
    averaged_mutual_information,
    discretise,
    mutual_information_table,
)
from polariscope.runs.encode import encode

GAMMA = 0.1
EIGENVALUES = np.array(
    [9.0, 6.0, 4.0, 0.02, 0.01]
)  # two directions below the noise: their latents are passive
MIX = np.array([[1.0, 0.0, 0.0], [0.8, 0.6, 0.0], [0.0, 0.6, 0.8]])


def entangled_representation(n_samples=4000, passive_map=None):
    """A linear model with three active latents, mixed so that they are correlated, and two passive ones.

    ``passive_map`` lets the means of the passive latents follow the active ones, slightly, as trained models do.
    """
    directions = random_rotation(5, 0)
    W = optimal_decoder(EIGENVALUES, directions, 5, 1.0, GAMMA)
    V, variance = linear_posterior(W, 1.0, GAMMA)
    V[:3] = MIX @ V[:3]
    if passive_map is not None:
        V[3:] = passive_map @ V[:3]
    model = linear_model(5, 5, GAMMA)
    set_linear(model, W, V, variance)
    rng = np.random.default_rng(0)
    x = rng.standard_normal((n_samples, 5)) * np.sqrt(EIGENVALUES) @ directions.T
    return encode(model, x.astype(np.float32), n_samples=None)


def test_the_last_two_latents_are_passive():
    rep = entangled_representation(500)
    types = classify(rep.variance.mean(axis=0), rep.variance.var(axis=0))
    assert types == ["active"] * 3 + ["passive"] * 2


def test_theorem_6_4_1_holds_exactly_for_the_covariance_of_the_theorem():
    # Cov[ẑ] = [[Cov[z], 0], [0, I]].
    root = random_rotation(3, 1) * [1.0, 2.0, 3.0]
    kept = root @ root.T
    whole = np.eye(5)
    whole[:3, :3] = kept
    expected = 0.5 * (np.log(np.diag(kept)).sum() - np.linalg.slogdet(kept)[1])
    assert total_correlation_of(whole) == pytest.approx(expected, rel=1e-10)
    assert total_correlation_of(kept) == pytest.approx(expected, rel=1e-10)


def test_theorem_6_4_1_passive_latents_leave_the_total_correlation_of_draws():
    n = 4000
    rep = entangled_representation(n)
    active, whole = total_correlation(rep.sampled[:, :3]), total_correlation(rep.sampled)
    assert active > 0.5
    # Passive draws add −½ log det of sample correlations that are 0 but for noise: 7 squares of variance 1/n, each
    # half: 7/2n on average, with a standard deviation of √14/2n.
    assert whole - active == pytest.approx(7 / (2 * n), abs=5 * math.sqrt(14) / (2 * n))
    exact = noise_free_covariance(rep.mean, rep.variance)
    assert total_correlation_of(exact) == pytest.approx(total_correlation_of(exact[:3, :3]), abs=1e-6)


def test_the_theorem_is_about_draws_means_of_passive_latents_may_correlate_fully():
    passive_map = np.array([[1e-3, 0.0, 0.0], [0.0, 1e-3, 1e-3]])
    rep = entangled_representation(passive_map=passive_map)
    assert abs(rep.mean[:, 3:]).max() < 0.02  # passive by any rule
    noise = 1e-6 * np.random.default_rng(1).standard_normal((len(rep.mean), 5))
    active = total_correlation(rep.mean[:, :3] + noise[:, :3])
    assert total_correlation(rep.mean + noise) > active + 5
    drawn = total_correlation(rep.sampled) - total_correlation(rep.sampled[:, :3])
    assert drawn == pytest.approx(7 / (2 * 4000), abs=5 * math.sqrt(14) / (2 * 4000))


def test_only_the_trace_of_the_product_is_n_not_the_product_itself_the_identity():
    # The thesis says, above Eq. 6.3, that diag(Σ)⁻¹Σ = I; its trace is n, which is all that the proof needs.
    covariance = np.array([[2.0, 1.0], [1.0, 3.0]])
    product = np.diag(1 / np.diag(covariance)) @ covariance
    assert np.trace(product) == pytest.approx(2)
    assert not np.allclose(product, np.eye(2))


@pytest.mark.parametrize("n_passive", [1, 2, 3])
def test_theorem_6_4_2_two_latents_with_information_c_among_n_average_to_2c_over_n_squared_minus_n(n_passive):
    # A full grid: two equal columns, and passive ones that are exactly independent of everything.
    grid = np.array(list(itertools.product(range(4), *[range(3)] * n_passive)), dtype=float)
    z = np.concatenate([grid[:, :1], -grid[:, :1], grid[:, 1:]], axis=1)
    table = mutual_information_table(discretise(z))
    c, n = table[0, 1], 2 + n_passive
    assert c == pytest.approx(math.log(4))
    found = averaged_mutual_information(table)
    assert found == pytest.approx(2 * c / (n**2 - n), rel=1e-10)
    assert found < averaged_mutual_information(table, [0, 1])


def test_theorem_6_4_2_the_average_of_draws_falls_with_each_passive_latent():
    rep = entangled_representation()
    table = mutual_information_table(discretise(rep.sampled))
    averages = [averaged_mutual_information(table, list(range(k))) for k in (3, 4, 5)]
    assert averages[0] > averages[1] > averages[2]
    # What is left to passive pairs is the bias of 20 bins: at most (20 − 1)²/2n each.
    passive = [table[i, j] for i, j in itertools.combinations(range(5), 2) if j >= 3]
    assert max(passive) < 1.2 * 19**2 / (2 * 4000)
