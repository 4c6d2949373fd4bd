"""The entropy-regularised VAE is the β-VAE in stretched latents."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
import torch

from oracles import (
    TinyDataset,
    expected_loss,
    linear_model,
    linear_posterior,
    optimal_decoder,
    random_rotation,
    set_linear,
)
from polariscope.core.errors import InputError
from polariscope.models.model import Model
from polariscope.models.posteriors.full import FullPosterior
from polariscope.models.priors.isotropic import IsotropicPrior
from polariscope.objectives import Batch, Step, Terms, total
from polariscope.objectives.beta import BetaObjective
from polariscope.objectives.entropy import EntropyObjective
from polariscope.objectives.vae import VaeObjective

X = torch.from_numpy(TinyDataset((5,), 6).values(range(6))).double()
D = 3


def terms_of(objective, model: Model) -> Terms:
    return objective.terms(Step(model, Batch(X, step=0), torch.Generator().manual_seed(0)))


def random_model(scale: float = 1.0, full: bool = False) -> Model:
    """A linear model with random weights and prior N(0, scale² I)."""
    blueprint = linear_model(5, D, gamma=0.7).blueprint
    blueprint = dataclasses.replace(blueprint, prior=IsotropicPrior(scale))
    if full:
        blueprint = dataclasses.replace(blueprint, posterior=FullPosterior())
    model = blueprint.build(seed=0).double()
    model.prior.log_variance.fill_(2 * math.log(scale))  # made in float32, off by 1e-8
    draw = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(0.3 * torch.randn(parameter.shape, generator=draw, dtype=torch.float64))
    return model


def stretch(model: Model, beta: float) -> Model:
    """Decoder p(x | z/√β), means √β μ, covariances βS."""
    other = model.blueprint.build(seed=0).double()
    other.load_state_dict(model.state_dict())
    other.prior.log_variance.copy_(model.prior.log_variance)
    other.decoder.head.log_variance.copy_(model.decoder.head.log_variance)
    head = other.encoder.head
    with torch.no_grad():
        other.decoder.trunk.layers[0][0].weight.div_(math.sqrt(beta))
        for parameter in head.mean.parameters():
            parameter.mul_(math.sqrt(beta))
        if hasattr(head, "below"):
            for parameter in head.below.parameters():
                parameter.mul_(math.sqrt(beta))
            head.log_conditional_variance.bias.add_(math.log(beta))
        else:
            head.log_variance.bias.add_(math.log(beta))
    return other


def constant(beta: float, scale: float) -> float:
    """c = D(β−1)/2 · (1 + log 2π/β) + log F_β, with F_β = ∫ N(z; 0, s²I)^β dz by the Gaussian integral."""
    log_f = 0.5 * D * (1 - beta) * math.log(2 * math.pi) + 0.5 * (1 - beta) * 2 * D * math.log(scale)
    log_f -= 0.5 * D * math.log(beta)
    return 0.5 * D * (beta - 1) * (1 + math.log(2 * math.pi / beta)) + log_f


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("scale", [1.0, 0.6])
@pytest.mark.parametrize("beta", [0.3, 1.0, 4.0, 16.0])
def test_t5_the_beta_vae_is_the_entropy_objective_in_stretched_latents(beta, scale, full) -> None:
    model = random_model(scale, full)
    ours = terms_of(EntropyObjective(beta=beta), stretch(model, beta))
    theirs = terms_of(BetaObjective(beta=beta), model)
    torch.testing.assert_close(
        ours["reconstruction"].value, theirs["reconstruction"].value, rtol=1e-11, atol=1e-11
    )
    difference = float((total(ours) - total(theirs)).detach())
    assert difference == pytest.approx(constant(beta, scale), rel=1e-9, abs=1e-9)


def test_t5_the_constant_is_that_of_an_integral_on_the_line() -> None:
    z = np.linspace(-60, 60, 200_001)
    beta, scale = 2.5, 0.8
    density = np.exp(-0.5 * (z / scale) ** 2) / (scale * math.sqrt(2 * math.pi))
    log_f = math.log(np.trapezoid(density**beta, z))
    expected = 0.5 * (beta - 1) * (1 + math.log(2 * math.pi / beta)) + log_f
    assert constant(beta, scale) / D == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("beta", [0.5, 2.0, 4.0])
def test_t5_stationary_points_correspond(beta: float) -> None:
    eigenvalues, gamma = np.array([4.0, 2.0, 1.0, 0.5, 0.1]), 0.3
    directions = random_rotation(5, seed=0)
    data = (directions * eigenvalues) @ directions.T
    W = optimal_decoder(eigenvalues, directions, D, beta, gamma)
    V, variance = linear_posterior(W, beta, gamma)
    model = linear_model(5, D, gamma)
    set_linear(model, W, V, variance)
    stretched = stretch(model, beta)
    for one, objective in ((model, BetaObjective(beta=beta)), (stretched, EntropyObjective(beta=beta))):
        gradients = torch.autograd.grad(expected_loss(objective, one, data), list(one.parameters()))
        assert max(float(g.abs().max()) for g in gradients) < 1e-11
    # And it is the stretching that makes it one: the β-VAE's optimum is none of the entropy objective's.
    gradients = torch.autograd.grad(
        expected_loss(EntropyObjective(beta=beta), model, data), list(model.parameters())
    )
    assert max(float(g.abs().max()) for g in gradients) > 1e-3


def test_beta_one_is_the_vae() -> None:
    model = random_model()
    assert torch.equal(
        total(terms_of(EntropyObjective(beta=1.0), model)), total(terms_of(VaeObjective(), model))
    )


def test_the_reward_is_half_the_log_determinant_for_each_unit_of_beta() -> None:
    model = random_model()
    terms = terms_of(EntropyObjective(beta=5.0), model)
    torch.testing.assert_close(terms["log_determinant"].value, model.encode(X).log_variance.sum(1))
    assert {name: term.weight for name, term in terms.items()} == {
        "reconstruction": 1.0,
        "rate": 1.0,
        "log_determinant": -2.0,
    }


@pytest.mark.parametrize("beta", [-1.0, float("nan"), float("inf")])
def test_a_beta_that_is_none_is_refused(beta: float) -> None:
    with pytest.raises(InputError, match=rf"beta must (not be negative|be finite), got {beta}; 1 is the VAE"):
        EntropyObjective(beta=beta)
