"""The Wasserstein autoencoder: a cost and a discrepancy."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

import polariscope as ps
from long_training import unchecked
from oracles import TinyDataset
from polariscope.core.errors import InputError
from polariscope.data.rendered.gaussian import GaussianDataset
from polariscope.models.kernels import mmd
from polariscope.models.likelihoods.gaussian import GaussianLikelihood
from polariscope.models.model import Blueprint, Model
from polariscope.models.nets.mlp import MlpNet
from polariscope.models.posteriors import AbstractPosterior
from polariscope.models.posteriors.deterministic import DeterministicPosterior
from polariscope.models.posteriors.diagonal import DiagonalPosterior
from polariscope.models.priors.isotropic import IsotropicPrior
from polariscope.objectives import AbstractObjective, Batch, Step, Terms, total
from polariscope.objectives.ae import AeObjective
from polariscope.objectives.wae import WaeObjective
from polariscope.training.plan import plan


def model_with(posterior: AbstractPosterior, prior: IsotropicPrior = IsotropicPrior()) -> Model:  # noqa: B008
    blueprint = Blueprint(MlpNet((6,), (6,)), posterior, prior, GaussianLikelihood(variance=0.5), 3, (5,))
    return blueprint.build(seed=0).double()


def observations() -> torch.Tensor:
    return torch.from_numpy(TinyDataset((5,), 8).values(range(8))).double()


def terms_of(objective: AbstractObjective, model: Model, seed: int = 0) -> Terms:
    return objective.terms(Step(model, Batch(observations(), step=0), torch.Generator().manual_seed(seed)))


def test_without_the_discrepancy_it_is_the_autoencoder() -> None:
    model = model_with(DeterministicPosterior())
    wae, ae = terms_of(WaeObjective(lambda_mmd=0.0), model), terms_of(AeObjective(), model)
    assert torch.equal(total(wae), total(ae))


def test_the_loss_is_square_error_and_discrepancy_spelled_out() -> None:
    # A Gaussian likelihood of variance ½ is the square error, up to ½ m log π.
    model, x = model_with(DeterministicPosterior()), observations()
    code = model.encoder.head.mean(model.encoder.trunk(x))
    draws = torch.randn(8, 3, generator=torch.Generator().manual_seed(4), dtype=torch.float64)
    cost = ((x - model.decoder.trunk(code)) ** 2).sum(1).mean()
    expected = cost + 2.5 * math.log(math.pi) + 10 * mmd(code, draws, "imq", 1.0)
    found = terms_of(WaeObjective(), model, seed=4)  # a point draws no noise, so the prior's draws come first
    torch.testing.assert_close(total(found), expected, rtol=1e-7, atol=1e-7)  # the variance is float32's
    assert list(found) == ["reconstruction", "aggregate"]


def test_the_kernels_width_is_the_priors_scale() -> None:
    # C = 2nσ_z²: with codes and prior twice as wide, the discrepancy is the same.
    wide = model_with(DeterministicPosterior(), IsotropicPrior(scale=2.0))
    with torch.no_grad():
        wide.encoder.head.mean.weight.mul_(2)
        wide.encoder.head.mean.bias.mul_(2)
    narrow = model_with(DeterministicPosterior())
    found = [terms_of(WaeObjective(), model)["aggregate"].value for model in (narrow, wide)]
    torch.testing.assert_close(found[0], found[1], rtol=1e-6, atol=1e-8)  # the prior's scale is float32's
    given = terms_of(WaeObjective(kernel_width=2.0), wide)["aggregate"].value
    torch.testing.assert_close(given, found[1], rtol=1e-6, atol=1e-8)


def test_a_gaussian_encoder_is_drawn_from_and_its_rate_is_only_watched() -> None:
    model = model_with(DiagonalPosterior())
    terms = terms_of(WaeObjective(), model)
    assert terms["rate"].weight == 0
    assert float(terms["rate"].per_batch.detach()) > 0
    expected = terms["reconstruction"].per_batch + 10 * terms["aggregate"].value
    torch.testing.assert_close(total(terms), expected)
    other = terms_of(WaeObjective(), model, seed=1)
    assert not torch.equal(terms["reconstruction"].value, other["reconstruction"].value)


@unchecked()
def test_training_fills_the_prior_and_the_autoencoder_does_not() -> None:
    data = GaussianDataset(eigenvalues=(9.0, 4.0), width=4, n_samples=400)
    common = {"net": "linear", "n_latents": 2, "steps": 200, "learning_rate": 1e-2, "batch_size": 128}
    spread = {}
    for name, options in {"ae": {}, "wae": {"lambda_mmd": 100.0}}.items():
        model = ps.train(data, objective=name, **common, **options)
        codes = ps.encode(model, data).mean
        spread[name] = np.cov(codes.T)
    # With this weight the codes have the prior's covariance up to a few per cent; the autoencoder keeps its own.
    np.testing.assert_allclose(spread["wae"], np.eye(2), atol=0.2)
    assert np.abs(spread["ae"] - np.eye(2)).max() > 0.5


def test_the_encoder_is_deterministic_unless_asked_otherwise() -> None:
    data = TinyDataset((5,), 30)
    assert plan(data, "wae").blueprint.posterior == DeterministicPosterior()
    assert plan(data, "wae", posterior="diagonal").blueprint.posterior == DiagonalPosterior()


@pytest.mark.parametrize("weight", [-1.0, float("nan"), float("inf")])
def test_a_weight_of_the_wrong_sign_is_refused(weight: float) -> None:
    with pytest.raises(
        InputError, match=rf"lambda_mmd must (not be negative|be finite), got {weight}; 0 is the autoencoder"
    ):
        WaeObjective(lambda_mmd=weight)
