"""Permutation-contrastive learning reaches the loss that theory gives, and finds the source that persists."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from oracles import STANDARD_ERRORS, directional_derivatives
from polariscope.core.errors import InputError
from polariscope.data.own.arrays import from_arrays
from polariscope.data.pairs import Transition
from polariscope.data.sources import load_dataset
from polariscope.models.likelihoods.gaussian import GaussianLikelihood
from polariscope.models.model import Blueprint, Model
from polariscope.models.nets.linear import LinearNet
from polariscope.models.nets.mlp import MlpNet
from polariscope.models.posteriors.deterministic import DeterministicPosterior
from polariscope.models.priors.isotropic import IsotropicPrior
from polariscope.objectives import Batch, Step, total
from polariscope.objectives.pcl import LaplaceScore, NetworkScore, PclObjective, cyclic_order
from polariscope.training.plan import plan


def encoder(n_features: int, n_latents: int, net=None) -> Model:
    blueprint = Blueprint(
        net or LinearNet(),
        DeterministicPosterior(),
        IsotropicPrior(),
        GaussianLikelihood(),
        n_latents,
        (n_features,),
        decodes=False,
    )
    return blueprint.build(seed=0).double()


def identity() -> Model:
    """h(x) = x."""
    model = encoder(1, 1)
    with torch.no_grad():
        model.encoder.head.mean.weight.fill_(1.0)
        model.encoder.head.mean.bias.zero_()
    return model


def signs(stay: float, n: int) -> Batch:
    """x = ±1, and a partner of the same sign in exactly the share ``stay`` of pairs."""
    x = torch.tensor([1.0, -1.0], dtype=torch.float64).repeat_interleave(n // 2)[:, None]
    change = (torch.arange(n // 2) >= round(stay * n / 2)).repeat(2)[:, None]
    return Batch(x, step=0, pair=torch.where(change, -x, x), shared=torch.ones(n, 1).double())


def contrast_of(score, batch: Batch, seed: int = 0) -> Tensor:
    terms = PclObjective().terms(Step(identity(), batch, torch.Generator().manual_seed(seed), score))
    return terms["contrast"].value.detach()


@pytest.mark.parametrize("stay", [0.9, 0.75])
def test_the_best_score_reaches_log_2_less_the_jensen_shannon_divergence(stay):
    # P(x' = x) = p, both signs equally likely: the log-ratio is log 2p for equal signs and log 2(1 − p) for others.
    def best(h: Tensor, partner: Tensor) -> Tensor:
        return torch.where(h == partner, math.log(2 * stay), math.log(2 * (1 - stay)))[:, 0]

    cells = (
        np.array([stay / 2, (1 - stay) / 2] * 2),
        np.full(4, 1 / 4),
    )  # true and shuffled pairs, four outcomes
    middle = (cells[0] + cells[1]) / 2
    divergence = sum(0.5 * (p * np.log(p / middle)).sum() for p in cells)
    losses = contrast_of(best, signs(stay, 20_000))
    error = float(losses.std()) / math.sqrt(len(losses))
    assert abs(float(losses.mean()) - (math.log(2) - divergence)) < STANDARD_ERRORS * error
    # and no other constant for equal or unequal signs does better
    for a, b in ((1.0, -1.0), (0.0, 0.0), (2.0, -3.0)):

        def other(h: Tensor, partner: Tensor, a: float = a, b: float = b) -> Tensor:
            return torch.where(h == partner, a, b)[:, 0].double()

        assert float(contrast_of(other, signs(stay, 20_000)).mean()) > float(losses.mean())


def test_independent_pairs_cost_log_2_at_best():
    batch = signs(0.5, 20_000)
    undecided = contrast_of(lambda h, partner: torch.zeros(len(h), dtype=torch.float64), batch)
    torch.testing.assert_close(undecided, torch.full_like(undecided, math.log(2)))
    for gain in (-1.0, 0.5, 2.0):
        # E softplus(−r) + E softplus(r) ≥ 2 log 2 when both kinds of pairs have the same distribution
        assert float(contrast_of(lambda h, p, gain=gain: gain * (h * p)[:, 0], batch).mean()) > math.log(2)


def test_a_shuffled_partner_is_never_ones_own():
    for n in (2, 3, 50):
        order = cyclic_order(n, torch.Generator().manual_seed(n))
        assert sorted(order.tolist()) == list(range(n))
        assert (order != torch.arange(n)).all()
    draws = torch.stack([cyclic_order(4, torch.Generator().manual_seed(seed)) for seed in range(3000)])
    share = (draws[:, 0] == 1).double().mean()  # each of the three others equally often
    assert abs(float(share) - 1 / 3) < STANDARD_ERRORS * math.sqrt(2 / 9 / 3000)


def test_the_accuracy_is_watched_and_counts_both_kinds_of_pairs():
    terms = PclObjective().terms(
        Step(identity(), signs(1.0, 1000), torch.Generator().manual_seed(0), lambda h, p: (h * p)[:, 0])
    )
    assert list(terms) == ["contrast", "accuracy"]
    assert terms["accuracy"].weight == 0
    # all true pairs and the half of the shuffled ones that differ
    assert float(terms["accuracy"].per_batch) == pytest.approx(0.75, abs=0.05)
    assert torch.equal(total(terms), terms["contrast"].per_batch)


@pytest.mark.parametrize("gain", [0.5, 0.0, -0.5])
def test_the_accuracy_counts_pairs_on_the_right_side_of_0(gain):
    batch = signs(0.75, 1000)
    step = Step(identity(), batch, torch.Generator().manual_seed(0), lambda h, p: gain * (h * p)[:, 0])
    shuffled = batch.pair[cyclic_order(1000, torch.Generator().manual_seed(0))]
    right = (gain * batch.x * batch.pair > 0).double() + (gain * batch.x * shuffled < 0).double()
    found = PclObjective().terms(step)["accuracy"].value
    assert torch.equal(found, right[:, 0] / 2)
    if gain == 0:  # a score that never decides tells no pair apart
        assert not found.any()


@pytest.mark.parametrize(
    "score",
    [LaplaceScore(2), NetworkScore(2, 4, torch.Generator().manual_seed(0))],
    ids=["laplace", "network"],
)
def test_the_score_sums_functions_of_one_latent_each(score):
    score = score.double()
    draw = torch.Generator().manual_seed(1)
    a, b, c = (torch.randn(5, 2, generator=draw, dtype=torch.float64) for _ in range(3))

    def mixed(i: int, j: int) -> Tensor:
        """Latent 0 from set i, latent 1 from set j, of two sets of pairs."""
        sets = ((a, b), (b, c))
        parts = [torch.stack([sets[i][k][:, 0], sets[j][k][:, 1]], dim=1) for k in (0, 1)]
        return score(*parts)

    # no interaction between latents: f(0,0) + f(1,1) = f(0,1) + f(1,0)
    torch.testing.assert_close(mixed(0, 0) + mixed(1, 1), mixed(0, 1) + mixed(1, 0))
    assert not torch.allclose(mixed(0, 0), mixed(1, 0))


def test_the_laplace_score_is_its_formula():
    score = LaplaceScore(2).double()
    h, partner = torch.tensor([[1.0, -2.0]]).double(), torch.tensor([[0.5, 3.0]]).double()
    # a = 1, b = −1, d = 1 and the rest 0, as it starts: −(0.5 + 5) + 1 + 4
    assert float(score(h, partner).detach()) == pytest.approx(-0.5)
    with torch.no_grad():
        score.shift.copy_(torch.tensor([0.25, -0.5]))
        score.marginal.fill_(2.0)
        score.marginal_shift.fill_(1.0)
        score.constant.fill_(0.5)
    assert float(score(h, partner).detach()) == pytest.approx(-(0.75 + 5.5) + 9 + 9 + 0.5)


def test_the_score_is_the_one_asked_for():
    model = encoder(2, 2)
    for asked, kind in (("laplace", LaplaceScore), ("network", NetworkScore)):
        made = PclObjective(score=asked, width=7).companion(model, load_dataset("sprites"), torch.Generator())
        assert isinstance(made, kind)
    assert [layer.out_features for layer in made.latents[0] if hasattr(layer, "out_features")] == [7, 7, 1]
    assert PclObjective().score == "laplace"
    assert PclObjective().transition == Transition("laplace", 1.0)


@pytest.mark.parametrize("score", ["laplace", "network"])
def test_the_gradient_is_that_of_the_loss_and_trains_encoder_and_score(score):
    model = encoder(3, 2, MlpNet((4,), (), "tanh"))
    draw = torch.Generator().manual_seed(1)
    x, pair = (torch.randn(6, 3, generator=draw, dtype=torch.float64) for _ in range(2))
    batch = Batch(x, step=0, pair=pair, shared=torch.ones(6, 2).double())
    objective = PclObjective(score=score, width=4)
    companion = objective.companion(model, load_dataset("sprites"), torch.Generator().manual_seed(0))
    parameters = [*model.parameters(), *companion.parameters()]

    def loss() -> Tensor:
        return total(objective.terms(Step(model, batch, torch.Generator().manual_seed(0), companion)))

    # A step small enough to keep clear of the kinks of |·| and of the rectifiers.
    analytic, difference = directional_derivatives(loss, parameters, seed=0, step=1e-7)
    assert analytic == pytest.approx(difference, rel=1e-5, abs=1e-6)
    loss().backward()
    assert all(p.grad is not None for p in parameters)
    assert not objective.companion_is_adversary


def test_it_finds_the_source_that_persists_up_to_sign():
    # x = A s with one source that moves by Laplace steps and one that is drawn anew: only the first tells pairs apart.
    draw = np.random.default_rng(0)
    n = 4000
    before = draw.normal(size=n)
    now = 0.9 * before + draw.laplace(scale=0.15, size=n)
    noise = draw.normal(size=(2, n))
    mixing = np.array([[1.0, 0.6], [-0.4, 1.0]])
    x, pair = (
        torch.from_numpy((mixing @ np.stack([s, e])).T) for s, e in zip((now, before), noise, strict=True)
    )
    model = encoder(2, 1)
    objective = PclObjective()
    companion = objective.companion(model, load_dataset("sprites"), torch.Generator().manual_seed(0))
    optimiser = torch.optim.Adam([*model.parameters(), *companion.parameters()], lr=0.02)
    generator = torch.Generator().manual_seed(0)
    for step in range(200):
        rows = torch.randperm(n, generator=generator)[:512]
        batch = Batch(x[rows], step=step, pair=pair[rows], shared=torch.ones(512, 1).double())
        terms = objective.terms(Step(model, batch, generator, companion))
        optimiser.zero_grad()
        total(terms).backward()
        optimiser.step()
    with torch.no_grad():
        h = model.encode(x).mean[:, 0].numpy()
    assert abs(np.corrcoef(h, now)[0, 1]) > 0.98
    assert abs(np.corrcoef(h, noise[0])[0, 1]) < 0.2
    assert float(terms["contrast"].per_batch.detach()) < 0.5
    assert float(terms["accuracy"].per_batch) > 0.75


def test_it_has_neither_decoder_nor_rate():
    job = plan(load_dataset("sprites", image_size=16), objective="pcl")
    assert not job.blueprint.decodes
    assert job.blueprint.posterior == DeterministicPosterior()
    assert job.blueprint.build(0).decoder is None


def test_bad_settings_are_refused():
    with pytest.raises(InputError, match="pairs need a dataset with discrete factors, such as sprites"):
        plan(from_arrays(np.zeros((20, 4))), objective="pcl")
    with pytest.raises(InputError, match="batch_size must be at least 2, got 1"):
        plan(load_dataset("sprites", image_size=16), objective="pcl", batch_size=1)
    plan(load_dataset("sprites", image_size=16), objective="pcl", batch_size=2)
    with pytest.raises(InputError, match="width must be at least 1, got 0"):
        PclObjective(width=0)
