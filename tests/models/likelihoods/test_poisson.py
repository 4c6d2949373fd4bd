"""Poisson likelihood of counts."""

from __future__ import annotations

import math

import numpy as np
import torch
from scipy import stats

from polariscope.data.own.arrays import from_arrays
from polariscope.models.likelihoods.poisson import PoissonLikelihood

X = torch.tensor([[3, 0, 7, 2], [0, 0, 0, 0], [1, 1, 0, 50]], dtype=torch.float64)
LOGITS = torch.tensor([[0.3, -1.0, 2.0, 0.0]], dtype=torch.float64).repeat(3, 1)


def test_the_log_density_is_that_of_counts_with_mean_total_times_proportion() -> None:
    found = PoissonLikelihood().head((4,)).double()(LOGITS).log_density(X)
    proportions = np.exp(LOGITS.numpy()) / np.exp(LOGITS.numpy()).sum(1, keepdims=True)
    sizes = np.array([[12.0], [1.0], [52.0]])  # an empty row has size 1
    np.testing.assert_allclose(found, stats.poisson.logpmf(X.numpy(), sizes * proportions).sum(1), rtol=1e-12)


def test_without_sizes_the_decoder_gives_rates() -> None:
    found = PoissonLikelihood("none").head((4,)).double()(LOGITS).log_density(X)
    np.testing.assert_allclose(
        found, stats.poisson.logpmf(X.numpy(), np.exp(LOGITS.numpy())).sum(1), rtol=1e-12
    )


def test_with_sizes_it_is_multinomial_but_for_the_density_of_the_total() -> None:
    # Poisson counts given their total are multinomial, and a total of mean ℓ that equals ℓ has e^{−ℓ} ℓ^ℓ / ℓ!.
    x = X[[0, 2]]
    found = PoissonLikelihood().head((4,)).double()(LOGITS[:2]).log_density(x).numpy()
    proportions = torch.softmax(LOGITS[0], 0).numpy()
    totals = x.sum(1).numpy()
    expected = stats.multinomial.logpmf(x.numpy(), totals.astype(int), proportions)
    np.testing.assert_allclose(found, expected + stats.poisson.logpmf(totals, totals), rtol=1e-10)


def test_the_gradient_vanishes_where_proportions_are_those_of_the_counts() -> None:
    x = X[:1] + 1
    logits = torch.log(x / x.sum()).requires_grad_()
    PoissonLikelihood().head((4,)).double()(logits).log_density(x).sum().backward()
    torch.testing.assert_close(logits.grad, torch.zeros_like(x), rtol=0, atol=1e-14)


def test_counting_c_times_as_much_leaves_the_best_proportions_and_multiplies_the_differences() -> None:
    # log p = Σ x log ρ + what does not depend on ρ, so a gain in log-density grows with the counts.
    head = PoissonLikelihood().head((4,)).double()

    def gain(x: torch.Tensor) -> torch.Tensor:
        return head(LOGITS[:1]).log_density(x) - head(torch.zeros_like(LOGITS[:1])).log_density(x)

    torch.testing.assert_close(gain(10 * X[:1]), 10 * gain(X[:1]))


def test_the_mean_shown_has_the_median_total_and_a_reconstruction_that_of_its_observation() -> None:
    data = from_arrays(np.array([[1, 1], [4, 4], [10, 90]]))
    p = PoissonLikelihood().head((2,), data)(torch.zeros(1, 2))
    torch.testing.assert_close(p.mean, torch.tensor([[4.0, 4.0]]))
    torch.testing.assert_close(p.like(torch.tensor([[10.0, 90.0]])).mean, torch.tensor([[50.0, 50.0]]))
    rates = PoissonLikelihood("none").head((2,), data)(torch.tensor([[0.0, math.log(2)]]))
    torch.testing.assert_close(rates.mean, torch.tensor([[4.0, 8.0]]))


def test_the_encoder_sees_the_logarithm_of_one_more() -> None:
    likelihood = PoissonLikelihood()
    assert likelihood.needs_counts
    torch.testing.assert_close(
        likelihood.encoder_input(torch.tensor([[0.0, math.e - 1]])), torch.tensor([[0.0, 1.0]])
    )
