"""Mixture of Gaussians."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats

import polariscope as ps
from oracles import assert_mean_is
from polariscope.core.errors import InputError
from polariscope.core.options import check_options
from polariscope.data.rendered.gaussian import GaussianDataset
from polariscope.models.priors.isotropic import IsotropicPrior
from polariscope.models.priors.mixture import MixturePrior, MixturePriorModule

MEANS = ((0.0, 1.0, 2.0), (-1.0, 0.5, 0.0), (1.0, 1.0, -1.0), (0.3, -2.0, 0.1))
WEIGHTS = (0.1, 0.2, 0.3, 0.4)


def built(recipe: MixturePrior) -> MixturePriorModule:
    return recipe.build(len(recipe.centres[0]), None, 0, torch.Generator()).double()


def joint(z: np.ndarray, means: np.ndarray, weights: np.ndarray, variance: float) -> np.ndarray:
    parts = [
        w * stats.multivariate_normal.pdf(z, m, variance * np.eye(len(m)))
        for w, m in zip(weights, means, strict=True)
    ]
    return np.log(np.sum(parts, axis=0))


def test_a_row_of_log_densities_sums_to_that_of_the_mixture() -> None:
    z = np.random.default_rng(0).normal(size=(40, 3))
    made = built(MixturePrior(means=MEANS, weights=WEIGHTS, component_variance=0.5))
    found = made.log_density(torch.from_numpy(z)).numpy()
    # Means and weights are kept in float32.
    np.testing.assert_allclose(found.sum(1), joint(z, np.array(MEANS), np.array(WEIGHTS), 0.5), rtol=1e-6)


def test_each_column_is_the_conditional_given_the_latents_before_it() -> None:
    z = np.random.default_rng(0).normal(size=(40, 3))
    made = built(MixturePrior(means=MEANS, weights=WEIGHTS, component_variance=0.5))
    found = made.log_density(torch.from_numpy(z)).numpy()
    means = np.array(MEANS)
    marginals = [joint(z[:, :k], means[:, :k], np.array(WEIGHTS), 0.5) for k in (1, 2, 3)]
    expected = np.stack([marginals[0], marginals[1] - marginals[0], marginals[2] - marginals[1]], axis=1)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_the_order_of_the_latents_changes_the_columns_but_not_their_sum() -> None:
    z = torch.from_numpy(np.random.default_rng(0).normal(size=(20, 2)))
    forward = built(MixturePrior(component_variance=0.5))
    swapped = built(
        MixturePrior(means=tuple(m[::-1] for m in MixturePrior().centres), component_variance=0.5)
    )
    one, other = forward.log_density(z), swapped.log_density(z.flip(1)).flip(1)
    torch.testing.assert_close(one.sum(1), other.sum(1))
    assert (one - other).abs().max() > 0.01


def test_far_from_every_component_the_density_does_not_underflow() -> None:
    z = torch.tensor([[40.0, -60.0]], dtype=torch.float64, requires_grad=True)
    found = built(MixturePrior()).log_density(z).sum()
    # Only the nearest mean, (0, −1), counts; in float32 the variance of 0.03 is exact enough for 1e-6.
    expected = math.log(0.25) - math.log(2 * math.pi * 0.03) - (40**2 + 59**2) / 0.06
    assert float(found.detach()) == pytest.approx(expected, rel=1e-9)
    (gradient,) = torch.autograd.grad(found, z)
    torch.testing.assert_close(gradient, torch.tensor([[-40.0, 59.0]]).double() / 0.03)


def test_the_layouts_are_those_of_the_paper_and_of_its_code() -> None:
    cross, square = (set(MixturePrior(layout=layout).centres) for layout in ("cross", "square"))
    assert cross == {(0.0, 1.0), (0.0, -1.0), (1.0, 0.0), (-1.0, 0.0)}
    assert square == set(itertools.product((0.0, 1.0), repeat=2))
    assert built(MixturePrior()).weights.tolist() == [0.25] * 4


def test_the_cross_keeps_its_density_under_quarter_turns_only() -> None:
    z = torch.from_numpy(np.random.default_rng(0).normal(size=(20, 2)))
    made = built(MixturePrior())

    def turned(angle: float) -> torch.Tensor:
        c, s = math.cos(angle), math.sin(angle)
        return made.log_density(z @ torch.tensor([[c, -s], [s, c]], dtype=torch.float64)).sum(1)

    torch.testing.assert_close(turned(math.pi / 2), turned(0.0))
    assert ((turned(math.pi / 4) - turned(0.0)).abs() > 0.01).all()


def test_draws_have_the_moments_of_the_mixture() -> None:
    draws = (
        built(MixturePrior(means=MEANS, weights=WEIGHTS, component_variance=0.5))
        .sample(40_000, torch.Generator().manual_seed(0))
        .numpy()
    )
    means, weights = np.array(MEANS), np.array(WEIGHTS)
    second = 0.5 * np.eye(3) + np.einsum("c,ci,cj->ij", weights, means, means)
    third = np.einsum("c,ci,cj,ck->ijk", weights, means, means, means)[0, 1, 2]
    assert_mean_is(draws, weights @ means)
    assert_mean_is((draws[:, :, None] * draws[:, None, :]).reshape(-1, 9), second.ravel())
    assert_mean_is(draws.prod(1), third)  # not a Gaussian's


def test_one_component_is_the_normal_with_an_exact_kl() -> None:
    z = torch.from_numpy(np.random.default_rng(0).normal(size=(20, 3)))
    one = built(MixturePrior(means=((0.0, 0.0, 0.0),), component_variance=0.49))
    isotropic = IsotropicPrior(0.7).build(3, None, 0, torch.Generator()).double()
    torch.testing.assert_close(one.log_density(z), isotropic.log_density(z), rtol=1e-6, atol=0)
    for found, expected in zip(one.normal(), isotropic.normal(), strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-7)
    for found, expected in zip(one.passive_shape(), isotropic.passive_shape(), strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-7)
    assert (
        one.meaning_of_passive
        == "its posterior is close to the prior, a normal of variance 0.49, for every input"
    )
    assert built(MixturePrior()).normal() is None


def divergence(recipe: MixturePrior, mean: np.ndarray, variance: np.ndarray) -> float:
    """KL(N(mean, diag variance) ‖ p) for two latents, on a grid finer than the package's."""
    line = np.linspace(-6, 6, 171)
    noise = np.stack(np.meshgrid(line, line, indexing="ij"), axis=-1).reshape(-1, 2)
    masses = np.exp(-(noise**2).sum(1) / 2)
    z = torch.from_numpy(mean + np.sqrt(variance) * noise)
    log_p = built(recipe).log_density(z).numpy().sum(1)
    entropy = 0.5 * np.log(2 * math.pi * math.e * variance).sum()
    return float(-(masses @ log_p) / masses.sum() - entropy)


