"""Contract of every prior."""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats

from polariscope.analysis.regime.diagnose import diagnose
from polariscope.data.own.arrays import from_arrays
from polariscope.data.rendered.gaussian import GaussianDataset
from polariscope.models.model import Model
from polariscope.models.posteriors import kl
from polariscope.models.posteriors.diagonal import DiagonalGaussian
from polariscope.models.priors import AbstractPrior, AbstractPriorDistribution, AbstractPriorModule, prior
from polariscope.models.priors.mixture import MixturePrior
from polariscope.runs.encode import encode
from polariscope.testing.contract import AbstractContract, each
from polariscope.testing.members import STANDARD_ERRORS, assert_is_a_good_member, label, real_line, variants
from polariscope.training.train import train

N_AUXILIARY = 3
TWENTY_ROWS = np.random.default_rng(0).random((20, 6), dtype=np.float32)


def recipes(contract: AbstractContract) -> list[AbstractPrior]:
    """Return every choice of every option of the members."""
    return variants(prior, contract.names)


def suited(recipe: AbstractPrior, n_latents: int) -> AbstractPrior:
    """Return the recipe for this many latents; layouts of a mixture are for two."""
    if isinstance(recipe, MixturePrior) and n_latents != 2:
        means = np.random.default_rng(0).normal(size=(3, n_latents)).tolist()
        return dataclasses.replace(recipe, means=tuple(map(tuple, means)))
    return recipe


def module(recipe: AbstractPrior, n_latents: int, data: bool = True) -> AbstractPriorModule:
    return (
        suited(recipe, n_latents)
        .build(
            n_latents,
            from_arrays(TWENTY_ROWS) if data else None,
            N_AUXILIARY if recipe.is_conditional else 0,
            torch.Generator().manual_seed(0),
        )
        .double()
    )


def distribution(
    made: AbstractPriorModule, recipe: AbstractPrior, n_samples: int
) -> AbstractPriorDistribution:
    """Return the prior of a batch whose samples all have the same auxiliary values, if it requires any."""
    auxiliary = torch.tensor([[0.5, -1.0, 2.0]], dtype=torch.float64).expand(n_samples, N_AUXILIARY)
    return made.given(auxiliary if recipe.is_conditional else None)


def log_density(recipe: AbstractPrior, z: np.ndarray) -> np.ndarray:
    made = module(recipe, z.shape[1])
    with torch.no_grad():
        return distribution(made, recipe, len(z)).log_density(torch.from_numpy(z)).numpy()


@functools.cache
def collapsed(recipe: AbstractPrior) -> tuple[Model, GaussianDataset, list[dict[str, Any]]]:
    """Return a linear model that learns nothing, with its log.

    With β times the decoder's variance far above those of the data, it keeps no direction. The remaining objective is β
    KL(q ‖ p), and its minimum is the passive shape of the prior.
    """
    data = GaussianDataset(eigenvalues=(0.5, 0.25), n_samples=500)
    lines: list[dict[str, Any]] = []
    model = train(
        data,
        objective="beta",
        beta=4.0,
        net="linear",
        n_latents=2,
        prior=recipe,
        likelihood={"name": "gaussian", "variance": 1.0},
        keep_units=True,
        steps=500,
        learning_rate=0.05,
        schedule="linear",
        batch_size=256,
        log_every=100,
        validate_every=500,
        progress=lambda _, line: lines.append(line) if line else None,
    )
    return model, data, lines


