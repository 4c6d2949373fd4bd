"""The iVAE is the VAE where the prior says nothing, and its optimum is the conditional moment."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from oracles import STANDARD_ERRORS
from polariscope.core.errors import InputError
from polariscope.data.own.arrays import from_arrays
from polariscope.data.sources import load_dataset
from polariscope.models.likelihoods.gaussian import GaussianLikelihood
from polariscope.models.model import Blueprint, Model
from polariscope.models.nets.linear import LinearNet
from polariscope.models.nets.mlp import MlpNet
from polariscope.models.posteriors.diagonal import DiagonalPosterior
from polariscope.models.priors.conditional import ConditionalPrior
from polariscope.models.priors.isotropic import IsotropicPrior
from polariscope.objectives import Batch, Step, total
from polariscope.objectives.ivae import IvaeObjective
from polariscope.objectives.vae import VaeObjective
from polariscope.training.plan import plan
from polariscope.training.train import train

SHAPE, N_LATENTS, N_AUXILIARY = (5,), 3, 2


def model(prior=None, net=None, n_auxiliary: int = N_AUXILIARY) -> Model:
    return (
        Blueprint(
            net=net or MlpNet((6,), (6,)),
            posterior=DiagonalPosterior(),
            prior=prior or ConditionalPrior(mean="learned"),
            likelihood=GaussianLikelihood(),
            n_latents=N_LATENTS,
            shape=SHAPE,
            n_auxiliary=n_auxiliary,
        )
        .build(seed=0)
        .double()
    )


def normal(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def batch(n: int = 8) -> Batch:
    return Batch(normal(n, *SHAPE), step=0, auxiliary=torch.sigmoid(normal(n, N_AUXILIARY, seed=1)))


@pytest.mark.parametrize("mean", ["fixed", "learned"])
def test_the_rate_is_the_kl_of_two_normals_that_both_see_u(mean):
    made, given = model(ConditionalPrior(mean=mean)), batch()
    terms = IvaeObjective().terms(Step(made, given, torch.Generator().manual_seed(0)))
    q = made.encode(given.x, given.auxiliary)
    log_prior = made.prior.log_variance(given.auxiliary)
    centre = made.prior.mean(given.auxiliary) if mean == "learned" else torch.zeros_like(log_prior)
    # KL(N(μ, σ²) ‖ N(m, s²)) = log(s/σ) + (σ² + (μ − m)²)/(2 s²) − ½, written out
    expected = (
        0.5 * (log_prior - q.log_variance)
        + (q.log_variance.exp() + (q.mean - centre) ** 2) / (2 * log_prior.exp())
        - 0.5
    )
    torch.testing.assert_close(terms["rate"].value, expected)
    assert list(terms) == ["reconstruction", "rate"]
    other = Batch(given.x, step=0, auxiliary=1 - given.auxiliary)
    moved = IvaeObjective().terms(Step(made, other, torch.Generator().manual_seed(0)))
    assert all(not torch.allclose(terms[name].value, moved[name].value) for name in terms)


def test_a_prior_that_is_the_same_for_every_u_makes_it_the_vae():
    conditional, plain = model(ConditionalPrior()), model(IsotropicPrior(), n_auxiliary=0)
    given = batch()
    with torch.no_grad():
        for parameter in conditional.prior.parameters():
            parameter.zero_()  # log Σ† = 0, μ† = 0
        first = conditional.encoder.trunk.layers[1][0]
        first.weight[:, SHAPE[0] :] = 0  # the encoder does not look at u
        plain.encoder.trunk.layers[1][0].weight.copy_(first.weight[:, : SHAPE[0]])
        plain.encoder.trunk.layers[1][0].bias.copy_(first.bias)
        plain.encoder.head.load_state_dict(conditional.encoder.head.state_dict())
        plain.decoder.load_state_dict(conditional.decoder.state_dict())
    ours = IvaeObjective().terms(Step(conditional, given, torch.Generator().manual_seed(3)))
    theirs = VaeObjective().terms(Step(plain, Batch(given.x, step=0), torch.Generator().manual_seed(3)))
    for name in ours:
        torch.testing.assert_close(ours[name].value, theirs[name].value)


@pytest.mark.parametrize("mean", ["fixed", "learned"])
def test_the_best_prior_has_the_conditional_moments_of_the_posterior(mean):
    # objectives.md §12.4 [derived]: μ†(u) = E[μ|u], Σ†(u) = E[σ² + (μ − μ†)²|u]; with the mean fixed, μ† = 0.
    made = model(ConditionalPrior(mean=mean), net=LinearNet())
    u = torch.tensor([[0.0, 1.0]], dtype=torch.float64).repeat(
        200, 1
    )  # one value: the moments are plain ones
    given = Batch(normal(200, *SHAPE), step=0, auxiliary=u)
    q = made.encode(given.x, u)
    centre = q.mean.mean(0) if mean == "learned" else torch.zeros(N_LATENTS, dtype=torch.float64)
    spread = (q.variance + (q.mean - centre) ** 2).mean(0)
    with torch.no_grad():
        for part, value in ((made.prior.log_variance, spread.log()), (made.prior.mean, centre)):
            if part is not None:
                part[-1].weight.zero_()
                part[-1].bias.copy_(value)
    terms = IvaeObjective().terms(Step(made, given, torch.Generator().manual_seed(0)))
    gradients = torch.autograd.grad(terms["rate"].per_batch, list(made.prior.parameters()), allow_unused=True)
    assert all(g is None or g.abs().max() < 1e-12 for g in gradients)
    # and the rate there is ½ E log(Σ†/σ²), since E[σ² + (μ − μ†)²] = Σ†
    expected = 0.5 * (spread.log() - q.log_variance).mean(0)
    torch.testing.assert_close(terms["rate"].value.mean(0), expected)


def test_the_gradient_trains_encoder_decoder_and_prior():
    made = model()
    total(IvaeObjective().terms(Step(made, batch(), torch.Generator().manual_seed(0)))).backward()
    for part in (made.encoder, made.decoder, made.prior):
        assert all(p.grad is not None and torch.isfinite(p.grad).all() for p in part.parameters())
        assert any((p.grad != 0).any() for p in part.parameters())


def test_it_is_planned_with_a_conditional_prior_and_the_factors_as_u():
    job = plan(load_dataset("sprites", image_size=16), objective="ivae", prior_mean="learned", n_latents=30)
    assert job.blueprint.prior == ConditionalPrior(mean="learned")
    assert job.blueprint.n_auxiliary == 5
    # bonheme2023 Tab. A.2: FC 256 + 5 after the convolutions, 3 × 50 in the prior
    built = job.blueprint.build(0)
    assert built.encoder.trunk.out_features == 261
    assert [layer.out_features for layer in built.prior.mean if hasattr(layer, "out_features")] == [
        50,
        50,
        50,
        30,
    ]


def test_labels_can_be_the_auxiliary_variable():
    data = from_arrays(np.zeros((20, 4)), np.arange(20) % 2)
    assert plan(data, objective="ivae").blueprint.n_auxiliary == 1


def test_it_is_refused_without_auxiliary_data_and_without_a_conditional_prior():
    with pytest.raises(
        InputError,
        match="requires auxiliary data, and arrays has no factors or labels; pass factors",
    ):
        plan(from_arrays(np.zeros((20, 4))), objective="ivae")
    with pytest.raises(
        InputError, match=r"with another prior it is the VAE. Use prior='conditional', or objective='vae'"
    ):
        plan(load_dataset("sprites", image_size=16), objective="ivae", prior="isotropic")


def test_a_few_steps_lower_the_loss_of_a_tiny_ivae():
    # Two clusters told apart by the label: the loss bounds −log p(x|u), whose mean over the 20 validation rows
    # is the entropy within a standard error of 1/√20.
    rng = np.random.default_rng(0)
    labels = rng.integers(2, size=400)
    rows = rng.normal(size=(400, 2)) * 0.1 + labels[:, None] * 4.0
    lines = []
    train(
        from_arrays(rows.astype(np.float32), labels),
        objective="ivae",
        net="linear",
        n_latents=2,
        likelihood_variance=0.01,
        keep_units=True,
        steps=300,
        learning_rate=2e-2,
        log_every=50,
        validate_every=50,
        device="cpu",
        progress=lambda step, line: lines.append(line) if line else None,
    )
    entropy = 2 * (0.5 * math.log(2 * math.pi * 0.01) + 0.5)  # of x given u
    assert lines[-1]["validation"]["reconstruction"] + lines[-1]["validation"][
        "rate"
    ] > entropy - STANDARD_ERRORS / math.sqrt(20)
    assert lines[-1]["loss"] < lines[0]["loss"] / 10
    assert len(lines[-1]["kl"]) == 2
