"""The adversarial autoencoder: a game whose value is the Jensen-Shannon divergence."""

from __future__ import annotations

import math
from typing import get_args

import numpy as np
import pytest
import torch
from torch import nn

import polariscope as ps
from long_training import unchecked
from oracles import TinyDataset, assert_mean_is, linear_model
from polariscope.core.errors import InputError
from polariscope.data.rendered.gaussian import GaussianDataset
from polariscope.models.likelihoods.gaussian import GaussianLikelihood
from polariscope.models.model import Blueprint, Model
from polariscope.models.nets.mlp import MlpNet
from polariscope.models.posteriors import AbstractPosterior
from polariscope.models.posteriors.deterministic import DeterministicPosterior
from polariscope.models.posteriors.diagonal import DiagonalPosterior
from polariscope.models.priors.isotropic import IsotropicPrior
from polariscope.objectives import Batch, Step, Terms, total
from polariscope.objectives.aae import AaeObjective, Game, discriminator_loss, encoder_loss
from polariscope.objectives.ae import AeObjective
from polariscope.objectives.support.adversary import Discriminator
from polariscope.objectives.vae import VaeObjective
from polariscope.training.plan import plan

MEAN, STD = 0.7, 0.5  # of q(z) beside the prior N(0, 1)
Z = np.linspace(-12, 12, 40_001)


def log_normal(z: np.ndarray, mean: float, std: float) -> np.ndarray:
    return -0.5 * ((z - mean) / std) ** 2 - math.log(std * math.sqrt(2 * math.pi))


LOG_P, LOG_Q = log_normal(Z, 0, 1), log_normal(Z, MEAN, STD)


def expected(under: np.ndarray, values: np.ndarray) -> float:
    return float(np.trapezoid(np.exp(under) * values, Z))


def jensen_shannon() -> float:
    middle = np.logaddexp(LOG_P, LOG_Q) - math.log(2)
    return 0.5 * expected(LOG_P, LOG_P - middle) + 0.5 * expected(LOG_Q, LOG_Q - middle)


class BestDiscriminator(nn.Module):
    """logit D = log p(z) − log q(z)."""

    def forward(self, z: torch.Tensor) -> torch.Tensor:
        q = -0.5 * ((z - MEAN) / STD) ** 2 - math.log(STD)
        return -0.5 * z**2 - q


def model_with(posterior: AbstractPosterior) -> Model:
    blueprint = Blueprint(MlpNet((6,), (6,)), posterior, IsotropicPrior(), GaussianLikelihood(), 3, (5,))
    return blueprint.build(seed=0).double()


def terms_of(objective: AaeObjective, model: Model, seed: int = 0) -> tuple[Terms, Discriminator]:
    x = torch.from_numpy(TinyDataset((5,), 8).values(range(8))).double()
    companion = objective.companion(model, TinyDataset((5,), 8), torch.Generator().manual_seed(1))
    terms = objective.terms(Step(model, Batch(x, step=0), torch.Generator().manual_seed(seed), companion))
    return terms, companion


def test_at_the_best_discriminator_the_game_is_worth_the_jensen_shannon_divergence() -> None:
    logits = torch.from_numpy(LOG_P - LOG_Q)
    real, fake = (discriminator_loss(a, b) for a, b in ((logits, 0 * logits), (0 * logits, logits)))
    # A logit of 0 adds log 2 to each.
    loss = expected(LOG_P, real.numpy()) + expected(LOG_Q, fake.numpy()) - 2 * math.log(2)
    js = jensen_shannon()
    assert 0.1 < js < math.log(2)
    assert -loss == pytest.approx(2 * js - math.log(4), rel=1e-9)
    # The encoder's saturating part is the same game's E_q log(1 − D).
    part = expected(LOG_Q, encoder_loss(logits, "saturating").numpy())
    other = expected(LOG_P, -np.logaddexp(0, -logits.numpy()))
    assert part + other == pytest.approx(2 * js - math.log(4), rel=1e-9)


