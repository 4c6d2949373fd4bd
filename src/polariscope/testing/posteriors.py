"""Contract of every posterior."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from polariscope.core.errors import InputError
from polariscope.models.nets import initialise
from polariscope.models.posteriors import AbstractPosterior, AbstractPosteriorDistribution, posterior
from polariscope.testing.contract import AbstractContract, each
from polariscope.testing.members import (
    assert_is_a_good_member,
    assert_mean_is,
    directional_derivatives,
    label,
    variants,
)

N_SAMPLES = 20_000

PRIOR = (torch.tensor([0.3, 0.0, -1.0]).double(), torch.tensor([0.5, 0.0, -0.7]).double())


def made(recipe: AbstractPosterior) -> nn.Module:
    """Return the head with no weight at 0, since a head can start from a special case of itself."""
    head = recipe.head(n_features=4, n_latents=3)
    draw = torch.Generator().manual_seed(0)
    initialise(head, "torch", draw)
    with torch.no_grad():
        for parameter in head.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=draw), alpha=0.2)
    return head.double()


def features(n_samples: int, seed: int = 0) -> Tensor:
    """Return the same features for every sample, so all draws come from one distribution."""
    row = torch.randn(1, 4, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return row.repeat(n_samples, 1)


def draw(head: nn.Module, n_samples: int = N_SAMPLES) -> tuple[AbstractPosteriorDistribution, Tensor]:
    q = head(features(n_samples))
    return q, q.sample(torch.Generator().manual_seed(1)).detach()


def recipes(contract: AbstractContract) -> list[AbstractPosterior]:
    """Return every choice of every option of the members under test."""
    return variants(posterior, contract.names)


def with_density(contract: AbstractContract) -> list[AbstractPosterior]:
    """Return the recipes that have a density."""
    return [recipe for recipe in recipes(contract) if recipe.has_density]


def without_density(contract: AbstractContract) -> list[AbstractPosterior]:
    """Return the recipes of deterministic encoders."""
    return [recipe for recipe in recipes(contract) if not recipe.has_density]


class PosteriorContract(AbstractContract):
    """Contract of every posterior."""

    def test_it_is_documented_built_by_name_and_kept_as_json(self, name: str) -> None:
        assert_is_a_good_member(posterior, name)

    @each("recipe", recipes, ids=label)
    def test_draws_have_the_mean_and_covariance_it_states(self, recipe: AbstractPosterior) -> None:
        any_head = made(recipe)
        q, z = draw(any_head)
        assert z.shape == q.mean.shape == q.log_variance.shape == (N_SAMPLES, 3)
        mean, covariance = q.mean[0].detach().numpy(), q.covariance[0].detach().numpy()
        deviations = z.numpy() - mean
        assert_mean_is(deviations, 0.0)
        products = deviations[:, :, None] * deviations[:, None, :]
        assert_mean_is(products.reshape(-1, 9), covariance.ravel())

    @each("recipe", recipes, ids=label)
    def test_the_variance_is_the_exponential_of_the_log_variance_and_the_diagonal_of_the_covariance(
        self, recipe: AbstractPosterior
    ) -> None:
        any_head = made(recipe)
        q, _ = draw(any_head, 5)
        torch.testing.assert_close(q.variance, torch.exp(q.log_variance))
        assert q.covariance.shape == (5, 3, 3)
        torch.testing.assert_close(q.covariance.diagonal(dim1=1, dim2=2), q.variance)

    @each("recipe", recipes, ids=label)
    def test_it_says_whether_its_latents_are_independent(self, recipe: AbstractPosterior) -> None:
        q, _ = draw(made(recipe), 5)
        off_diagonal = q.covariance - torch.diag_embed(q.variance)
        assert bool((off_diagonal.abs() < 1e-12).all()) == recipe.is_diagonal

    @each("recipe", with_density, ids=label)
    def test_the_log_determinant_is_that_of_the_covariance(self, recipe: AbstractPosterior) -> None:
        head = made(recipe)
        inputs = torch.randn(6, 4, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
        q = head(inputs)
        assert q.log_determinant.shape == (6,)
        torch.testing.assert_close(q.log_determinant, torch.logdet(q.covariance))

    @each("recipe", without_density, ids=label)
    def test_without_a_density_there_is_no_entropy_and_no_kl_and_it_says_so(
        self, recipe: AbstractPosterior
    ) -> None:
        point_head = made(recipe)
        q, z = draw(point_head, 2)
        for compute in (lambda: q.log_density(z), lambda: q.kl_to_normal(*PRIOR), lambda: q.log_determinant):
            with pytest.raises(
                InputError, match=r"a deterministic encoder has no .*; use posterior='diagonal'"
            ):
                compute()

    @each("recipe", with_density, ids=label)
    def test_the_density_is_that_of_the_draws(self, recipe: AbstractPosterior) -> None:
        head = made(recipe)
        # The expectation of the score ∇ log q vanishes if and only if draws and density belong together.
        inputs = features(N_SAMPLES).requires_grad_()
        q = head(inputs)
        z = q.sample(torch.Generator().manual_seed(1)).detach()
        log_density = q.log_density(z)
        assert log_density.shape == (N_SAMPLES, 3)
        (score,) = torch.autograd.grad(log_density.sum(), inputs)
        assert_mean_is(score.numpy(), 0.0)

    @each("recipe", with_density, ids=label)
    def test_the_density_integrates_to_one(self, recipe: AbstractPosterior) -> None:
        head = made(recipe)
        # E_q[N(z; m, S) / q(z)] = 1 for any normal narrower than q, whose weights are bounded.
        q, z = draw(head)
        log_q = q.log_density(z).sum(1).detach()
        narrow = torch.distributions.Normal(q.mean.detach(), 0.5 * q.variance.detach().sqrt())
        weights = torch.exp(narrow.log_prob(z).sum(1) - log_q)
        assert_mean_is(weights.numpy(), 1.0)

    @each("recipe", with_density, ids=label)
    def test_the_closed_form_kl_is_its_definition_averaged_over_draws(
        self, recipe: AbstractPosterior
    ) -> None:
        head = made(recipe)
        q, z = draw(head)
        log_prior = torch.distributions.Normal(PRIOR[0], (PRIOR[1] / 2).exp()).log_prob(z)
        estimate = (q.log_density(z) - log_prior).sum(1).detach().numpy()
        exact = q.kl_to_normal(*PRIOR)
        assert exact.shape == (N_SAMPLES, 3)
        assert_mean_is(estimate, float(exact[0].sum().detach()))

    @each("recipe", with_density, ids=label)
    def test_the_kl_is_never_negative(self, recipe: AbstractPosterior) -> None:
        head = made(recipe)
        inputs = torch.randn(200, 4, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
        assert (head(inputs).kl_to_normal(*PRIOR).sum(1) >= 0).all()

    @each("recipe", recipes, ids=label)
    def test_draws_are_differentiable_and_the_generator_alone_decides_them(
        self, recipe: AbstractPosterior
    ) -> None:
        head = made(recipe)
        inputs = features(4)

        def square() -> Tensor:
            return (head(inputs).sample(torch.Generator().manual_seed(5)) ** 2).sum()

        torch.manual_seed(1)
        first = square()
        torch.manual_seed(2)
        assert torch.equal(first, square())
        analytic, difference = directional_derivatives(square, list(head.parameters()), seed=0)
        assert analytic == pytest.approx(difference, rel=1e-6, abs=1e-6)
        assert analytic != 0

    @each("recipe", with_density, ids=label)
    def test_samples_do_not_see_each_other(self, recipe: AbstractPosterior) -> None:
        head = made(recipe)
        inputs = torch.from_numpy(np.random.default_rng(0).normal(size=(3, 4)))
        together = head(inputs).kl_to_normal(*PRIOR)
        torch.testing.assert_close(
            together, torch.cat([head(row[None]).kl_to_normal(*PRIOR) for row in inputs])
        )

    @each("recipe", recipes, ids=label)
    def test_a_single_latent_is_enough(self, recipe: AbstractPosterior) -> None:
        head = recipe.head(n_features=4, n_latents=1)
        q = head(torch.zeros(3, 4))
        assert q.sample(torch.Generator()).shape == (3, 1)
        q.mean.sum().backward()
