"""Bernoulli likelihood of pixels."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from oracles import assert_mean_is
from polariscope.models.likelihoods.bernoulli import BernoulliDistribution, BernoulliLikelihood


def test_log_density_is_minus_the_summed_cross_entropy_of_soft_targets() -> None:
    random = np.random.default_rng(0)
    logits, x = random.normal(scale=3, size=(4, 2, 3, 5)), random.random((4, 2, 3, 5))
    p = 1 / (1 + np.exp(-logits))
    by_hand = (x * np.log(p) + (1 - x) * np.log(1 - p)).sum(axis=(1, 2, 3))
    found = BernoulliDistribution(torch.from_numpy(logits)).log_density(torch.from_numpy(x))
    np.testing.assert_allclose(found.numpy(), by_hand, rtol=1e-12)


@pytest.mark.parametrize("size", [1e2, 1e4, 1e30])
def test_extreme_logits_give_the_limit_and_a_finite_gradient(size: float) -> None:
    # log p(x|ℓ) = −|ℓ|·|x − [ℓ > 0]| − log(1 + e^{−|ℓ|}): right pixels cost nothing, wrong ones |ℓ|.
    logits = torch.tensor([[size], [size], [-size], [-size], [size]], requires_grad=True)
    x = torch.tensor([[1.0], [0.0], [0.0], [1.0], [0.25]])
    found = BernoulliDistribution(logits).log_density(x)
    expected = torch.tensor([0.0, -size, 0.0, -size, -0.75 * size])
    torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-30)
    found.sum().backward()
    # d/dℓ = x − sigmoid(ℓ)
    torch.testing.assert_close(
        logits.grad, torch.tensor([[0.0], [-1.0], [0.0], [1.0], [-0.75]]), rtol=0, atol=1e-30
    )


def test_soft_targets_are_scored_best_by_their_own_value_at_their_entropy() -> None:
    x = torch.tensor([[0.1, 0.5, 0.9]], dtype=torch.float64)
    best = BernoulliDistribution(torch.logit(x)).log_density(x)
    entropy = -(x * x.log() + (1 - x) * (1 - x).log()).sum(1)
    torch.testing.assert_close(best, -entropy)
    assert (BernoulliDistribution(torch.logit(x) + 0.1).log_density(x) < best).all()


def test_draws_are_zeros_and_ones_with_the_given_mean() -> None:
    logits = torch.logit(torch.tensor([[0.02, 0.3, 0.5, 0.9]], dtype=torch.float64)).expand(20_000, 4)
    draws = BernoulliDistribution(logits).sample(torch.Generator().manual_seed(0)).numpy()
    assert set(np.unique(draws)) == {0.0, 1.0}
    assert_mean_is(draws, np.array([0.02, 0.3, 0.5, 0.9]))


def test_it_wants_one_output_per_pixel_in_the_unit_interval() -> None:
    likelihood = BernoulliLikelihood()
    assert likelihood.n_parameters == 1
    assert likelihood.needs_unit_interval
    raw = torch.zeros(2, 1, 4, 4)
    torch.testing.assert_close(likelihood.head()(raw).mean, torch.full((2, 1, 4, 4), 0.5))
