"""SlowVAE: the cross-entropy with a Laplace density in closed form, and its limits."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
import torch

from oracles import directional_derivatives, standard_normal_draws
from polariscope.core.errors import InputError
from polariscope.data.own.arrays import from_arrays
from polariscope.data.pairs import Transition
from polariscope.data.sources import load_dataset
from polariscope.models.likelihoods.gaussian import GaussianLikelihood
from polariscope.models.model import Blueprint, Model
from polariscope.models.nets.mlp import MlpNet
from polariscope.models.posteriors.diagonal import DiagonalPosterior
from polariscope.models.priors.isotropic import IsotropicPrior
from polariscope.objectives import Batch, Step, total
from polariscope.objectives.beta import BetaObjective
from polariscope.objectives.slow import SlowObjective, laplace_cross_entropy
from polariscope.training.plan import plan

RATE = 6.0


def cross_entropy(distance: float, deviation: float, rate: float = RATE) -> float:
    arguments = (
        torch.tensor([[value]], dtype=torch.float64) for value in (distance, 2 * math.log(deviation))
    )
    return float(laplace_cross_entropy(*arguments, rate))


def by_quadrature(distance: float, deviation: float, rate: float = RATE) -> float:
    """−∫ N(z; Δ, σ²) log Laplace(z; 0, λ) dz on either side of the kink at 0, to about 1e-10."""
    reach = 12 * deviation
    total = 0.0
    for low, high in (
        (distance - reach, min(0.0, distance + reach)),
        (max(0.0, distance - reach), distance + reach),
    ):
        if low < high:
            z = np.linspace(low, high, 200_001)
            density = np.exp(-0.5 * ((z - distance) / deviation) ** 2) / (deviation * math.sqrt(2 * math.pi))
            total += np.trapezoid(density * (rate * np.abs(z) - math.log(rate / 2)), z)
    return float(total)


@pytest.mark.parametrize("rate", [0.5, 6.0])
@pytest.mark.parametrize("deviation", [0.01, 0.3, 1.0, 4.0])
@pytest.mark.parametrize("distance", [0.0, 0.02, -0.5, 3.0])
def test_the_cross_entropy_is_the_integral_it_stands_for(distance, deviation, rate):
    assert cross_entropy(distance, deviation, rate) == pytest.approx(
        by_quadrature(distance, deviation, rate), abs=1e-8
    )


def test_a_posterior_without_spread_pays_for_the_distance_alone():
    for distance in (0.3, -2.0):
        assert cross_entropy(distance, 1e-8) == pytest.approx(
            RATE * abs(distance) - math.log(RATE / 2), rel=1e-12
        )


def test_a_latent_that_stands_still_pays_for_its_spread_alone():
    for deviation in (1e-4, 0.5, 2.0):
        expected = RATE * deviation * math.sqrt(2 / math.pi) - math.log(RATE / 2)
        assert cross_entropy(0.0, deviation) == pytest.approx(expected, rel=1e-12)


def test_the_gradient_of_the_cross_entropy_is_right_and_finite_where_the_spread_vanishes():
    distance = torch.tensor([[0.0, 0.3, -1.0, 5.0]], dtype=torch.float64, requires_grad=True)
    log_variance = torch.tensor([[-1.0, 0.5, -3.0, 2.0]], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda d, v: laplace_cross_entropy(d, v, RATE), (distance, log_variance))
    tiny = torch.full((1, 4), -60.0, requires_grad=True)
    single = distance.detach().float().requires_grad_()
    gradients = torch.autograd.grad(laplace_cross_entropy(single, tiny, RATE).sum(), (single, tiny))
    assert all(torch.isfinite(gradient).all() for gradient in gradients)


@pytest.fixture
def model() -> Model:
    blueprint = Blueprint(
        MlpNet((6,), (6,), "tanh"), DiagonalPosterior(), IsotropicPrior(), GaussianLikelihood(), 3, (5,)
    )
    return blueprint.build(seed=0).double()


def normal(*shape: int, seed: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.fixture
def batch() -> Batch:
    return Batch(normal(8, 5, seed=1), step=0, pair=normal(8, 5, seed=2), shared=torch.zeros(8, 2).double())


def test_the_terms_are_those_of_the_equation(model, batch):
    terms = SlowObjective().terms(Step(model, batch, torch.Generator().manual_seed(0)))
    now, before = model.encode(batch.x), model.encode(batch.pair)
    crossed = laplace_cross_entropy(now.mean - before.mean, now.log_variance, RATE)
    crossed = crossed + laplace_cross_entropy(before.mean - now.mean, before.log_variance, RATE)
    entropies = [torch.distributions.Normal(q.mean, q.variance.sqrt()).entropy() for q in (now, before)]
    torch.testing.assert_close(terms["transition"].value, crossed - (entropies[0] + entropies[1]) / 2)
    rates = [0.5 * (q.mean**2 + q.variance - q.log_variance - 1) for q in (now, before)]
    torch.testing.assert_close(terms["rate"].value, (rates[0] + rates[1]) / 2)
    assert {name: term.weight for name, term in terms.items()} == {
        "reconstruction": 2.0,
        "rate": 1.0,
        "transition": 10.0,
    }


def test_gamma_0_is_the_beta_vae_on_both_frames_with_half_of_beta(model, batch):
    noise = normal(16, 3, seed=3)
    with standard_normal_draws(noise):
        slow = total(SlowObjective(beta=6.0, gamma=0.0).terms(Step(model, batch, torch.Generator())))
    both = Batch(torch.cat([batch.x, batch.pair]), step=0)
    with standard_normal_draws(noise):
        beta = total(BetaObjective(beta=3.0).terms(Step(model, both, torch.Generator())))
    # a pair has two frames, and the β-VAE averages over frames
    torch.testing.assert_close(slow, 2 * beta)


def test_swapping_the_frames_changes_nothing(model, batch):
    noise = normal(16, 3, seed=3)
    swapped = dataclasses.replace(batch, x=batch.pair, pair=batch.x)
    losses = []
    for frames, draws in ((batch, noise), (swapped, noise.roll(8, 0))):
        with standard_normal_draws(draws):
            losses.append(SlowObjective().terms(Step(model, frames, torch.Generator())))
    for name in losses[0]:
        torch.testing.assert_close(losses[0][name].value, losses[1][name].value)


def test_the_transition_term_grows_with_the_distance_between_frames(model, batch):
    still = dataclasses.replace(batch, pair=batch.x)
    near, far = (
        SlowObjective().terms(Step(model, frames, torch.Generator().manual_seed(0)))
        for frames in (still, batch)
    )
    assert (near["transition"].per_batch < far["transition"].per_batch).all()


def test_the_gradient_is_that_of_the_loss(model, batch):
    def loss() -> torch.Tensor:
        return total(SlowObjective().terms(Step(model, batch, torch.Generator().manual_seed(0))))

    for seed in range(3):
        analytic, difference = directional_derivatives(loss, list(model.parameters()), seed)
        assert analytic == pytest.approx(difference, rel=1e-6, abs=1e-6)


def test_its_pairs_come_from_the_transition_it_is_given():
    assert SlowObjective().transition == Transition("laplace", 1.0)
    assert SlowObjective(transition_kind="uniform", transition_rate=3.0).transition == Transition(
        "uniform", 3.0
    )


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"beta": -1.0}, "beta must not be negative, got -1.0"),
        ({"gamma": math.nan}, "gamma must be finite, got nan"),
        ({"rate": 0.0}, "rate must be positive, got 0.0; 6 is the published rate"),
        ({"transition_rate": -2.0}, "transition_rate must be positive, got -2.0"),
    ],
)
def test_bad_settings_are_refused(options, words):
    with pytest.raises(InputError, match=words):
        SlowObjective(**options)


def test_it_is_refused_where_there_are_no_pairs_or_no_entropy_per_latent(model):
    with pytest.raises(InputError, match="pairs need a dataset with discrete factors, such as sprites"):
        plan(from_arrays(np.zeros((20, 4))), objective="slow")
    sprites = load_dataset("sprites", image_size=16)
    with pytest.raises(InputError, match="use posterior='diagonal'"):
        plan(sprites, objective="slow", posterior="full")
    with pytest.raises(InputError, match="objective 'slow' does not support the auxiliary variable"):
        plan(sprites, objective="slow", prior="conditional")
    with pytest.raises(InputError, match="compares pairs, and this batch has none"):
        SlowObjective().terms(Step(model, Batch(normal(8, 5, seed=1), step=0), torch.Generator()))