class PriorContract(AbstractContract):
    """Contract of every prior."""

    def test_it_is_documented_built_by_name_and_kept_as_json(self, name: str) -> None:
        assert_is_a_good_member(prior, name)

    @each("recipe", recipes, ids=label)
    def test_the_density_of_a_latent_integrates_to_one(self, recipe: AbstractPrior) -> None:
        points, weights = real_line()
        masses = np.exp(log_density(recipe, points[:, None])[:, 0]) * weights
        assert masses.sum() == pytest.approx(1, abs=1e-6)

    @each("recipe", recipes, ids=label)
    @pytest.mark.parametrize("first", [-1.0, 0.02, 0.7])
    def test_the_second_column_is_a_density_given_the_first_latent(
        self, recipe: AbstractPrior, first: float
    ) -> None:
        points, weights = real_line()
        z = np.stack([np.full_like(points, first), points], axis=1)
        log_densities = log_density(recipe, z)
        assert np.ptp(log_densities[:, 0]) == 0, "the first column must not depend on the second latent"
        assert (np.exp(log_densities[:, 1]) * weights).sum() == pytest.approx(1, abs=1e-6)

    @each("recipe", recipes, ids=label)
    def test_draws_fall_where_the_density_says(self, recipe: AbstractPrior) -> None:
        points, weights = real_line()
        cumulative = np.cumsum(np.exp(log_density(recipe, points[:, None])[:, 0]) * weights)
        n = 20_000
        made = distribution(module(recipe, 1), recipe, n)
        draws = made.sample(n, torch.Generator().manual_seed(0)).detach().numpy()[:, 0]
        for share in (0.02, 0.2, 0.5, 0.8, 0.98):
            edge = np.interp(share, cumulative, points)
            expected = np.interp(edge, points, cumulative)
            error = math.sqrt(expected * (1 - expected) / n)  # binomial
            assert abs((draws <= edge).mean() - expected) < STANDARD_ERRORS * error

    @each("recipe", recipes, ids=label)
    def test_draws_of_two_latents_have_the_joint_density(self, recipe: AbstractPrior) -> None:
        # E_p [q(z)/p(z)] = 1 for any density q; a narrow q near the middle keeps the ratio, and its error, small.
        made = distribution(module(recipe, 2), recipe, 20_000)
        z = made.sample(20_000, torch.Generator().manual_seed(0)).detach()
        q = stats.norm.logpdf(z.numpy(), 0.1, 0.3).sum(1)
        ratio = np.exp(q - made.log_density(z).detach().numpy().sum(1))
        # The ratio is heavy-tailed if p is small inside q, so its error is estimated from the bounded part of it:
        # P_q(ratio ≤ c) = E_p[ratio; ratio ≤ c], with draws of q on the left.
        draws = 0.1 + 0.3 * torch.randn(
            20_000, 2, generator=torch.Generator().manual_seed(1), dtype=torch.float64
        )
        other = stats.norm.logpdf(draws.numpy(), 0.1, 0.3).sum(1) - made.log_density(
            draws
        ).detach().numpy().sum(1)
        bound = float(np.median(np.exp(other)))
        left, right = np.exp(other) <= bound, np.where(ratio <= bound, ratio, 0.0)
        error = math.sqrt(left.var() / len(left) + right.var() / len(right))
        assert abs(left.mean() - right.mean()) < STANDARD_ERRORS * error

    @each("recipe", recipes, ids=label)
    @pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
    def test_it_answers_for_each_latent_of_each_sample_in_its_own_precision(
        self, recipe: AbstractPrior, dtype: torch.dtype
    ) -> None:
        made = module(recipe, 4).to(dtype)
        assert made.n_latents == 4
        auxiliary = torch.randn(7, N_AUXILIARY, generator=torch.Generator().manual_seed(0), dtype=dtype)
        each = made.given(auxiliary if recipe.is_conditional else None)
        draws = each.sample(7, torch.Generator().manual_seed(0))
        log_densities = each.log_density(draws)
        assert draws.shape == log_densities.shape == (7, 4)
        assert draws.dtype == log_densities.dtype == dtype
        assert torch.isfinite(log_densities).all()

    @each("recipe", recipes, ids=label)
    def test_the_gradient_of_the_density_is_finite_even_far_out(self, recipe: AbstractPrior) -> None:
        z = torch.tensor([[0.0, 0.0], [1e-8, -1e-8], [30.0, -200.0]], dtype=torch.float64, requires_grad=True)
        log_p = distribution(module(recipe, 2), recipe, 3).log_density(z)
        (slope,) = torch.autograd.grad(log_p.sum(), z)
        assert torch.isfinite(slope).all()
        assert float(slope[2, 0]) < 0  # far out, every prior pulls back
        assert float(slope[2, 1]) > 0

    @each("recipe", recipes, ids=label)
    def test_the_generator_alone_decides_the_draws(self, recipe: AbstractPrior) -> None:
        made = distribution(module(recipe, 3), recipe, 5)
        torch.manual_seed(1)
        first = made.sample(5, torch.Generator().manual_seed(7))
        torch.manual_seed(2)
        assert torch.equal(first, made.sample(5, torch.Generator().manual_seed(7)))
        assert not torch.equal(first, made.sample(5, torch.Generator().manual_seed(8)))

    @each("recipe", recipes, ids=label)
    def test_a_prior_that_calls_itself_normal_is(self, recipe: AbstractPrior) -> None:
        made = distribution(module(recipe, 3), recipe, 50)
        declared = made.normal()
        if declared is None:
            return  # its KL is estimated from log_density, which the tests above check
        mean, log_variance = (part.detach().numpy() for part in declared)
        z = np.random.default_rng(0).normal(scale=3, size=(50, 3))
        expected = stats.norm.logpdf(z, mean, np.exp(log_variance / 2))
        np.testing.assert_allclose(
            made.log_density(torch.from_numpy(z)).detach().numpy(), expected, rtol=1e-10
        )

    @each("recipe", recipes, ids=label)
    def test_the_estimated_rate_averages_to_the_kl(self, recipe: AbstractPrior) -> None:
        n = 20_000
        q = DiagonalGaussian(
            torch.tensor([[0.4]], dtype=torch.float64).expand(n, 1),
            torch.tensor([[math.log(0.3)]], dtype=torch.float64).expand(n, 1),
        )
        made = distribution(module(recipe, 1), recipe, n)
        rates = kl(q, made, q.sample(torch.Generator().manual_seed(0))).detach().numpy()[:, 0]
        points = 0.4 + math.sqrt(0.3) * np.linspace(-10, 10, 20_001)
        log_q = stats.norm.logpdf(points, 0.4, math.sqrt(0.3))
        log_p = log_density(recipe, points[:, None])[:, 0]
        expected = np.trapezoid(np.exp(log_q) * (log_q - log_p), points)
        error = rates.std() / math.sqrt(n)  # 0 if the KL is exact; then quadrature is correct to 1e-9
        assert abs(rates.mean() - expected) <= STANDARD_ERRORS * error + 1e-8

    @each("recipe", recipes, ids=label)
    def test_it_says_what_a_passive_latent_looks_like(self, recipe: AbstractPrior) -> None:
        made = module(recipe, 2)
        assert made.meaning_of_passive.startswith("its posterior")
        if recipe.is_conditional:
            return  # each sample has its own; see tests/models/priors/test_conditional.py
        mean, variance = made.passive_shape()
        assert mean.shape == variance.shape == (2,)
        assert torch.isfinite(mean).all()
        assert (variance > 0).all()

    @each("recipe", recipes, ids=label)
    def test_a_passive_latent_has_the_gaussian_nearest_to_the_prior(self, recipe: AbstractPrior) -> None:
        if recipe.is_conditional or isinstance(recipe, MixturePrior):
            return  # one for each sample, or one of several: both have separate tests
        mean, variance = (float(part.detach()) for part in module(recipe, 1).passive_shape())
        noise = np.linspace(-12, 12, 200_001)
        masses = stats.norm.pdf(noise) * (noise[1] - noise[0])

        def divergence(mean: float, variance: float) -> float:
            z = mean + math.sqrt(variance) * noise
            log_q = stats.norm.logpdf(z, mean, math.sqrt(variance))
            return float(masses @ (log_q - log_density(recipe, z[:, None])[:, 0]))

        least = divergence(mean, variance)
        scale = math.sqrt(variance)
        for shift, factor in (
            (0.03, 1.0),
            (-0.03, 1.0),
            (0.0, 1.03),
            (0.0, 1 / 1.03),
            (1.0, 1.0),
            (0.0, 9.0),
        ):
            assert divergence(mean + shift * scale, variance * factor) > least + 1e-6, (shift, factor)
        # Stationary, not only lower than its neighbours: the slope is below that of a variance off by 1e-5.
        slope = (divergence(mean, variance * 1.001) - divergence(mean, variance / 1.001)) / (
            2 * math.log(1.001)
        )
        assert abs(slope) < 1e-5

    @each("recipe", recipes, ids=label)
    def test_its_weights_fit_one_built_without_the_data(self, recipe: AbstractPrior) -> None:
        trained, loaded = module(recipe, 3), module(recipe, 3, data=False)
        with torch.no_grad():
            for parameter in trained.parameters():
                parameter.add_(
                    0.1 * torch.arange(parameter.numel(), dtype=torch.float64).reshape(parameter.shape)
                )
        loaded.load_state_dict(trained.state_dict())
        z = torch.linspace(-2, 2, 12, dtype=torch.float64).reshape(4, 3)
        before, after = (distribution(made, recipe, 4).log_density(z) for made in (trained, loaded))
        torch.testing.assert_close(after, before, rtol=1e-12, atol=0)
        assert loaded.meaning_of_passive == trained.meaning_of_passive

    @each("recipe", recipes, ids=label)
    def test_a_model_trains_with_it_and_its_diagnosis_says_what_passive_means(
        self, recipe: AbstractPrior
    ) -> None:
        model, data, lines = collapsed(recipe)
        assert [line["step"] for line in lines] == [100, 200, 300, 400, 500]
        assert all(math.isfinite(value) for line in lines for value in line["terms"].values())
        representation = encode(model, data)
        regime = diagnose(representation)
        assert regime.meaning_of_passive == model.prior.meaning_of_passive
        assert model.prior.meaning_of_passive in str(regime)
        assert representation.prior_variance is not None
        assert representation.prior_variance.shape == ((500, 2) if recipe.is_conditional else (2,))

    @each("recipe", recipes, ids=label)
    def test_told_nothing_every_latent_becomes_passive(self, recipe: AbstractPrior) -> None:
        model, data, lines = collapsed(recipe)
        representation = encode(model, data)
        assert representation.prior_variance is not None
        ratio = representation.variance / representation.prior_variance
        # The estimated rate leaves noise of a few per cent in the weights; the exact rate leaves none.
        np.testing.assert_allclose(ratio.mean(0), 1, atol=0.08)
        offset = (representation.mean - representation.prior_mean) / np.sqrt(representation.prior_variance)
        assert (offset**2).mean() < 0.02
        assert diagnose(representation).types == ["passive", "passive"]
        assert lines[-1]["passive"] == 2
