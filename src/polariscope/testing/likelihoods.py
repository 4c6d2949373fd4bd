"""Contract of every likelihood."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from polariscope.models.likelihoods import AbstractLikelihood, likelihood
from polariscope.testing.contract import AbstractContract, each
from polariscope.testing.members import assert_is_a_good_member, assert_mean_is, label, real_line, variants

N_SAMPLES = 20_000

SHAPES = [(4,), (2, 2, 3)]


def raw_output(recipe: AbstractLikelihood, shape: tuple[int, ...], n_samples: int) -> Tensor:
    """Return the same raw output for every sample."""
    row = torch.randn(
        (1, recipe.n_parameters * shape[0], *shape[1:]),
        generator=torch.Generator().manual_seed(0),
        dtype=torch.float64,
    )
    return row.repeat(n_samples, *(1 for _ in shape))


def recipes(contract: AbstractContract) -> list[AbstractLikelihood]:
    """Return every choice of every option of the members under test."""
    return variants(likelihood, contract.names)


class LikelihoodContract(AbstractContract):
    """Contract of every likelihood."""

    def test_it_is_documented_built_by_name_and_kept_as_json(self, name: str) -> None:
        assert_is_a_good_member(likelihood, name)

    @each("recipe", recipes, ids=label)
    @pytest.mark.parametrize("shape", SHAPES)
    def test_draws_have_the_mean_it_shows(self, recipe: AbstractLikelihood, shape: tuple[int, ...]) -> None:
        p = recipe.head(shape).double()(raw_output(recipe, shape, N_SAMPLES))
        draws = p.sample(torch.Generator().manual_seed(1)).detach()
        assert draws.shape == p.mean.shape == (N_SAMPLES, *shape)
        assert_mean_is(draws.numpy().reshape(N_SAMPLES, -1), p.mean[0].detach().numpy().ravel())
        if recipe.needs_unit_interval:
            assert draws.min() >= 0
            assert draws.max() <= 1

    @each("recipe", recipes, ids=label)
    @pytest.mark.parametrize("shape", SHAPES)
    def test_the_density_is_that_of_the_draws(
        self, recipe: AbstractLikelihood, shape: tuple[int, ...]
    ) -> None:
        # The expectation of the score ∇ log p vanishes if and only if draws and density belong together.
        raw = raw_output(recipe, shape, N_SAMPLES).requires_grad_()
        p = recipe.head(shape).double()(raw).like(torch.full((N_SAMPLES, *shape), 3.0, dtype=torch.float64))
        log_density = p.log_density(p.sample(torch.Generator().manual_seed(1)).detach())
        assert log_density.shape == (N_SAMPLES,)
        (score,) = torch.autograd.grad(log_density.sum(), raw)
        assert_mean_is(score.numpy().reshape(N_SAMPLES, -1), 0.0)

    @each("recipe", recipes, ids=label)
    def test_the_density_of_one_value_sums_or_integrates_to_one(self, recipe: AbstractLikelihood) -> None:
        def density(points: np.ndarray) -> np.ndarray:
            p = recipe.head((1,)).double()(raw_output(recipe, (1,), len(points)))
            p = p.like(
                torch.full((len(points), 1), 5.0, dtype=torch.float64)
            )  # the size of a sample is fixed
            return np.exp(p.log_density(torch.from_numpy(points[:, None])).detach().numpy())

        if recipe.needs_unit_interval:
            grid = np.linspace(0, 1, 2001)
            sums = density(np.array([0.0, 1.0])).sum(), np.trapezoid(density(grid), grid)
            assert min(abs(total - 1) for total in sums) < 1e-6, (
                "neither a density of pixels 0 and 1 nor of grey values"
            )
        elif recipe.needs_counts:
            assert density(np.arange(400.0)).sum() == pytest.approx(1, abs=1e-12)
        else:
            points, weights = real_line()
            assert (density(points) * weights).sum() == pytest.approx(1, abs=1e-6)

    @each("recipe", recipes, ids=label)
    def test_values_are_summed_so_twice_the_values_is_twice_the_log_density(
        self, recipe: AbstractLikelihood
    ) -> None:
        raw = raw_output(recipe, (2, 2, 3), 3)
        x = torch.rand(3, 2, 2, 3, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
        once = recipe.head((2, 2, 3)).double()(raw).log_density(x)
        twice = (
            recipe.head((2, 2, 6))
            .double()(torch.cat([raw, raw], dim=3))
            .log_density(torch.cat([x, x], dim=3))
        )
        torch.testing.assert_close(twice, 2 * once)

    @each("recipe", recipes, ids=label)
    def test_the_generator_alone_decides_the_draws(self, recipe: AbstractLikelihood) -> None:
        p = recipe.head((50,)).double()(raw_output(recipe, (50,), 4))
        torch.manual_seed(1)
        first = p.sample(torch.Generator().manual_seed(7))
        torch.manual_seed(2)
        assert torch.equal(first, p.sample(torch.Generator().manual_seed(7)))
        assert not torch.equal(first, p.sample(torch.Generator().manual_seed(8)))

    @each("recipe", recipes, ids=label)
    def test_the_density_of_an_observation_is_that_of_a_sample_like_it(
        self, recipe: AbstractLikelihood
    ) -> None:
        p = recipe.head((4,)).double()(raw_output(recipe, (4,), 3))
        x = torch.tensor([[0, 1, 0, 1], [1, 1, 1, 1], [0, 0, 0, 0]], dtype=torch.float64)
        torch.testing.assert_close(p.log_density(x), p.like(x).log_density(x))
        assert p.like(x).mean.shape == x.shape
