"""The rate in parts: closed forms, enumeration, invariance."""

from __future__ import annotations

import dataclasses
import inspect
import json
import math

import numpy as np
import pytest
from scipy import stats

from oracles import STANDARD_ERRORS, random_rotation, real_line
from polariscope.analysis.decomposition import Decomposition, decompose
from polariscope.analysis.representation import Representation
from polariscope.core.errors import InputError
from polariscope.numerics.dependence import total_correlation_of


def drawn(mean: np.ndarray, variance: np.ndarray, seed: int = 0, **fields: object) -> Representation:
    """A representation of N(mean, diag variance) with one draw per sample."""
    noise = np.random.default_rng([7, seed]).normal(size=mean.shape)
    variance = np.broadcast_to(variance, mean.shape).astype(np.float64)
    return Representation(mean, variance, mean + np.sqrt(variance) * noise, **fields)  # type: ignore[arg-type]


def linear(covariance: np.ndarray, variance: np.ndarray, n_samples: int, seed: int = 0) -> Representation:
    """Means drawn from N(0, covariance): the aggregate posterior is N(0, covariance + diag variance)."""
    root = np.linalg.cholesky(covariance)
    mean = np.random.default_rng(seed).normal(size=(n_samples, len(root))) @ root.T
    return drawn(mean, variance, seed)


def two_clouds(n_samples: int = 40, n_latents: int = 3, seed: int = 0, **fields: object) -> Representation:
    """Nothing Gaussian about it: two clouds with posteriors of their own."""
    random = np.random.default_rng(seed)
    mean = random.normal(size=(n_samples, n_latents)) + 3 * (np.arange(n_samples) % 2)[:, None]
    return drawn(mean, random.gamma(2.0, 0.3, size=mean.shape), seed, **fields)


def test_every_part_is_its_definition_spelled_out() -> None:
    rep = two_clouds(prior_mean=np.array([0.5, 0.0, -1.0]), prior_variance=np.array([1.0, 2.0, 3.0]))
    log_q = stats.norm.logpdf(
        rep.sampled[:, None], rep.mean[None], np.sqrt(rep.variance[None])
    )  # (i, k, latent)
    own = log_q[np.arange(40), np.arange(40)].sum(1)
    joint = np.log(np.exp(log_q.sum(2)).mean(1))
    marginals = np.log(np.exp(log_q).mean(1))
    log_p = stats.norm.logpdf(rep.sampled, rep.prior_mean, np.sqrt(rep.prior_variance))
    found = decompose(rep)
    assert found.mutual_information == pytest.approx((own - joint).mean(), rel=1e-11)
    assert found.total_correlation == pytest.approx((joint - marginals.sum(1)).mean(), rel=1e-11)
    assert found.aggregate_kl == pytest.approx((joint - log_p.sum(1)).mean(), rel=1e-11)
    np.testing.assert_allclose(found.latent_kls, (marginals - log_p).mean(0), rtol=1e-11)
    own_columns = log_q[np.arange(40), np.arange(40)]
    np.testing.assert_allclose(found.latent_information, (own_columns - marginals).mean(0), rtol=1e-11)
    assert found.errors["total_correlation"] == pytest.approx(
        (joint - marginals.sum(1)).std(ddof=1) / math.sqrt(40), rel=1e-10
    )


@pytest.mark.parametrize("seed", range(3))
def test_the_three_parts_sum_to_the_rate_of_the_same_draws(seed: int) -> None:
    rep = two_clouds(n_samples=300, seed=seed)
    found = decompose(rep)
    assert found.dimension_wise_kl is not None
    parts = found.mutual_information + found.total_correlation + found.dimension_wise_kl
    assert parts == pytest.approx(found.rate, rel=1e-12)
    assert found.total_correlation + found.dimension_wise_kl == pytest.approx(found.aggregate_kl, rel=1e-11)
    assert sum(found.latent_kls) == pytest.approx(found.dimension_wise_kl, rel=1e-11)
    estimate = (
        stats.norm.logpdf(rep.sampled, rep.mean, np.sqrt(rep.variance)) - stats.norm.logpdf(rep.sampled)
    ).sum(1)
    assert found.rate == pytest.approx(estimate.mean(), rel=1e-12)
    exact = 0.5 * (rep.mean**2 + rep.variance - np.log(rep.variance) - 1).sum(1).mean()
    assert found.exact_rate == pytest.approx(exact, rel=1e-12)
    assert abs(found.rate - exact) < STANDARD_ERRORS * found.errors["rate"]


