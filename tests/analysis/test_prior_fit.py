"""The aggregate posterior beside its prior: closed forms, limits, and what is not defined."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from scipy.stats import norm

from oracles import STANDARD_ERRORS, random_rotation
from polariscope.analysis.prior_fit import PriorFit, prior_fit
from polariscope.analysis.representation import Representation
from polariscope.core.errors import InputError


def alike(mean: list[float], variance: list[float], n: int = 20) -> Representation:
    """The same posterior for every input, so q(z) is that Gaussian."""
    codes = np.tile(np.array(mean, dtype=float), (n, 1))
    return Representation(codes, np.tile(np.array(variance, dtype=float), (n, 1)), codes)


def normal_draws(n: int, n_latents: int) -> tuple[np.ndarray, np.ndarray]:
    z = np.random.default_rng(0).normal(size=(n, n_latents))
    return z, norm.logpdf(z).sum(axis=1)


def test_the_divergence_is_that_of_the_prior_from_the_aggregate_posterior() -> None:
    mean, variance = np.array([0.5, -1.0]), np.array([0.4, 2.0])
    fit = prior_fit(alike(mean.tolist(), variance.tolist()), *normal_draws(20_000, 2))
    # KL(N(0, 1) ‖ N(μ, v)), not the other direction
    expected = 0.5 * (np.log(variance) + (1 + mean**2) / variance - 1).sum()
    assert fit.divergence is not None
    assert fit.error is not None
    assert abs(fit.divergence - expected) < STANDARD_ERRORS * fit.error
    # log p − log q = const + Σ (z − μ)²/2v − z²/2: the variance of a quadratic form of a normal z
    a, b = 0.5 / variance - 0.5, -mean / variance
    assert fit.error == pytest.approx(math.sqrt((2 * a**2 + b**2).sum() / 20_000), rel=0.05)
    assert fit.overlap == pytest.approx(1)


def test_a_mixture_that_is_the_prior_has_no_divergence() -> None:
    clusters = np.array([[-2.0], [2.0], [-2.0], [2.0]])
    rep = Representation(clusters, np.full((4, 1), 0.25), clusters)
    z = np.linspace(-4, 4, 50)[:, None]
    log_p = np.log(0.5 * norm.pdf(z[:, 0], -2, 0.5) + 0.5 * norm.pdf(z[:, 0], 2, 0.5))
    fit = prior_fit(rep, z, log_p)
    assert fit.divergence == pytest.approx(0, abs=1e-12)
    # Two of six pairs are of equals; for the others e^{−(4²)/(8 · 0.25)} = e^−8.
    assert fit.overlap == pytest.approx((2 + 4 * math.exp(-8)) / 6)


def test_rotated_encodings_with_their_covariances_fit_a_round_prior_as_well() -> None:
    rng = np.random.default_rng(1)
    mean, variance = rng.normal(size=(30, 3)), rng.gamma(2.0, 0.3, size=(30, 3))
    z, log_p = normal_draws(500, 3)
    turn = random_rotation(3, seed=2)
    covariance = turn @ (variance[:, :, None] * np.eye(3)) @ turn.T
    turned = Representation(
        mean @ turn.T,
        np.ascontiguousarray(np.diagonal(covariance, axis1=1, axis2=2)),
        mean @ turn.T,
        covariance=covariance,
    )
    plain = prior_fit(Representation(mean, variance, mean), z, log_p)
    found = prior_fit(turned, z @ turn.T, log_p)
    assert found.divergence == pytest.approx(plain.divergence, rel=1e-9)
    assert found.overlap == pytest.approx(plain.overlap, rel=1e-9)


def test_the_discrepancy_compares_draws_of_both() -> None:
    rng = np.random.default_rng(0)
    sampled = rng.normal(size=(50, 1)) + 3
    rep = Representation(np.zeros((50, 1)), np.ones((50, 1)), sampled)
    z, log_p = normal_draws(80, 1)
    seen: list[tuple[int, int]] = []

    def distance(x: np.ndarray, y: np.ndarray) -> float:
        seen.append((len(x), len(y)))
        assert set(x[:, 0]) <= set(sampled[:, 0])
        return float(x.mean() - y.mean())

    fit = prior_fit(rep, z, log_p, discrepancy=distance, n_compared=60)
    assert seen == [(50, 60)]
    assert fit.discrepancy == pytest.approx(sampled.mean() - z[:60].mean())
    assert prior_fit(rep, z, log_p).discrepancy is None


def test_what_is_not_defined_is_left_out_and_said() -> None:
    z, log_p = normal_draws(50, 2)
    points = prior_fit(alike([0, 0], [0, 1]), z, log_p, discrepancy=lambda x, y: 7.0)
    assert (points.divergence, points.overlap, points.discrepancy) == (None, None, 7.0)
    assert "has no density" in points.notes[0]
    conditional = prior_fit(alike([0, 0], [1, 1]), None, None, discrepancy=lambda x, y: 7.0)
    assert (conditional.divergence, conditional.discrepancy, conditional.n_draws) == (None, None, 0)
    assert conditional.overlap == pytest.approx(1)
    assert "no single p(z)" in conditional.notes[0]


def test_only_so_many_encodings_are_used_and_a_record_survives_json() -> None:
    fit = prior_fit(alike([0.0], [1.0], n=30), *normal_draws(50, 1), n_points=10)
    assert (fit.n_samples, fit.n_draws) == (10, 50)
    assert PriorFit.from_dict(json.loads(json.dumps(fit.to_dict()))) == fit


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"n_points": 1}, "n_points must be at least 2"),
        ({"n_compared": 1}, "n_compared must be at least 2"),
    ],
)
def test_too_few_are_refused(options: dict[str, int], words: str) -> None:
    with pytest.raises(InputError, match=words):
        prior_fit(alike([0.0], [1.0]), *normal_draws(50, 1), **options)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="overlap requires at least 2 encodings"):
        prior_fit(alike([0.0], [1.0], n=1), *normal_draws(50, 1))
    with pytest.raises(InputError, match="be passed together"):
        prior_fit(alike([0.0], [1.0]), normal_draws(50, 1)[0], None)
    with pytest.raises(InputError, match="draws must be at least 2"):
        prior_fit(alike([0.0], [1.0]), *normal_draws(1, 1))
