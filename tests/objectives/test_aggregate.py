"""Estimators of log q(z): averaged over every batch of a tiny dataset they are what their papers say."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch
from scipy import stats

from oracles import STANDARD_ERRORS, normal_kl_by_quadrature
from polariscope.models.posteriors.diagonal import DiagonalGaussian
from polariscope.models.posteriors.full import FullGaussian
from polariscope.objectives.support.aggregate import (
    ESTIMATORS,
    Estimator,
    aggregate_log_density,
    pairwise_log_density,
    weight_matrix,
)

N, D = 5, 2
UNBIASED = ["stratified", "symmetric"]


def encodings(n: int = N, n_latents: int = D, seed: int = 0) -> tuple[DiagonalGaussian, torch.Tensor]:
    """Posteriors that overlap in part, and one draw of each."""
    draw = np.random.default_rng(seed)
    mean, log_variance = draw.normal(size=(n, n_latents)), draw.uniform(-2, 0.5, size=(n, n_latents))
    posterior = DiagonalGaussian(torch.from_numpy(mean), torch.from_numpy(log_variance))
    noise = torch.from_numpy(draw.normal(size=(n, n_latents)))
    return posterior, posterior.mean + posterior.variance.sqrt() * noise


def exact_densities(posterior: DiagonalGaussian, z: torch.Tensor) -> tuple[np.ndarray, np.ndarray]:
    """q(z_i|x_k) and q(z_ij|x_k), by SciPy."""
    mean, std = posterior.mean.numpy(), posterior.variance.sqrt().numpy()
    marginals = stats.norm.pdf(z.numpy()[:, None], mean, std)
    return marginals.prod(2), marginals


def average_density(
    posterior: DiagonalGaussian, z: torch.Tensor, n_samples: int, estimator: Estimator
) -> tuple[np.ndarray, np.ndarray]:
    """q̂(z_i) and q̂(z_ij) averaged over every ordered batch that holds sample i."""
    n, n_latents = z.shape
    joint, marginals, counts = np.zeros(n), np.zeros((n, n_latents)), np.zeros(n)
    for batch in itertools.permutations(range(n), n_samples):
        rows = list(batch)
        part = DiagonalGaussian(posterior.mean[rows], posterior.log_variance[rows])
        q = aggregate_log_density(part, z[rows], n, estimator)
        joint[rows] += q.joint.exp().numpy()
        marginals[rows] += q.marginals.exp().numpy()
        counts[rows] += 1
    return joint / counts, marginals / counts[:, None]


@pytest.mark.parametrize("n_samples", [2, 3, 4, 5])
@pytest.mark.parametrize("estimator", UNBIASED)
def test_unbiased_estimators_average_over_every_batch_to_the_aggregate_posterior(
    estimator: Estimator, n_samples: int
) -> None:
    posterior, z = encodings()
    joint, marginals = average_density(posterior, z, n_samples, estimator)
    each, each_marginal = exact_densities(posterior, z)
    np.testing.assert_allclose(joint, each.mean(1), rtol=1e-12)
    np.testing.assert_allclose(marginals, each_marginal.mean(1), rtol=1e-12)


@pytest.mark.parametrize("n_samples", [2, 3, 4, 5])
@pytest.mark.parametrize(("estimator", "scale"), [("weighted", 1 / N), ("batch", 1.0), ("exact", 1.0)])
def test_equal_weights_average_to_a_mixture_that_overrates_the_own_sample(
    estimator: Estimator, scale: float, n_samples: int
) -> None:
    posterior, z = encodings()
    each, each_marginal = exact_densities(posterior, z)
    own = np.arange(N)

    def expected(densities: np.ndarray) -> np.ndarray:
        itself = densities[own, own]
        others = (densities.sum(1) - itself) / (N - 1)
        return scale * (itself + (n_samples - 1) * others) / n_samples

    joint, marginals = average_density(posterior, z, n_samples, estimator)
    np.testing.assert_allclose(joint, expected(each), rtol=1e-12)
    np.testing.assert_allclose(marginals, expected(each_marginal), rtol=1e-12)


@pytest.mark.parametrize("estimator", ["symmetric", "batch", "exact"])
def test_a_batch_of_the_whole_data_gives_the_aggregate_posterior_itself(estimator: Estimator) -> None:
    posterior, z = encodings()
    q = aggregate_log_density(posterior, z, N, estimator)
    each, each_marginal = exact_densities(posterior, z)
    np.testing.assert_allclose(q.joint, np.log(each.mean(1)), rtol=0, atol=1e-12)
    np.testing.assert_allclose(q.marginals, np.log(each_marginal.mean(1)), rtol=0, atol=1e-12)


def test_the_stratified_estimate_is_not_exact_on_a_single_batch_of_the_whole_data() -> None:
    # One sample has weight 1/(N(N − 1)) and N − 2 have 1/(N − 1): only the average over orders is q(z).
    posterior, z = encodings()
    each, _ = exact_densities(posterior, z)
    q = aggregate_log_density(posterior, z, N, "stratified")
    assert np.abs(q.joint.numpy() - np.log(each.mean(1))).max() > 0.01


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize(("n_samples", "n_data"), [(2, 5), (3, 5), (64, 1000), (64, 64), (64, 10), (1, 5)])
def test_a_row_of_weights_sums_to_one_and_to_one_over_n_for_weighted_sampling(
    estimator: Estimator, n_samples: int, n_data: int
) -> None:
    weights = weight_matrix(estimator, n_samples, n_data)
    assert (weights > 0).all()
    expected = 1 / max(n_data, n_samples) if estimator == "weighted" else 1.0
    np.testing.assert_allclose(weights.sum(1), expected, rtol=1e-12)
    np.testing.assert_allclose(weights.sum(0), expected, rtol=1e-12)


def test_the_own_sample_is_on_the_diagonal_of_the_stratified_weights() -> None:
    # N = 5, B = 3: own 1/5, one other 3/10, the rest 1/2.
    expected = [[0.2, 0.3, 0.5], [0.5, 0.2, 0.3], [0.3, 0.5, 0.2]]
    np.testing.assert_allclose(weight_matrix("stratified", 3, 5), expected, rtol=1e-15)
    expected = [[0.2, 0.4, 0.4], [0.4, 0.2, 0.4], [0.4, 0.4, 0.2]]
    np.testing.assert_allclose(weight_matrix("symmetric", 3, 5), expected, rtol=1e-15)


def test_an_unbiased_density_has_a_logarithm_that_is_too_small_until_the_batch_is_the_data() -> None:
    posterior, z = encodings()
    exact = np.log(exact_densities(posterior, z)[0].mean(1))
    bias = []
    for n_samples in (2, 3, 4, 5):
        logs = np.zeros(N)
        batches = list(itertools.permutations(range(N), n_samples))
        for batch in batches:
            rows = list(batch)
            part = DiagonalGaussian(posterior.mean[rows], posterior.log_variance[rows])
            logs[rows] += aggregate_log_density(part, z[rows], N, "symmetric").joint.numpy()
        bias.append(logs / (len(batches) * n_samples / N) - exact)
    assert (np.diff(bias, axis=0) > 0).all()
    assert (bias[0] < -1e-4).all()
    np.testing.assert_allclose(bias[-1], 0, atol=1e-12)


@pytest.mark.parametrize("estimator", UNBIASED)
def test_t9_without_overlap_the_entropy_is_log_n_and_that_of_the_posteriors(estimator: Estimator) -> None:
    n_data, n_samples, n_latents = 1_000_000, 16, 4
    # A thousand standard deviations apart in every latent: densities of others underflow to 0.
    mean = 1000.0 * torch.arange(n_samples, dtype=torch.float64)[:, None].repeat(1, n_latents)
    log_variance = torch.linspace(-1, 0, n_samples * n_latents, dtype=torch.float64).reshape(n_samples, -1)
    posterior = DiagonalGaussian(mean, log_variance)
    entropy = 0.5 * (math.log(2 * math.pi * math.e) + log_variance).sum(1)
    rate = posterior.kl_to_normal(torch.zeros(n_latents).double(), torch.zeros(n_latents).double()).sum(1)
    estimates, divergences = [], []
    for sign in (1.0, -1.0):  # ε = ±1 has mean 0 and variance 1, so averages of squares are exact
        z = mean + sign * torch.exp(0.5 * log_variance)
        q = aggregate_log_density(posterior, z, n_data, estimator)
        log_prior = torch.distributions.Normal(0.0, 1.0).log_prob(z).sum(1)
        estimates.append(-q.joint)
        divergences.append(q.joint - log_prior)
    log_n = math.log(n_data)
    np.testing.assert_allclose(torch.stack(estimates).mean(0), log_n + entropy, rtol=1e-12)
    np.testing.assert_allclose(torch.stack(divergences).mean(0), rate - log_n, rtol=1e-9)


def test_t9_a_divergence_estimate_without_overlap_can_be_negative() -> None:
    n_samples = 8
    mean = torch.linspace(-2, 2, n_samples, dtype=torch.float64)[:, None]
    posterior = DiagonalGaussian(mean, torch.full_like(mean, 2 * math.log(1e-3)))
    log_prior = torch.distributions.Normal(0.0, 1.0).log_prob(mean).sum(1)
    q = aggregate_log_density(posterior, mean, 10**6, "symmetric")
    assert float((q.joint - log_prior).mean()) < -1


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_a_single_latent_has_no_total_correlation(estimator: Estimator) -> None:
    posterior, z = encodings(n=6, n_latents=1)
    assert (aggregate_log_density(posterior, z, 20, estimator).total_correlation == 0).all()


def product_grid() -> DiagonalGaussian:
    """Encodings on a grid: each latent takes its own values with its own variances, so q(z) is a product."""
    values = torch.cartesian_prod(torch.tensor([-1.0, 0.3, 2.0]), torch.tensor([0.0, 1.5])).double()
    return DiagonalGaussian(values, torch.stack([-1 + 0.2 * values[:, 0], -2 - 0.3 * values[:, 1]], dim=1))


def identical_encodings() -> DiagonalGaussian:
    """All the same Gaussian, so that q(z) is that Gaussian."""
    return DiagonalGaussian(
        torch.tensor([[0.5, -1.0]]).double().repeat(6, 1), torch.full((6, 2), -0.7).double()
    )


@pytest.mark.parametrize("make", [product_grid, identical_encodings])
@pytest.mark.parametrize("estimator", ["exact", "symmetric"])
def test_a_factorised_aggregate_posterior_has_no_total_correlation_at_any_draw(make, estimator) -> None:
    posterior = make()
    for seed in range(5):
        z = posterior.sample(torch.Generator().manual_seed(seed))
        q = aggregate_log_density(posterior, z, 6, estimator)
        np.testing.assert_allclose(q.total_correlation, 0, atol=1e-13)


def test_t9_small_batches_of_independent_latents_give_a_negative_total_correlation() -> None:
    """Means N(0, I) and variances ¼: with so much data q(z) is N(0, 1¼ I), whose total correlation is 0.

    In ten latents encodings hardly overlap, so the joint density is underrated; each marginal is estimated well.
    """
    draw = torch.Generator().manual_seed(0)
    estimates, errors = [], []
    for _ in range(20):
        mean = torch.randn(64, 10, generator=draw, dtype=torch.float64)
        posterior = DiagonalGaussian(mean, torch.full_like(mean, math.log(0.25)))
        z = posterior.sample(draw)
        q = aggregate_log_density(posterior, z, 10**6, "symmetric")
        estimates.append(float(q.total_correlation.mean()))
        errors.append((q.marginals.numpy() - stats.norm.logpdf(z, scale=math.sqrt(1.25))).mean())
    assert np.mean(estimates) + STANDARD_ERRORS * np.std(estimates, ddof=1) / math.sqrt(20) < -2
    assert abs(np.mean(errors)) < 0.05


def test_weighted_sampling_differs_from_no_weights_by_a_constant_and_not_in_gradient() -> None:
    n_data, n_samples, n_latents = 1000, 7, 4
    posterior, z = encodings(n_samples, n_latents)
    mean = posterior.mean.requires_grad_()
    joint, marginals = pairwise_log_density(DiagonalGaussian(mean, posterior.log_variance), z)
    free = torch.logsumexp(joint, 1) - torch.logsumexp(marginals, 1).sum(1)
    values = {
        name: aggregate_log_density(
            DiagonalGaussian(mean, posterior.log_variance), z, n_data, name
        ).total_correlation
        for name in ("weighted", "batch")
    }
    constant = (n_latents - 1) * math.log(n_data * n_samples)
    torch.testing.assert_close(values["weighted"], free + constant, rtol=0, atol=1e-11)
    gradient = torch.autograd.grad(free.mean(), mean)[0]
    for value in values.values():
        torch.testing.assert_close(
            torch.autograd.grad(value.mean(), mean)[0], gradient, rtol=1e-12, atol=1e-14
        )


def test_the_three_parts_of_the_rate_are_those_found_by_quadrature_and_add_up_to_it() -> None:
    posterior, _ = encodings(n=3, seed=3)
    # The trapezoidal rule over the noise of every encoding; each batch repeats the data, which leaves their mixture
    # what it is. With a normal weight its error falls like exp(−2π·width/step): below 1e-9 here.
    nodes = np.linspace(-8, 8, 81)
    noise = torch.from_numpy(np.stack(np.meshgrid(nodes, nodes), axis=-1))
    information, correlation, dimension_wise = 0.0, 0.0, np.zeros(2)
    for row in noise:
        repeated = DiagonalGaussian(
            *(p.repeat_interleave(81, 0) for p in (posterior.mean, posterior.log_variance))
        )
        z = repeated.mean + torch.exp(0.5 * repeated.log_variance) * row.repeat(3, 1)
        weight = torch.from_numpy(stats.norm.pdf(row).prod(1) * (nodes[1] - nodes[0]) ** 2 / 3).repeat(3)
        q = aggregate_log_density(repeated, z, 243, "exact")
        log_prior = torch.distributions.Normal(0.0, 1.0).log_prob(z)
        information += float(weight @ (repeated.log_density(z).sum(1) - q.joint))
        correlation += float(weight @ q.total_correlation)
        dimension_wise += (weight[:, None] * (q.marginals - log_prior)).sum(0).numpy()
    rate = [
        normal_kl_by_quadrature(float(m), float(v), 0.0, 1.0)
        for m, v in zip(posterior.mean.flatten(), posterior.variance.flatten(), strict=True)
    ]
    assert min(information, correlation, *dimension_wise) > 0.01
    assert information + correlation + dimension_wise.sum() == pytest.approx(sum(rate) / 3, rel=1e-10)

    # Independently, on a grid of points, where both densities are SciPy's.
    points = np.linspace(-9, 9, 1201)
    single = stats.norm.pdf(points[:, None, None], posterior.mean.numpy(), posterior.variance.sqrt().numpy())
    marginal = single.mean(1)
    joint = np.einsum("ak,bk->ab", single[:, :, 0], single[:, :, 1]) / 3
    step = points[1] - points[0]
    for j in range(2):
        expected = (marginal[:, j] * np.log(marginal[:, j] / stats.norm.pdf(points))).sum() * step
        assert dimension_wise[j] == pytest.approx(expected, abs=1e-8)
    product = np.outer(marginal[:, 0], marginal[:, 1])
    ratio = np.log(np.maximum(joint, 1e-300) / np.maximum(product, 1e-300))
    assert correlation == pytest.approx((joint * ratio).sum() * step**2, abs=1e-8)


def test_pairwise_densities_are_those_of_scipy_for_diagonal_and_full_covariances() -> None:
    posterior, z = encodings(4, 3)
    draw = np.random.default_rng(1)
    below = torch.from_numpy(np.tril(draw.normal(size=(4, 3, 3)), -1))
    full = FullGaussian(posterior.mean, posterior.log_variance, below)
    joint, marginals = pairwise_log_density(full, z)
    for i, k in itertools.product(range(4), range(4)):
        mean, covariance = full.mean[k].numpy(), full.covariance[k].numpy()
        assert float(joint[i, k]) == pytest.approx(stats.multivariate_normal.logpdf(z[i], mean, covariance))
        expected = stats.norm.logpdf(z[i], mean, np.sqrt(np.diag(covariance)))
        np.testing.assert_allclose(marginals[i, k], expected, rtol=1e-12)
    uncorrelated = FullGaussian(posterior.mean, posterior.log_variance, torch.zeros_like(below))
    for ours, theirs in zip(
        pairwise_log_density(uncorrelated, z), pairwise_log_density(posterior, z), strict=True
    ):
        torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-12)
    own = torch.arange(4)
    for one in (posterior, full):
        torch.testing.assert_close(pairwise_log_density(one, z)[0][own, own], one.log_density(z).sum(1))


def test_a_well_known_latent_keeps_its_digits_in_single_precision() -> None:
    # μ = 3, σ = 10⁻³: expanding (z − μ)²/σ² gives differences of numbers near 10⁷, of which float32 keeps units.
    mean = torch.tensor([[3.0], [3.001]])
    posterior = DiagonalGaussian(mean, torch.full((2, 1), 2 * math.log(1e-3)))
    joint, _ = pairwise_log_density(posterior, mean)
    exact, _ = pairwise_log_density(
        DiagonalGaussian(mean.double(), posterior.log_variance.double()), mean.double()
    )
    np.testing.assert_allclose(joint, exact, atol=1e-5)


def test_far_encodings_give_finite_densities_and_gradients() -> None:
    mean = torch.tensor([[0.0, 0.0], [1e4, 1e4]], requires_grad=True)
    posterior = DiagonalGaussian(mean, torch.full((2, 2), -10.0))
    z = posterior.sample(torch.Generator().manual_seed(0))
    for name in ESTIMATORS:
        value = aggregate_log_density(posterior, z, 100, name).total_correlation.sum()
        assert torch.isfinite(value)
        assert torch.isfinite(torch.autograd.grad(value, mean, retain_graph=True)[0]).all()
