"""Terms and their sum: what every objective is made of."""

from __future__ import annotations

import pytest
import torch

from oracles import TinyDataset
from polariscope.core.errors import InputError
from polariscope.models.likelihoods.bernoulli import BernoulliLikelihood
from polariscope.models.model import Blueprint, Model
from polariscope.models.nets.conv import ConvNet
from polariscope.models.nets.mlp import MlpNet
from polariscope.models.posteriors.diagonal import DiagonalPosterior
from polariscope.models.priors.isotropic import IsotropicPrior
from polariscope.objectives import AbstractObjective, Batch, Step, Term, Terms, total
from polariscope.objectives.beta import BetaObjective
from polariscope.objectives.vae import VaeObjective

SHAPE = (2, 16, 16)


@pytest.fixture(params=["conv", "mlp"])
def model(request: pytest.FixtureRequest) -> Model:
    net = ConvNet() if request.param == "conv" else MlpNet()
    blueprint = Blueprint(net, DiagonalPosterior(), IsotropicPrior(), BernoulliLikelihood(), 3, SHAPE)
    return blueprint.build(seed=0).double()


@pytest.fixture
def x() -> torch.Tensor:
    return torch.from_numpy(TinyDataset(SHAPE, n_samples=6).values(range(6))).double()


def terms_of(objective: AbstractObjective, model: Model, x: torch.Tensor, seed: int = 0) -> Terms:
    return objective.terms(Step(model, Batch(x, step=0), torch.Generator().manual_seed(seed)))


def by_hand(model: Model, x: torch.Tensor, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Reconstruction per sample and rate per sample and latent, spelled out from the reference."""
    features = model.encoder.trunk(x)
    head = model.encoder.head
    mean, log_variance = head.mean(features), head.log_variance(features)
    noise = torch.randn(mean.shape, generator=torch.Generator().manual_seed(seed), dtype=mean.dtype)
    p = torch.sigmoid(model.decoder.trunk(mean + torch.exp(log_variance / 2) * noise))
    reconstruction = -(x * p.log() + (1 - x) * (1 - p).log()).sum((1, 2, 3))
    return reconstruction, 0.5 * (mean**2 + log_variance.exp() - log_variance - 1)


def test_terms_are_per_sample_and_per_latent_as_written_by_hand(model: Model, x: torch.Tensor) -> None:
    terms = terms_of(BetaObjective(beta=3.0), model, x)
    reconstruction, rate = by_hand(model, x)
    assert list(terms) == ["reconstruction", "rate"]
    assert terms["reconstruction"].value.shape == (6,)
    assert terms["rate"].value.shape == (6, 3)
    torch.testing.assert_close(terms["reconstruction"].value, reconstruction)
    torch.testing.assert_close(terms["rate"].value, rate)
    assert (terms["reconstruction"].weight, terms["rate"].weight) == (1.0, 3.0)


def test_the_loss_sums_pixels_and_latents_and_averages_the_batch(model: Model, x: torch.Tensor) -> None:
    reconstruction, rate = by_hand(model, x)
    expected = (reconstruction + 3.0 * rate.sum(1)).mean()
    torch.testing.assert_close(total(terms_of(BetaObjective(beta=3.0), model, x)), expected)


def test_beta_one_is_the_vae(model: Model, x: torch.Tensor) -> None:
    vae, beta = (terms_of(objective, model, x) for objective in (VaeObjective(), BetaObjective(beta=1.0)))
    assert vae.keys() == beta.keys()
    for name in vae:
        assert torch.equal(vae[name].value, beta[name].value)
    assert torch.equal(total(vae), total(beta))


def test_beta_zero_is_the_reconstruction_alone(model: Model, x: torch.Tensor) -> None:
    terms = terms_of(BetaObjective(beta=0.0), model, x)
    assert torch.equal(total(terms), terms["reconstruction"].per_batch)
    assert terms["rate"].per_batch > 0


def test_the_loss_is_affine_in_beta_with_the_rate_as_its_slope(model: Model, x: torch.Tensor) -> None:
    losses = [total(terms_of(BetaObjective(beta=beta), model, x)) for beta in (0.0, 1.0, 7.0)]
    torch.testing.assert_close(losses[2] - losses[0], 7 * (losses[1] - losses[0]))


def test_repeating_the_batch_leaves_the_loss_unchanged() -> None:
    terms = {
        "a": Term(torch.tensor([1.0, 5.0])),
        "b": Term(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), weight=0.5),
    }
    doubled = {name: Term(torch.cat([term.value] * 2), term.weight) for name, term in terms.items()}
    assert float(total(terms)) == float(total(doubled)) == 3.0 + 0.5 * 5.0


def test_repeating_observations_and_their_noise_leaves_the_loss_unchanged(
    model: Model, x: torch.Tensor
) -> None:
    from oracles import standard_normal_draws

    noise = torch.randn(6, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    losses = []
    for times in (1, 3):
        with standard_normal_draws(noise.repeat(times, 1)):
            losses.append(total(terms_of(VaeObjective(), model, x.repeat(times, 1, 1, 1))))
    torch.testing.assert_close(losses[0], losses[1])


def test_every_pixel_counts_once_so_twice_the_pixels_is_twice_the_reconstruction() -> None:
    # The same image side by side with itself, decoded by the same weights.
    one, two = (
        Blueprint(
            MlpNet((), (), "tanh"),
            DiagonalPosterior(),
            IsotropicPrior(),
            BernoulliLikelihood(),
            3,
            (1, 4, width),
        )
        .build(seed=0)
        .double()
        for width in (4, 8)
    )
    with torch.no_grad():
        for name in ("mean", "log_variance"):
            a, b = getattr(one.encoder.head, name), getattr(two.encoder.head, name)
            half = a.weight.reshape(3, 4, 4) / 2
            b.weight.copy_(torch.cat([half, half], dim=2).reshape(3, 32))
        w = one.decoder.trunk.layers[-1][0].weight.reshape(4, 4, 3)
        two.decoder.trunk.layers[-1][0].weight.copy_(torch.cat([w, w], dim=1).reshape(32, 3))
    x = torch.rand(5, 1, 4, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    small, large = terms_of(VaeObjective(), one, x), terms_of(VaeObjective(), two, torch.cat([x, x], dim=3))
    torch.testing.assert_close(large["reconstruction"].value, 2 * small["reconstruction"].value)
    torch.testing.assert_close(large["rate"].value, small["rate"].value)


def test_one_number_for_the_batch_is_a_term_too() -> None:
    assert float(Term(torch.tensor(2.5)).per_batch) == 2.5
    assert float(total({"penalty": Term(torch.tensor(2.5), weight=2.0)})) == 5.0


@pytest.mark.parametrize("beta", [-1.0, float("nan"), float("inf"), -1e-9])
def test_a_beta_that_is_none_is_refused(beta: float) -> None:
    with pytest.raises(InputError, match=rf"beta must (not be negative|be finite), got {beta}; 1 is the VAE"):
        BetaObjective(beta=beta)