def test_a_one_dimensional_mixture_agrees_with_its_integral() -> None:
    # q(z) is a mixture of three normals; its KL to the prior and its information by quadrature, draws at every z.
    mean, variance = np.array([-1.0, 0.2, 2.0]), np.array([0.5, 0.1, 0.8])
    copies = 800
    rep = drawn(np.tile(mean, copies)[:, None], np.tile(variance, copies)[:, None])
    z, weight = real_line()
    components = stats.norm.pdf(z[:, None], mean, np.sqrt(variance))
    q = components.mean(1)
    seen = q > 0
    divergence = (weight * q)[seen] @ (np.log(q[seen]) - stats.norm.logpdf(z[seen]))
    entropies = stats.norm.entropy(mean, np.sqrt(variance))
    information = -(weight * q)[seen] @ np.log(q[seen]) - entropies.mean()
    found = decompose(rep, n_samples=None)
    assert found.total_correlation == pytest.approx(0, abs=1e-10)  # one latent has nobody to depend on
    for name, expected in (("mutual_information", information), ("dimension_wise_kl", divergence)):
        assert abs(getattr(found, name) - expected) < STANDARD_ERRORS * found.errors[name]


def test_the_parts_of_a_gaussian_aggregate_have_closed_forms() -> None:
    # q(z) = N(0, C + D): I = ½ log det(I + D⁻¹C), TC = −½ log det corr, KL_j = ½(s_j − log s_j − 1).
    covariance = np.array([[0.8, 0.5], [0.5, 0.9]])
    variance = np.array([0.4, 0.6])
    found = decompose(linear(covariance, variance, 3000), n_samples=None)
    aggregate = covariance + np.diag(variance)
    information = 0.5 * np.linalg.slogdet(np.eye(2) + covariance / variance[:, None])[1]
    kls = 0.5 * (aggregate.diagonal() - np.log(aggregate.diagonal()) - 1)
    # The standard error of the draws, and for N samples standing for the population: the log of a mean of N
    # densities is off by about its relative variance over 2N, which is of the order of e^I.
    bias = math.exp(information) / 3000
    assert found.mutual_information == pytest.approx(
        information, abs=bias + STANDARD_ERRORS * found.errors["mutual_information"]
    )
    assert found.total_correlation == pytest.approx(
        total_correlation_of(aggregate), abs=bias + STANDARD_ERRORS * found.errors["total_correlation"]
    )
    assert found.dimension_wise_kl == pytest.approx(
        kls.sum(), abs=bias + STANDARD_ERRORS * found.errors["dimension_wise_kl"]
    )
    np.testing.assert_allclose(
        found.latent_information,
        0.5 * np.log(aggregate.diagonal() / variance),
        atol=bias + STANDARD_ERRORS * found.errors["mutual_information"],
    )
    assert found.notes == ()


