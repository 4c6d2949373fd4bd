"""What every prior promises."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy import stats

from oracles import STANDARD_ERRORS, TinyDataset, assert_is_a_good_member, label, real_line, variants
from polariscope.priors import AbstractPrior, AbstractPriorModule, prior


@pytest.fixture(params=variants(prior), ids=label)
def recipe(request: pytest.FixtureRequest) -> AbstractPrior:
    return request.param


def module(recipe: AbstractPrior, n_latents: int) -> AbstractPriorModule:
    return recipe.build(n_latents, TinyDataset((6,), n_samples=20)).double()


def density_on_the_line(recipe: AbstractPrior) -> tuple[np.ndarray, np.ndarray]:
    """Points and probability masses of a single latent."""
    points, weights = real_line()
    with torch.no_grad():
        log_density = module(recipe, 1).log_density(torch.from_numpy(points[:, None]))[:, 0].numpy()
    return points, np.exp(log_density) * weights


@pytest.mark.parametrize("name", list(prior))
def test_it_is_documented_built_by_name_and_kept_as_json(name: str) -> None:
    assert_is_a_good_member(prior, name)


def test_the_density_of_a_latent_integrates_to_one(recipe: AbstractPrior) -> None:
    _, masses = density_on_the_line(recipe)
    assert masses.sum() == pytest.approx(1, abs=1e-6)


def test_draws_fall_where_the_density_says(recipe: AbstractPrior) -> None:
    points, masses = density_on_the_line(recipe)
    n = 20_000
    draws = module(recipe, 1).sample(n, torch.Generator().manual_seed(0)).detach().numpy()[:, 0]
    cumulative = np.cumsum(masses)
    for share in (0.02, 0.2, 0.5, 0.8, 0.98):
        edge = np.interp(share, cumulative, points)
        expected = np.interp(edge, points, cumulative)
        error = math.sqrt(expected * (1 - expected) / n)  # binomial
        assert abs((draws <= edge).mean() - expected) < STANDARD_ERRORS * error


def test_it_answers_for_each_latent_of_each_sample(recipe: AbstractPrior) -> None:
    made = module(recipe, 4)
    draws = made.sample(7, torch.Generator().manual_seed(0))
    assert made.n_latents == 4
    assert draws.shape == (7, 4)
    assert draws.dtype == torch.float64
    log_density = made.log_density(draws)
    assert log_density.shape == (7, 4)
    assert torch.isfinite(log_density).all()


def test_the_generator_alone_decides_the_draws(recipe: AbstractPrior) -> None:
    made = module(recipe, 3)
    torch.manual_seed(1)
    first = made.sample(5, torch.Generator().manual_seed(7))
    torch.manual_seed(2)
    assert torch.equal(first, made.sample(5, torch.Generator().manual_seed(7)))
    assert not torch.equal(first, made.sample(5, torch.Generator().manual_seed(8)))


def test_a_prior_that_calls_itself_normal_is(recipe: AbstractPrior) -> None:
    made = module(recipe, 3)
    declared = made.normal()
    if declared is None:
        return  # its KL is estimated from log_density, which the tests above pin down
    mean, log_variance = (part.detach().numpy() for part in declared)
    z = np.random.default_rng(0).normal(scale=3, size=(50, 3))
    expected = stats.norm.logpdf(z, mean, np.exp(log_variance / 2))
    np.testing.assert_allclose(made.log_density(torch.from_numpy(z)).detach().numpy(), expected, rtol=1e-10)


def test_it_says_what_a_passive_latent_looks_like(recipe: AbstractPrior) -> None:
    assert len(module(recipe, 2).meaning_of_passive) > 10


def test_its_weights_fit_one_built_without_the_data(recipe: AbstractPrior) -> None:
    trained, loaded = module(recipe, 3), recipe.build(3, None).double()
    loaded.load_state_dict(trained.state_dict())
    z = torch.linspace(-2, 2, 12, dtype=torch.float64).reshape(4, 3)
    torch.testing.assert_close(loaded.log_density(z), trained.log_density(z))
