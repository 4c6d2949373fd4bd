"""All mass on one point."""

from __future__ import annotations

import pytest
import torch

from polariscope.core.errors import InputError
from polariscope.models.posteriors import kl
from polariscope.models.posteriors.deterministic import DeterministicPosterior, PointMass
from polariscope.models.priors.isotropic import IsotropicPrior


def test_every_draw_is_the_mean_whatever_the_generator() -> None:
    q = PointMass(torch.tensor([[0.5, -2.0]]))
    for seed in range(3):
        assert torch.equal(q.sample(torch.Generator().manual_seed(seed)), q.mean)


def test_a_draw_takes_nothing_from_the_generator() -> None:
    generator = torch.Generator().manual_seed(0)
    before = generator.get_state()
    PointMass(torch.zeros(3, 2)).sample(generator)
    assert torch.equal(generator.get_state(), before)


def test_variance_and_covariance_are_zero_and_the_log_variance_minus_infinity() -> None:
    q = PointMass(torch.ones(3, 2))
    assert (q.variance == 0).all()
    assert q.covariance.shape == (3, 2, 2)
    assert (q.covariance == 0).all()
    assert (q.log_variance == -torch.inf).all()


def test_it_has_no_rate() -> None:
    assert not DeterministicPosterior().has_density
    q, prior = PointMass(torch.zeros(3, 2)), IsotropicPrior().build(2, None, 0, torch.Generator())
    with pytest.raises(
        InputError, match="a deterministic encoder has no KL to the prior; use posterior='dia"
    ):
        kl(q, prior, q.mean)


def test_the_head_is_one_affine_map() -> None:
    head = DeterministicPosterior().head(n_features=7, n_latents=3)
    features = torch.randn(5, 7, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(head(features).mean, features @ head.mean.weight.T + head.mean.bias)
    assert sum(p.numel() for p in head.parameters()) == 7 * 3 + 3
