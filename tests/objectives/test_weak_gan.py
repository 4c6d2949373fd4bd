"""The weakly supervised GAN: shared latents are shared, and each term trains its own network."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from long_training import unchecked
from oracles import directional_derivatives
from polariscope.core.errors import InputError
from polariscope.data.own.arrays import from_arrays
from polariscope.data.pairs import Transition
from polariscope.data.sources import load_dataset
from polariscope.models.likelihoods.gaussian import GaussianLikelihood
from polariscope.models.model import Blueprint, Model
from polariscope.models.nets.linear import LinearNet
from polariscope.models.nets.mlp import MlpNet
from polariscope.models.posteriors.diagonal import DiagonalPosterior
from polariscope.models.priors.isotropic import IsotropicPrior
from polariscope.objectives import Batch, Step, total
from polariscope.objectives.weak_gan import PairDiscriminator, WeakGanObjective, shared_draws
from polariscope.training.loop import step_gradients
from polariscope.training.plan import plan

N_FACTORS = 2


def model(net=None, n_latents: int = 3, n_features: int = 4) -> Model:
    blueprint = Blueprint(
        net or MlpNet((6,), (6,), "tanh"),
        DiagonalPosterior(),
        IsotropicPrior(),
        GaussianLikelihood(),
        n_latents,
        (n_features,),
    )
    return blueprint.build(seed=0).double()


def normal(*shape: int, seed: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def batch(n: int = 6) -> Batch:
    shared = torch.tensor([[1.0, 0.0], [0.0, 1.0]], dtype=torch.float64).repeat(n // 2, 1)
    return Batch(normal(n, 4, seed=1), step=0, pair=normal(n, 4, seed=2), shared=shared)


def judge(made: Model) -> PairDiscriminator:
    return PairDiscriminator(made.blueprint, N_FACTORS, 8, torch.Generator().manual_seed(5)).double()


def test_pairs_share_the_latents_of_their_factors_and_no_others():
    shared = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [0.0, 0.0]]).double().repeat(500, 1)
    z, partner = shared_draws(model(), shared, torch.Generator().manual_seed(0))
    assert torch.equal(z == partner, torch.nn.functional.pad(shared, (0, 1)) > 0)  # the third latent never
    # what is not shared is drawn on its own: correlation 0 within 5/√n
    free = ~(shared[:, 0] > 0)
    correlation = np.corrcoef(z[free, 0], partner[free, 0])[0, 1]
    assert abs(correlation) < 5 / math.sqrt(int(free.sum()))
    assert float(partner.var()) == pytest.approx(1, abs=0.1)


def test_the_terms_are_logistic_losses_and_a_log_density():
    made, given = model(), batch()
    companion = judge(made)
    terms = WeakGanObjective(inversion=0.5).terms(
        Step(made, given, torch.Generator().manual_seed(0), companion)
    )
    z, partner = shared_draws(made, given.shared, torch.Generator().manual_seed(0))
    fakes = [made.decode(code).mean for code in (z, partner)]
    true = torch.sigmoid(companion(given.x, given.pair, given.shared))
    false = torch.sigmoid(companion(*fakes, given.shared))
    torch.testing.assert_close(terms["generation"].value, -false.log())
    torch.testing.assert_close(terms["discriminator"].value, -true.log() - (1 - false).log())
    q = made.encode(fakes[0])
    expected = -torch.distributions.Normal(q.mean, q.variance.sqrt()).log_prob(z)
    torch.testing.assert_close(terms["inversion"].value, expected)
    assert {name: (term.weight, term.trains) for name, term in terms.items()} == {
        "generation": (1.0, "model"),
        "inversion": (0.5, "model"),
        "discriminator": (1.0, "companion"),
    }


def test_a_discriminator_that_cannot_tell_costs_log_2_each_way():
    def undecided(x: Tensor, partner: Tensor, shared: Tensor) -> Tensor:
        return torch.zeros(len(x), dtype=x.dtype)

    terms = WeakGanObjective().terms(Step(model(), batch(), torch.Generator(), undecided))
    assert float(terms["generation"].per_batch) == pytest.approx(math.log(2))
    assert float(terms["discriminator"].per_batch) == pytest.approx(2 * math.log(2))
    assert terms["inversion"].weight == 1  # by default, as the others


def gradients_of(value: Tensor, parameters: list[Tensor]) -> bool:
    """Whether ``value`` would train any of these."""
    if not value.requires_grad:
        return False
    found = torch.autograd.grad(value, parameters, allow_unused=True, retain_graph=True)
    return any(g is not None and (g != 0).any() for g in found)


def test_each_term_trains_its_own_network_and_no_other():
    made, given = model(), batch()
    companion = judge(made)
    terms = WeakGanObjective().terms(Step(made, given, torch.Generator().manual_seed(0), companion))
    parts = {"encoder": made.encoder, "decoder": made.decoder, "discriminator": companion}
    reached = {
        name: {
            part for part, module in parts.items() if gradients_of(term.per_batch, list(module.parameters()))
        }
        for name, term in terms.items()
    }
    assert reached["inversion"] == {"encoder"}
    assert reached["discriminator"] == {"discriminator"}
    # The decoder learns through the discriminator, whose own weights the loop leaves out of this loss.
    assert reached["generation"] == {"decoder", "discriminator"}


def test_the_gradient_is_that_of_the_loss():
    made, given = model(), batch()
    companion = judge(made)

    def loss() -> Tensor:
        return total(WeakGanObjective().terms(Step(made, given, torch.Generator().manual_seed(0), companion)))

    # along the decoder only: the encoder sees a detached copy of what it makes
    objective = WeakGanObjective(inversion=0.0)

    def generation() -> Tensor:
        return total(objective.terms(Step(made, given, torch.Generator().manual_seed(0), companion)))

    for function, part in ((generation, made.decoder), (loss, made.encoder)):
        analytic, difference = directional_derivatives(function, list(part.parameters()), seed=0, step=1e-7)
        assert analytic == pytest.approx(difference, rel=1e-5, abs=1e-6)


def test_the_discriminator_sees_both_observations_and_the_set():
    made, given = model(), batch()
    companion = judge(made)
    logits = companion(given.x, given.pair, given.shared)
    assert logits.shape == (6,)
    assert not torch.allclose(logits, companion(given.pair, given.x, given.shared))
    assert not torch.allclose(logits, companion(given.x, given.x, given.shared))
    assert not torch.allclose(logits, companion(given.x, given.pair, 1 - given.shared))


@unchecked()
def test_a_linear_generator_moves_to_the_moments_of_the_data_with_a_latent_for_each_factor():
    # Two independent factors, x = (1.5 + w₀, −1 + ½ w₁); pairs share one of them. Three seeds ended with a mean within
    # 0.07, a covariance within 0.27, off-diagonal weights below 0.1 and an encoder's error below 0.13.
    made = model(LinearNet(), n_latents=2, n_features=2)
    objective = WeakGanObjective()
    companion = PairDiscriminator(made.blueprint, 2, 32, torch.Generator().manual_seed(1)).double()
    optimisers = {
        "model": torch.optim.Adam(made.parameters(), lr=1e-2, betas=(0.5, 0.9)),
        "companion": torch.optim.Adam(companion.parameters(), lr=1e-2, betas=(0.5, 0.9)),
    }
    trained = {"model": list(made.parameters()), "companion": list(companion.parameters())}
    draw = torch.Generator().manual_seed(0)
    centre, scale = torch.tensor([1.5, -1.0]).double(), torch.tensor([1.0, 0.5]).double()
    layer = made.decoder.trunk.layers[0][0]

    def distances() -> tuple[float, float]:
        """From the mean and the covariance of the data to those of what is generated."""
        weight, bias = layer.weight.detach(), layer.bias.detach()
        return float((bias - centre).norm()), float((weight @ weight.T - torch.diag(scale**2)).norm())

    assert distances() > (1.5, 2.0)
    for step in range(400):
        first, second = (torch.randn(64, 2, generator=draw, dtype=torch.float64) for _ in range(2))
        kept = torch.nn.functional.one_hot(torch.randint(2, (64,), generator=draw), 2).double()
        x, pair = (centre + scale * factors for factors in (first, torch.where(kept > 0, first, second)))
        terms = objective.terms(Step(made, Batch(x, step=step, pair=pair, shared=kept), draw, companion))
        step_gradients(terms, trained)
        for optimiser in optimisers.values():
            optimiser.step()
    mean, covariance = distances()
    assert mean < 0.3
    assert covariance < 0.6
    weight = layer.weight.detach().abs()
    assert weight[0, 0] > 3 * weight[0, 1]
    assert weight[1, 1] > 3 * weight[1, 0]
    with (
        torch.no_grad()
    ):  # the encoder has learned to undo the decoder: 1 is the error of one that knows nothing
        z = made.prior.sample(1000, draw)
        assert float(((made.encode(made.decode(z).mean).mean - z) ** 2).mean()) < 0.3


def test_bad_settings_are_refused():
    with pytest.raises(InputError, match=r"inversion must not be negative, got -1\.0"):
        WeakGanObjective(inversion=-1.0)
    with pytest.raises(InputError, match="width must be at least 1"):
        WeakGanObjective(width=0)
    sprites = load_dataset("sprites", image_size=16)
    with pytest.raises(
        InputError, match="n_latents must be at least 5, got 4: objective 'weak-gan' has a latent for"
    ):
        plan(sprites, objective="weak-gan", n_latents=4)
    with pytest.raises(InputError, match="pairs need a dataset"):
        plan(from_arrays(np.zeros((20, 4))), objective="weak-gan")
    with pytest.raises(InputError, match="use posterior='diagonal'"):
        plan(sprites, objective="weak-gan", posterior="deterministic")
    assert WeakGanObjective().transition == Transition("share")