def test_independent_latents_have_no_total_correlation() -> None:
    # Every combination of the values of three latents, each once: q(z) factorises exactly, at every draw.
    values = [np.array([-1.5, 0.0, 0.4, 2.0]), np.array([0.0, 1.0, 3.0]), np.array([-1.0, 1.0])]
    mean = np.stack([grid.ravel() for grid in np.meshgrid(*values, indexing="ij")], axis=1)
    found = decompose(drawn(mean, np.array([0.1, 0.5, 0.02])))
    assert found.total_correlation == pytest.approx(0, abs=1e-12)
    assert found.mutual_information == pytest.approx(sum(found.latent_information), rel=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_total_correlation_and_divergences_are_not_negative_beyond_the_noise_of_the_draws(seed: int) -> None:
    found = decompose(two_clouds(n_samples=100, seed=seed))
    for name in ("mutual_information", "total_correlation", "dimension_wise_kl", "aggregate_kl"):
        assert getattr(found, name) > -STANDARD_ERRORS * found.errors[name]


def test_a_passive_latent_changes_nothing() -> None:
    rep = two_clouds(n_samples=200)
    noise = np.random.default_rng(1).normal(size=(200, 1))
    wider = Representation(
        np.hstack([rep.mean, np.zeros((200, 1))]),
        np.hstack([rep.variance, np.ones((200, 1))]),
        np.hstack([rep.sampled, noise]),
    )
    before, after = decompose(rep), decompose(wider)
    for name in ("rate", "mutual_information", "total_correlation", "dimension_wise_kl", "aggregate_kl"):
        assert getattr(after, name) == pytest.approx(getattr(before, name), rel=1e-11), name
    assert after.latent_kls[3] == pytest.approx(0, abs=1e-12)
    assert after.latent_information[3] == pytest.approx(0, abs=1e-12)


def test_encodings_that_do_not_overlap_tell_every_sample_apart() -> None:
    mean = 100.0 * np.arange(50)[:, None] * np.ones(2)
    found = decompose(drawn(mean, np.array([1.0, 1e-4])))
    assert found.mutual_information == pytest.approx(math.log(50), rel=1e-12)
    assert found.bound == math.log(50)
    # Either latent alone tells them apart: the other then repeats it, and q(z) has all of it as dependence.
    assert found.total_correlation == pytest.approx(math.log(50), rel=1e-12)
    assert any("near its bound, log 50 = 3.91: on average 1.0 of the 50" in note for note in found.notes)


def test_a_posterior_that_ignores_the_input_says_nothing_about_it() -> None:
    found = decompose(drawn(np.full((60, 2), 0.7), np.array([0.3, 1.2])))
    assert found.mutual_information == pytest.approx(0, abs=1e-13)
    assert found.total_correlation == pytest.approx(0, abs=1e-13)
    assert found.rate == pytest.approx(found.dimension_wise_kl, rel=1e-12)


def test_order_of_samples_and_latents_and_a_common_shift_do_not_matter() -> None:
    rep = two_clouds()
    rows, columns, shift = np.random.default_rng(0).permutation(40), [2, 0, 1], np.array([1e4, -3.0, 0.0])

    def moved(array: np.ndarray, by: np.ndarray | float = 0.0) -> np.ndarray:
        return (array + by)[rows][:, columns]

    other = Representation(
        moved(rep.mean, shift),
        moved(rep.variance),
        moved(rep.sampled, shift),
        prior_mean=shift[columns],
        prior_variance=np.ones(3),
    )
    before, after = decompose(rep), decompose(other)
    for name in ("rate", "mutual_information", "total_correlation", "dimension_wise_kl"):
        assert getattr(after, name) == pytest.approx(getattr(before, name), rel=1e-8), name


def test_narrow_posteriors_far_from_the_origin_keep_their_digits() -> None:
    # Two samples 4 standard deviations apart: the products z²/σ² are 10¹⁰ times what is left of them.
    mean, variance = np.array([[1.0], [1.0 + 4e-5]]), 1e-10
    rep = drawn(mean, np.array([variance]))
    log_q = stats.norm.logpdf(rep.sampled, mean.T, math.sqrt(variance))
    expected = (np.diag(log_q) - np.log(np.exp(log_q).mean(1))).mean()
    assert decompose(rep).mutual_information == pytest.approx(expected, rel=1e-5)


def test_how_many_rows_are_worked_on_at_once_does_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    rep = two_clouds()
    whole = decompose(rep)
    monkeypatch.setattr("polariscope.numerics.mixtures.BLOCK", 130)  # three rows of 40 at a time
    parts = decompose(rep)
    assert parts.mutual_information == pytest.approx(whole.mutual_information, rel=1e-13)
    assert parts.total_correlation == pytest.approx(whole.total_correlation, rel=1e-13)


def full_representation(n_samples: int = 60, seed: int = 0) -> Representation:
    random = np.random.default_rng(seed)
    root = random.normal(size=(n_samples, 3, 3)) + 0.5 * np.eye(3)
    covariance = root @ root.transpose(0, 2, 1)
    mean = random.normal(size=(n_samples, 3))
    sampled = mean + (root @ random.normal(size=(n_samples, 3, 1)))[:, :, 0]
    variance = np.diagonal(covariance, axis1=1, axis2=2).copy()
    return Representation(mean, variance, sampled, covariance=covariance)


def test_with_a_full_covariance_every_part_is_its_definition_spelled_out() -> None:
    rep = full_representation()
    n = rep.n_samples
    log_q = np.array(
        [
            stats.multivariate_normal.logpdf(rep.sampled, mean, covariance)
            for mean, covariance in zip(rep.mean, rep.covariance, strict=True)
        ]
    ).T
    joint = np.log(np.exp(log_q).mean(1))
    marginals = np.log(stats.norm.pdf(rep.sampled[:, None], rep.mean, np.sqrt(rep.variance)).mean(1))
    found = decompose(rep)
    assert found.mutual_information == pytest.approx((np.diag(log_q) - joint).mean(), rel=1e-9)
    assert found.total_correlation == pytest.approx((joint - marginals.sum(1)).mean(), rel=1e-9)
    np.testing.assert_allclose(
        found.latent_kls, (marginals - stats.norm.logpdf(rep.sampled)).mean(0), rtol=1e-9, atol=1e-12
    )
    exact = 0.5 * ((rep.mean**2 + rep.variance).sum(1) - np.linalg.slogdet(rep.covariance)[1] - 3)
    assert found.exact_rate == pytest.approx(exact.mean(), rel=1e-10)
    assert found.prior == "gaussian"
    assert n == found.n_samples


def test_a_rotation_leaves_information_and_distance_to_the_prior_but_not_their_parts() -> None:
    rep, R = full_representation(), random_rotation(3, seed=2)
    covariance = R @ rep.covariance @ R.T
    rotated = Representation(
        rep.mean @ R.T,
        np.diagonal(covariance, axis1=1, axis2=2).copy(),
        rep.sampled @ R.T,
        covariance=covariance,
    )
    before, after = decompose(rep), decompose(rotated)
    for name in ("rate", "mutual_information", "aggregate_kl", "exact_rate"):
        assert getattr(after, name) == pytest.approx(getattr(before, name), rel=1e-9), name
    assert abs(after.total_correlation - before.total_correlation) > 0.01


def laplace_rate(rep: Representation) -> np.ndarray:
    """log q(z_j|x) − log p(z_j) at the draws, for a Laplace prior: what a model with such a prior states."""
    own = stats.norm.logpdf(rep.sampled, rep.mean, np.sqrt(rep.variance))
    return own - stats.laplace.logpdf(rep.sampled)


def test_a_prior_that_is_not_gaussian_enters_through_the_rate() -> None:
    plain = two_clouds(n_samples=100)
    rate = laplace_rate(plain)
    rep = Representation(plain.mean, plain.variance, plain.sampled, rate=rate)
    found, gaussian = decompose(rep), decompose(plain)
    assert found.prior == "other"
    assert found.rate == pytest.approx(rate.sum(1).mean(), rel=1e-12)
    assert (found.mutual_information, found.total_correlation) == (
        gaussian.mutual_information,
        gaussian.total_correlation,
    )
    assert found.aggregate_kl == pytest.approx(found.rate - found.mutual_information, rel=1e-11)
    assert found.dimension_wise_kl is found.latent_kls is found.exact_rate is None
    assert any("not known to be independent" in note for note in found.notes)
    assert "KL(q(z) ‖ p(z))" in str(found)

    split = decompose(dataclasses.replace(rep, prior_is_factorised=True))
    log_q = stats.norm.logpdf(rep.sampled[:, None], rep.mean[None], np.sqrt(rep.variance[None]))
    expected = (np.log(np.exp(log_q).mean(1)) - stats.laplace.logpdf(rep.sampled)).mean(0)
    np.testing.assert_allclose(split.latent_kls, expected, rtol=1e-10)
    assert split.aggregate_kl == pytest.approx(split.total_correlation + split.dimension_wise_kl, rel=1e-11)


def test_the_gaussian_rate_that_a_model_states_changes_nothing() -> None:
    rep = two_clouds()
    exact = 0.5 * (rep.mean**2 + rep.variance - np.log(rep.variance) - 1)
    stated = Representation(rep.mean, rep.variance, rep.sampled, rate=exact.astype(np.float32))
    assert decompose(stated) == decompose(rep)


def test_a_conditional_prior_leaves_information_and_total_correlation_only() -> None:
    prior_mean = np.random.default_rng(0).normal(size=(40, 3))
    rep = two_clouds(prior_mean=prior_mean, prior_variance=np.full((40, 3), 2.0))
    found = decompose(rep)
    assert found.prior == "conditional"
    assert found.aggregate_kl is found.dimension_wise_kl is None
    assert found.mutual_information == decompose(two_clouds()).mutual_information
    log_p = stats.norm.logpdf(rep.sampled, prior_mean, math.sqrt(2.0))
    own = stats.norm.logpdf(rep.sampled, rep.mean, np.sqrt(rep.variance))
    assert found.rate == pytest.approx((own - log_p).sum(1).mean(), rel=1e-11)
    assert any("no single p(z)" in note for note in found.notes)


def test_some_of_the_samples_are_chosen_by_the_seed() -> None:
    rep = two_clouds(n_samples=80)
    first, again, other = (decompose(rep, n_samples=30, seed=seed) for seed in (1, 1, 2))
    assert first == again
    assert first.n_samples == 30
    assert first.mutual_information != other.mutual_information
    assert decompose(rep, n_samples=80) == decompose(rep, n_samples=None) == decompose(rep, n_samples=9999)


def test_it_prints_its_parts_and_is_kept_as_json() -> None:
    found = decompose(two_clouds())
    stored = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert Decomposition.from_dict(stored) == found
    lines = str(found).splitlines()
    assert lines[0] == "Parts of the rate, 40 samples (nats, ± standard error)"
    shown = f"{found.mutual_information:.3f} ± {found.errors['mutual_information']:.3f}"
    assert lines[1].split() == ["mutual", "information", *shown.split()]
    assert [line.split("  ")[1] for line in lines[1:6]] == [
        "mutual information",
        "total correlation",
        "dimension-wise KL",
        "rate",
        "rate in closed form",
    ]


def test_it_is_part_of_the_public_face() -> None:
    import polariscope

    assert inspect.unwrap(polariscope.decompose) is inspect.unwrap(decompose)  # it also takes a model


@pytest.mark.parametrize("n_samples", [1, 0, -3])
def test_too_few_samples_are_refused(n_samples: int) -> None:
    with pytest.raises(InputError, match=f"n_samples must be at least 2, or None for all, got {n_samples}"):
        decompose(two_clouds(), n_samples=n_samples)
    with pytest.raises(InputError, match="a decomposition requires at least 2 samples"):
        decompose(drawn(np.zeros((1, 2)), np.ones(2)))


def test_points_are_refused() -> None:
    with pytest.raises(InputError, match="a posterior that is a point has no density"):
        decompose(drawn(np.zeros((5, 2)), np.array([1.0, 0.0])))


def test_a_covariance_that_is_none_is_refused() -> None:
    bad = np.tile([[1.0, 1.0], [1.0, 1.0]], (4, 1, 1))
    rep = Representation(np.zeros((4, 2)), np.ones((4, 2)), np.zeros((4, 2)), covariance=bad)
    with pytest.raises(InputError, match="covariance must be positive definite for every sample"):
        decompose(rep)


@pytest.mark.parametrize("variance", [1e300, 1e-320])
def test_variances_that_overflow_are_refused(variance: float) -> None:
    draw = np.random.default_rng(0)
    mean = draw.normal(size=(200, 3))
    rep = Representation(mean, np.full_like(mean, variance), mean)
    with pytest.raises(InputError, match=r"variance must lie between 1e-100 and 1e\+30, got"):
        decompose(rep)


@pytest.mark.parametrize("factor", [0.0, 0.5, 2.0])
def test_codes_that_are_not_draws_from_the_posterior_have_a_note(factor: float) -> None:
    draw = np.random.default_rng(0)
    mean, variance = draw.normal(size=(500, 3)), np.full((500, 3), 0.1)
    noise = draw.normal(size=mean.shape) * np.sqrt(variance)
    assert not any("draws" in note for note in decompose(Representation(mean, variance, mean + noise)).notes)
    notes = decompose(Representation(mean, variance, mean + factor * noise)).notes
    assert notes[0].startswith("sampled does not look like draws from N(mean, variance)")
