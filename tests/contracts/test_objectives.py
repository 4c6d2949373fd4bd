"""What every objective promises."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from oracles import TinyDataset, assert_is_a_good_member, directional_derivatives, label, variants
from polariscope.likelihoods.bernoulli import BernoulliLikelihood
from polariscope.likelihoods.gaussian import GaussianLikelihood
from polariscope.model import Blueprint, Model
from polariscope.nets.conv import ConvNet
from polariscope.nets.mlp import MlpNet
from polariscope.objectives import AbstractObjective, Batch, Terms, objective, total
from polariscope.posteriors.diagonal import DiagonalPosterior
from polariscope.priors.isotropic import IsotropicPrior

N_SAMPLES = 8
MODELS = {
    "image": Blueprint(
        ConvNet(), DiagonalPosterior(), IsotropicPrior(), BernoulliLikelihood(), 3, (1, 16, 16)
    ),
    "flat": Blueprint(
        MlpNet((6,), (6,)), DiagonalPosterior(), IsotropicPrior(), GaussianLikelihood(), 3, (5,)
    ),
}


@pytest.fixture(params=variants(objective), ids=label)
def recipe(request: pytest.FixtureRequest) -> AbstractObjective:
    return request.param


@pytest.fixture(params=sorted(MODELS))
def model(request: pytest.FixtureRequest) -> Model:
    return MODELS[request.param].build(seed=0).double()


def terms_of(recipe: AbstractObjective, model: Model, seed: int = 0, step: int = 0) -> Terms:
    x = torch.from_numpy(TinyDataset(model.blueprint.shape, N_SAMPLES).values(range(N_SAMPLES))).double()
    return recipe.terms(model, Batch(x, step=step), torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("name", list(objective))
def test_it_is_documented_built_by_name_and_kept_as_json(name: str) -> None:
    assert_is_a_good_member(objective, name)


@pytest.mark.parametrize("step", [0, 1_000_000])
def test_the_loss_is_one_finite_number_at_every_step(
    recipe: AbstractObjective, model: Model, step: int
) -> None:
    loss = total(terms_of(recipe, model, step=step))
    assert loss.shape == ()
    assert torch.isfinite(loss)


def test_terms_are_per_sample_per_latent_or_per_batch(recipe: AbstractObjective, model: Model) -> None:
    terms = terms_of(recipe, model)
    assert terms["reconstruction"].value.shape == (N_SAMPLES,)
    for name, term in terms.items():
        assert term.value.shape in {(), (N_SAMPLES,), (N_SAMPLES, model.n_latents)}, name
        assert torch.isfinite(term.value).all(), name


def test_the_loss_is_the_weighted_sum_of_its_terms(recipe: AbstractObjective, model: Model) -> None:
    terms = terms_of(recipe, model)
    expected = sum(
        term.weight * float(term.value.detach().sum()) / (N_SAMPLES if term.value.ndim else 1)
        for term in terms.values()
    )
    assert float(total(terms).detach()) == pytest.approx(expected, rel=1e-12)


def test_the_gradient_reaches_encoder_and_decoder(recipe: AbstractObjective, model: Model) -> None:
    total(terms_of(recipe, model)).backward()
    for part in (model.encoder, model.decoder):
        gradients = [p.grad for p in part.parameters() if p.grad is not None]
        assert all(torch.isfinite(gradient).all() for gradient in gradients)
        assert any((gradient != 0).any() for gradient in gradients)


@pytest.mark.parametrize("shape", [(5,), (1, 4, 4)])
def test_the_gradient_is_that_of_the_loss(recipe: AbstractObjective, shape: tuple[int, ...]) -> None:
    # A smooth net: a difference across the kink of a ReLU is no derivative.
    blueprint = dataclasses.replace(MODELS["flat"], net=MlpNet((6,), (6,), "tanh"), shape=shape)
    model = blueprint.build(seed=0).double()
    for seed in range(3):
        analytic, difference = directional_derivatives(
            lambda: total(terms_of(recipe, model)), list(model.parameters()), seed
        )
        # Rounding of a loss of some 20 nats over a step of 1e-6 is about 1e-9; the h² error is about 1e-10.
        assert analytic == pytest.approx(difference, rel=1e-7, abs=1e-7)


def test_the_generator_alone_decides_the_terms(recipe: AbstractObjective, model: Model) -> None:
    torch.manual_seed(1)
    first = terms_of(recipe, model, seed=7)
    torch.manual_seed(2)
    again, other = terms_of(recipe, model, seed=7), terms_of(recipe, model, seed=8)
    assert first.keys() == again.keys() == other.keys()
    assert all(torch.equal(first[name].value, again[name].value) for name in first)
    assert not torch.equal(first["reconstruction"].value, other["reconstruction"].value)


def test_taking_the_terms_leaves_the_model_as_it_was(recipe: AbstractObjective, model: Model) -> None:
    before = model.digest
    terms_of(recipe, model)
    assert model.digest == before