@pytest.mark.parametrize(
    "recipe",
    [MixturePrior(), MixturePrior(layout="square"), MixturePrior(layout="square", component_variance=0.2)],
)
def test_a_passive_latent_lies_over_the_whole_mixture_at_a_minimum_of_the_kl(recipe: MixturePrior) -> None:
    mean, variance = (part.numpy() for part in built(recipe).passive_shape())
    centres = np.array(recipe.centres)
    np.testing.assert_allclose(mean, centres.mean(0), atol=1e-7)
    moments = recipe.component_variance + centres.var(0)
    assert (variance < moments).all()
    least = divergence(recipe, mean, variance)
    assert least < divergence(recipe, mean, moments)
    for shift in ((0.05, 0.0), (0.0, 0.05), (0.04, 0.04), (0.04, -0.04)):
        for sign in (-1, 1):
            assert divergence(recipe, mean + sign * np.array(shift), variance) > least
            assert divergence(recipe, mean, variance * np.exp(sign * np.array(shift))) > least


def test_separate_components_are_nearer_to_the_mixture_so_the_nearest_gaussian_is_not_unique() -> None:
    recipe = MixturePrior()
    rates = [divergence(recipe, np.array(m), np.array([0.03, 0.03])) for m in recipe.centres]
    np.testing.assert_allclose(rates, math.log(4), atol=1e-3)  # the others' tails are all that is missing
    assert rates[0] < divergence(recipe, *(part.numpy() for part in built(recipe).passive_shape()))


@pytest.mark.parametrize("n_latents", [1, 5])
def test_well_mixed_components_have_nearly_their_moments(n_latents: int) -> None:
    means = np.random.default_rng(0).normal(scale=0.2, size=(3, n_latents))
    recipe = MixturePrior(means=tuple(map(tuple, means.tolist())), component_variance=1.0)
    _, variance = built(recipe).passive_shape()
    # The next order is the square of the spread of the means, 0.04² here; the Sobol set is as good.
    np.testing.assert_allclose(variance.numpy(), 1 + means.var(0), atol=5e-3)


def test_it_says_what_a_passive_latent_looks_like() -> None:
    assert built(MixturePrior()).meaning_of_passive == (
        "its posterior is close to a Gaussian over the whole mixture for every input, with a variance of 0.375; one "
        "that stays inside a single component is narrower and is not called passive: check whether its mean moves"
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"component_variance": 0.0}, "component_variance must be positive, got 0.0"),
        ({"means": ((0.0, 1.0), (1.0,))}, "means must be one or more rows of equal length"),
        ({"means": ()}, "means must be one or more rows of equal length"),
        ({"means": ((),)}, "means must be one or more rows of equal length"),
        ({"means": ((0.0, float("nan")),)}, "means must contain finite numbers"),
        ({"weights": (0.5, 0.5)}, "weights must be one per component, got 2 for 4 components"),
        (
            {"weights": (0.5, 0.5, 0.5, 0.5)},
            r"weights must be positive and sum to 1, got .* sum to 2; divide",
        ),
        ({"weights": (1.5, -0.5, 0.5, -0.5)}, "weights must be positive and sum to 1"),
        ({"weights": (1.0, 0.0, 0.0, 0.0)}, "weights must be positive and sum to 1"),
    ],
)
def test_bad_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        MixturePrior(**options)


@pytest.mark.parametrize(
    ("options", "n_latents", "message"),
    [
        (
            {},
            10,
            "layout 'cross' of the mixture prior has 2 latents, got n_latents=10; set n_latents=2 or pass means",
        ),
        ({"means": "0,1;1,0"}, 3, "means must have one number per latent, got rows of 2 for 3 latents"),
    ],
)
def test_the_wrong_number_of_latents_is_refused_before_training(
    options: dict[str, Any], n_latents: int, message: str, tmp_path: Any
) -> None:
    data = GaussianDataset(n_samples=50)
    with pytest.raises(InputError, match=message):
        ps.train(data, n_latents=n_latents, prior="mixture", out=tmp_path / "run", **options)
    assert not (tmp_path / "run").exists()


def test_means_can_be_typed_on_a_command_line() -> None:
    checked = check_options(
        "prior 'mixture'", MixturePrior, {"means": "0,1,2;-1,0,1e-3", "weights": "0.5,0.5"}
    )
    assert checked == {"means": ((0.0, 1.0, 2.0), (-1.0, 0.0, 0.001)), "weights": (0.5, 0.5)}
    with pytest.raises(InputError, match="must be a list of lists of numbers or none, got 'here'"):
        check_options("prior 'mixture'", MixturePrior, {"means": "here"})