@pytest.mark.parametrize("bend", [0.3, -0.3])
def test_no_other_discriminator_does_better(bend: float) -> None:
    def loss(logits: np.ndarray) -> float:
        t = torch.from_numpy(logits)
        zero = torch.zeros_like(t)
        both = discriminator_loss(t, zero), discriminator_loss(zero, t)
        return expected(LOG_P, both[0].numpy()) + expected(LOG_Q, both[1].numpy())

    best = LOG_P - LOG_Q
    for other in (best + bend, best + bend * np.sin(Z), best * (1 + bend)):
        assert loss(other) > loss(best) + 1e-4


def test_the_terms_of_an_encoder_with_known_codes_have_their_expected_values() -> None:
    # x ~ N(0, 1) and the code STD · x + MEAN: q(z) is N(MEAN, STD²).
    model = linear_model(1, 1, gamma=1.0)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
        model.encoder.head.mean.weight.fill_(STD)
        model.encoder.head.mean.bias.fill_(MEAN)
        model.encoder.head.log_variance.bias.fill_(-60.0)  # a point
    x = torch.randn(40_000, 1, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    logits = LOG_P - LOG_Q
    values = {"non-saturating": np.logaddexp(0, -logits), "saturating": -np.logaddexp(0, logits)}
    for game in get_args(Game):
        objective = AaeObjective(game=game)
        with torch.no_grad():
            terms = objective.terms(
                Step(model, Batch(x, step=0), torch.Generator().manual_seed(1), BestDiscriminator())
            )
        assert_mean_is(terms["discriminator"].value.numpy(), math.log(4) - 2 * jensen_shannon())
        assert_mean_is(terms["aggregate"].value.numpy(), expected(LOG_Q, values[game]))


def test_without_the_game_it_is_the_autoencoder_and_with_the_rate_the_vae() -> None:
    point, gaussian = model_with(DeterministicPosterior()), model_with(DiagonalPosterior())
    terms, _ = terms_of(AaeObjective(lambda_adversary=0.0), point)
    x = torch.from_numpy(TinyDataset((5,), 8).values(range(8))).double()
    batch = Batch(x, step=0)
    assert torch.equal(total(terms), total(AeObjective().terms(Step(point, batch, torch.Generator()))))
    terms, _ = terms_of(AaeObjective(lambda_adversary=0.0, keep_rate=1.0), gaussian)
    vae = VaeObjective().terms(Step(gaussian, batch, torch.Generator().manual_seed(0)))
    assert torch.equal(total(terms), total(vae))
    # As published: the game with weight 1, and no rate.
    default, _ = terms_of(AaeObjective(), gaussian)
    assert (default["aggregate"].weight, default["rate"].weight) == (1, 0)


def test_the_discriminator_sees_codes_without_training_the_encoder() -> None:
    model = model_with(DeterministicPosterior())
    terms, companion = terms_of(AaeObjective(), model)
    weights = list(model.parameters())
    loss = total(terms, trains="companion")
    assert all(g is None for g in torch.autograd.grad(loss, weights, allow_unused=True, retain_graph=True))
    reached = torch.autograd.grad(loss, list(companion.parameters()), retain_graph=True)
    assert all((gradient != 0).any() for gradient in reached[-2:])
    encoder = torch.autograd.grad(terms["aggregate"].per_batch, list(model.encoder.parameters()))
    assert all((gradient != 0).any() for gradient in encoder)


@pytest.mark.parametrize("game", get_args(Game))
def test_both_games_pull_codes_to_where_the_discriminator_expects_the_prior(game: Game) -> None:
    logits = torch.linspace(-60, 60, 13).double().requires_grad_()
    loss = encoder_loss(logits, game)
    (slope,) = torch.autograd.grad(loss.sum(), logits)
    assert torch.isfinite(loss).all()
    assert (slope <= 0).all()
    # Where D is sure that z is a code, the one game pulls with full strength, the other not at all.
    assert float(slope[0]) == pytest.approx(-1.0 if game == "non-saturating" else 0.0, abs=1e-20)


def test_an_undecided_discriminator_costs_log_two() -> None:
    zero = torch.zeros(3)
    assert encoder_loss(zero, "non-saturating").tolist() == pytest.approx([math.log(2)] * 3)
    assert encoder_loss(zero, "saturating").tolist() == pytest.approx([-math.log(2)] * 3)
    assert discriminator_loss(zero, zero).tolist() == pytest.approx([math.log(4)] * 3)


def test_the_discriminator_is_drawn_from_its_generator_alone() -> None:
    made = []
    for noise, seed in ((1, 5), (2, 5), (1, 6)):
        torch.manual_seed(noise)
        made.append(Discriminator(3, 2, 7, 4, 0.2, torch.Generator().manual_seed(seed)))
    z = torch.randn(9, 3, generator=torch.Generator().manual_seed(0))
    assert torch.equal(made[0](z), made[1](z))
    assert not torch.equal(made[0](z), made[2](z))
    assert made[0](z).shape == (9, 2)
    shapes = [tuple(p.shape) for name, p in made[0].named_parameters() if name.endswith("weight")]
    assert shapes == [(7, 3), (7, 7), (7, 7), (7, 7), (2, 7)]
    for width, depth in ((0, 2), (1, -1)):
        with pytest.raises(
            InputError, match=f"at least 1 and a depth of at least 0, got {width} and {depth}"
        ):
            Discriminator(3, 1, width, depth, 0.2, torch.Generator())


def test_a_discriminator_without_hidden_layers_is_affine_and_one_unit_is_enough() -> None:
    z = torch.randn(2, 3, generator=torch.Generator().manual_seed(0))
    affine, narrow = (
        Discriminator(3, 2, 1, depth, 0.2, torch.Generator().manual_seed(0)) for depth in (0, 1)
    )
    torch.testing.assert_close(affine(z.mean(0, keepdim=True)), affine(z).mean(0, keepdim=True))
    assert [tuple(p.shape) for name, p in narrow.named_parameters() if name.endswith("weight")] == [
        (1, 3),
        (2, 1),
    ]


@unchecked()
def test_training_brings_the_codes_towards_the_prior() -> None:
    data = GaussianDataset(eigenvalues=(9.0, 4.0), width=4, n_samples=400)
    common = {"net": "linear", "n_latents": 2, "steps": 400, "learning_rate": 1e-2, "batch_size": 128}
    common |= {"keep_units": True}
    game = {"lambda_adversary": 30.0, "width": 64, "adversary_learning_rate": 1e-2}
    plain = ps.encode(ps.train(data, objective="ae", **common), data).mean
    played = ps.encode(ps.train(data, objective="aae", **common, **game), data).mean
    gap = [np.abs(np.cov(codes.T) - np.eye(2)).max() for codes in (plain, played)]
    assert gap[1] < 1 < 5 < gap[0]  # 0.06 and 9.3; over three seeds at most 0.33 and at least 5.4


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"lambda_adversary": -1.0}, "lambda_adversary must not be negative, got -1.0; 0 is the autoencoder"),
        ({"keep_rate": -1.0}, "keep_rate must not be negative, got -1.0; 0 is the original"),
        ({"width": 0}, "width must be at least 1, got 0"),
        ({"depth": 0}, "depth must be at least 1, got 0"),
        ({"adversary_learning_rate": 0.0}, "adversary_learning_rate must be positive, got 0.0"),
    ],
)
def test_wrong_settings_are_refused(options: dict, words: str) -> None:
    with pytest.raises(InputError, match=words):
        AaeObjective(**options)


def test_keeping_a_rate_that_a_point_does_not_have_is_refused_before_training() -> None:
    data = TinyDataset((5,), 30)
    with pytest.raises(
        InputError, match=r"keep_rate=1.0 is the weight of a rate.*use posterior='diagonal' or keep_rate=0"
    ):
        plan(data, "aae", keep_rate=1.0)
    plan(data, "aae", keep_rate=1.0, posterior="diagonal")
