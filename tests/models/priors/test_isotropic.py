"""The isotropic normal prior."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy import stats

from oracles import assert_mean_is, random_rotation
from polariscope.core.errors import InputError
from polariscope.models.priors.isotropic import IsotropicPrior

SCALES = [0.1, 1.0, 2.5]


@pytest.mark.parametrize("scale", SCALES)
def test_log_density_is_the_normal_one(scale: float) -> None:
    z = np.random.default_rng(0).normal(scale=2, size=(6, 3))
    found = (
        IsotropicPrior(scale).build(3, None, 0, torch.Generator()).double().log_density(torch.from_numpy(z))
    )
    # The log-variance is made in float32, so (z/s)² is off by 2⁻²⁴ · |2 log s|.
    np.testing.assert_allclose(found.numpy(), stats.norm.logpdf(z, scale=scale), rtol=1e-6)


@pytest.mark.parametrize("scale", SCALES)
def test_draws_have_mean_zero_and_variance_scale_squared_without_correlation(scale: float) -> None:
    draws = (
        IsotropicPrior(scale)
        .build(3, None, 0, torch.Generator())
        .double()
        .sample(20_000, torch.Generator().manual_seed(0))
        .numpy()
    )
    products = draws[:, :, None] * draws[:, None, :]
    assert_mean_is(draws, 0.0)
    assert_mean_is(products.reshape(-1, 9), (scale**2 * np.eye(3)).ravel())


def test_rotating_the_latents_keeps_the_density() -> None:
    z = torch.from_numpy(np.random.default_rng(0).normal(size=(5, 4)))
    prior = IsotropicPrior(0.7).build(4, None, 0, torch.Generator()).double()
    rotated = z @ torch.from_numpy(random_rotation(4, seed=1))
    torch.testing.assert_close(prior.log_density(rotated).sum(1), prior.log_density(z).sum(1))


@pytest.mark.parametrize("scale", SCALES)
def test_it_declares_itself_normal_with_its_own_moments(scale: float) -> None:
    mean, log_variance = IsotropicPrior(scale).build(3, None, 0, torch.Generator()).normal()
    assert mean.tolist() == [0.0, 0.0, 0.0]
    torch.testing.assert_close(log_variance, torch.full((3,), 2 * math.log(scale)))


def test_it_says_what_a_passive_latent_looks_like() -> None:
    assert IsotropicPrior(2.0).build(1, None, 0, torch.Generator()).meaning_of_passive == (
        "its posterior is close to the prior N(0, 4) for every input"
    )


def test_it_has_nothing_to_train_or_to_store() -> None:
    prior = IsotropicPrior().build(3, None, 0, torch.Generator())
    assert not list(prior.parameters())
    assert not prior.state_dict()


@pytest.mark.parametrize("scale", [0.0, -1.0, float("nan"), float("inf")])
def test_a_scale_that_is_none_is_refused(scale: float) -> None:
    with pytest.raises(
        InputError, match=r"scale must be (positive|finite), got .*; 1 is the standard normal"
    ):
        IsotropicPrior(scale)
