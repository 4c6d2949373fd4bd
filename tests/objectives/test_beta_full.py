"""β-VAE with a full-covariance posterior."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch

import polariscope
from oracles import (
    STANDARD_ERRORS,
    TinyDataset,
    expected_loss,
    full_covariance_loss,
    linear_posterior,
    minimise,
    optimal_linear_loss,
    random_rotation,
)
from polariscope.core.errors import InputError
from polariscope.models.likelihoods.gaussian import GaussianLikelihood
from polariscope.models.model import Blueprint, Model
from polariscope.models.nets.linear import LinearNet
from polariscope.models.nets.mlp import MlpNet
from polariscope.models.posteriors.full import FullPosterior
from polariscope.models.priors.isotropic import IsotropicPrior
from polariscope.objectives import Batch, Step, total
from polariscope.objectives.beta import BetaObjective
from polariscope.objectives.beta_full import BetaFullObjective
from polariscope.training.plan import plan

EIGENVALUES = np.array([4.0, 2.0, 1.0, 0.5, 0.1])
DIRECTIONS = random_rotation(5, seed=0)
COVARIANCE = (DIRECTIONS * EIGENVALUES) @ DIRECTIONS.T


def linear_model(n_latents: int, gamma: float, seed: int = 0) -> Model:
    """A linear VAE with a full posterior covariance that does not depend on x, in float64."""
    blueprint = Blueprint(
        LinearNet(), FullPosterior(), IsotropicPrior(), GaussianLikelihood(variance=gamma), n_latents, (5,)
    )
    model = blueprint.build(seed).double()
    model.decoder.head.log_variance.fill_(math.log(gamma))  # made in float32, off by 1e-8
    head = model.encoder.head
    for part in (head.log_conditional_variance, head.below):
        part.weight.data.zero_()
    return model


def test_terms_are_those_of_the_beta_vae_with_this_posterior() -> None:
    model = Blueprint(
        MlpNet((6,), (6,)), FullPosterior(), IsotropicPrior(), GaussianLikelihood(), 3, (5,)
    ).build(seed=0)
    x = torch.rand(4, 5, generator=torch.Generator().manual_seed(0))
    ours, theirs = (
        objective(beta=2.5).terms(Step(model, Batch(x, step=0), torch.Generator().manual_seed(1)))
        for objective in (BetaFullObjective, BetaObjective)
    )
    assert list(ours) == ["reconstruction", "rate"]
    assert ours["rate"].weight == 2.5
    assert ours["rate"].value.shape == (4, 3)
    assert torch.equal(total(ours), total(theirs))


@pytest.mark.parametrize("beta", [1.0, 3.0])
@pytest.mark.parametrize("seed", range(2))
def test_for_a_given_decoder_the_best_posterior_has_the_loss_in_closed_form(beta: float, seed: int) -> None:
    gamma = 0.2
    W = np.random.default_rng(seed).normal(size=(5, 3))
    model = linear_model(3, gamma)
    head = model.encoder.head
    with torch.no_grad():
        model.decoder.trunk.layers[0][0].weight.copy_(torch.from_numpy(W))
    free = [head.mean.weight, head.log_conditional_variance.bias, head.below.bias]
    objective = BetaFullObjective(beta=beta)
    minimise(lambda: expected_loss(objective, model, COVARIANCE), free, n_iterations=500)
    loss = float(expected_loss(objective, model, COVARIANCE).detach())
    assert loss == pytest.approx(full_covariance_loss(W, COVARIANCE, beta, gamma), abs=1e-9)
    q = model.encode(torch.zeros(1, 5).double())
    expected = np.linalg.inv(W.T @ W / (beta * gamma) + np.eye(3))
    np.testing.assert_allclose(q.covariance[0].detach().numpy(), expected, atol=1e-5)
    V, _ = linear_posterior(W, beta, gamma)
    np.testing.assert_allclose(head.mean.weight.detach().numpy(), V, atol=1e-5)


def test_training_finds_the_principal_subspace_but_not_the_directions() -> None:
    # The optimum is that of the diagonal posterior, in any rotation: WWᵀ is determined, W is not.
    beta, gamma, n_latents = 1.0, 0.3, 3
    decoders = []
    for seed in (1, 2):
        model = linear_model(n_latents, gamma, seed)
        head = model.encoder.head
        fixed = {head.log_conditional_variance.weight, head.below.weight}
        free = [parameter for parameter in model.parameters() if parameter not in fixed]
        minimise(lambda model=model: expected_loss(BetaFullObjective(beta), model, COVARIANCE), free, 500)
        loss = float(expected_loss(BetaFullObjective(beta), model, COVARIANCE).detach())
        assert loss == pytest.approx(optimal_linear_loss(EIGENVALUES, n_latents, beta, gamma), abs=1e-9)
        decoders.append(model.decoder.trunk.layers[0][0].weight.detach().numpy())
    top = DIRECTIONS[:, :3]
    expected = (top * (EIGENVALUES[:3] - beta * gamma)) @ top.T
    for W in decoders:
        np.testing.assert_allclose(W @ W.T, expected, atol=1e-4)
        cosines = np.abs(top.T @ (W / np.linalg.norm(W, axis=0)))
        assert cosines.max(axis=0).min() < 0.95  # some column is no principal direction


def test_it_is_trained_encoded_kept_and_decomposed_by_name(tmp_path: Path) -> None:
    """λ = 4 and 0.01 with γ = 0.1 and β = 1: one direction of latent space, any, with the rate ½ log 40."""
    data = polariscope.load_dataset("gaussian", eigenvalues=(4.0, 0.01), n_samples=1000)
    polariscope.train(
        data,
        out=tmp_path / "run",
        objective="beta-full",
        beta=1.0,
        net="linear",
        n_latents=2,
        likelihood={"name": "gaussian", "variance": 0.1},
        keep_units=True,
        steps=250,
        learning_rate=0.2,
        schedule="cosine",
        log_every=250,
        validate_every=250,
        seed=0,
    )
    representation, again = (polariscope.encode(tmp_path / "run", n_samples=None) for _ in range(2))
    assert representation.covariance is not None
    assert representation.covariance.shape == (1000, 2, 2)
    assert again.covariance is not None
    np.testing.assert_array_equal(again.covariance, representation.covariance)  # read back from the run
    rate = 0.5 * math.log(40)
    # 250 steps come within 2 % for seeds 0 to 3.
    assert representation.rate.sum(1).mean() == pytest.approx(rate, rel=0.05)
    parts = polariscope.decompose(representation)
    assert parts.prior == "gaussian"
    assert parts.exact_rate == pytest.approx(representation.rate.sum(1).mean(), rel=1e-5)
    error = STANDARD_ERRORS * parts.errors["mutual_information"]
    assert parts.mutual_information == pytest.approx(rate, abs=0.05 * rate + error)


def test_its_posterior_is_full_unless_said_otherwise_and_another_is_refused() -> None:
    data = TinyDataset()
    assert isinstance(plan(data, "beta-full", steps=1, batch_size=4).blueprint.posterior, FullPosterior)
    for posterior in ("diagonal", "deterministic"):
        with pytest.raises(InputError, match=r"beta-full' (requires a posterior with a full|has a rate)"):
            plan(data, "beta-full", posterior=posterior, steps=1, batch_size=4)
    assert plan(data, "beta", posterior="full", steps=1, batch_size=4).objective == BetaObjective()


@pytest.mark.parametrize("beta", [-1.0, float("nan"), float("inf")])
def test_a_beta_that_is_none_is_refused(beta: float) -> None:
    with pytest.raises(InputError, match=rf"beta must (not be negative|be finite), got {beta}; 1 is the VAE"):
        BetaFullObjective(beta=beta)


def test_a_single_latent_trains() -> None:
    data = polariscope.load_dataset("gaussian", eigenvalues=(4.0, 0.01), n_samples=100)
    model = polariscope.train(data, objective="beta-full", net="linear", n_latents=1, steps=3, batch_size=10)
    assert model.encoder.head.below.weight.numel() == 0
