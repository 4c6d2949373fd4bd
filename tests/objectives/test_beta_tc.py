"""The β-TCVAE: the total correlation is weighted once, and the rate stays what it is."""

from __future__ import annotations

import math

import pytest
import torch

import polariscope as ps
from oracles import TinyDataset, linear_model
from polariscope.core.errors import InputError
from polariscope.models.model import Model
from polariscope.objectives import Batch, Step, Terms, total
from polariscope.objectives.beta_tc import BetaTcObjective
from polariscope.objectives.support.aggregate import ESTIMATORS, aggregate_log_density
from polariscope.objectives.vae import VaeObjective
from polariscope.training.plan import plan
from polariscope.training.train import train

X = torch.from_numpy(TinyDataset((5,), 6).values(range(6))).double()
N_DATA = 40


@pytest.fixture
def model() -> Model:
    return linear_model(5, 3, gamma=0.5)


def terms_of(objective, model: Model, n_data: int = N_DATA) -> Terms:
    return objective.terms(Step(model, Batch(X, step=0, n_data=n_data), torch.Generator().manual_seed(0)))


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_beta_one_is_the_vae_with_every_estimator(model: Model, estimator) -> None:
    loss = total(terms_of(BetaTcObjective(beta=1.0, estimator=estimator), model))
    vae = total(terms_of(VaeObjective(), model))
    assert torch.equal(loss, vae)
    parameters = list(model.parameters())
    for ours, theirs in zip(
        torch.autograd.grad(loss, parameters), torch.autograd.grad(vae, parameters), strict=True
    ):
        torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("beta", [0.0, 1.0, 6.0])
def test_the_rate_is_never_weighted_by_beta(model: Model, beta: float) -> None:
    terms = terms_of(BetaTcObjective(beta=beta), model)
    assert {name: term.weight for name, term in terms.items()} == {
        "reconstruction": 1.0,
        "rate": 1.0,
        "total_correlation": beta - 1,
        "mutual_information": 0.0,
        "dimension_wise_kl": 0.0,
    }


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_the_loss_grows_with_beta_by_the_total_correlation(model: Model, estimator) -> None:
    losses = [total(terms_of(BetaTcObjective(beta=beta, estimator=estimator), model)) for beta in (1.0, 5.0)]
    z = model.encode(X).sample(torch.Generator().manual_seed(0))
    correlation = aggregate_log_density(model.encode(X), z, N_DATA, estimator).total_correlation.mean()
    torch.testing.assert_close(losses[1] - losses[0], 4 * correlation, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_the_three_parts_add_up_to_the_rate_at_the_draw(model: Model, estimator) -> None:
    terms = terms_of(BetaTcObjective(estimator=estimator), model)
    parts = (
        terms["mutual_information"].value
        + terms["total_correlation"].value
        + terms["dimension_wise_kl"].value.sum(1)
    )
    q = model.encode(X)
    z = q.sample(torch.Generator().manual_seed(0))
    torch.testing.assert_close(parts, (q.log_density(z) - model.prior.log_density(z)).sum(1))
    assert not terms["mutual_information"].value.requires_grad
    assert not terms["dimension_wise_kl"].value.requires_grad


def test_the_size_of_the_data_enters_the_estimate(model: Model) -> None:
    small, large = (
        terms_of(BetaTcObjective(estimator="weighted"), model, n_data=n)[
            "total_correlation"
        ].per_batch.detach()
        for n in (40, 4000)
    )
    # Two of three marginals are not cancelled by the joint's constant.
    assert float(large - small) == pytest.approx(2 * math.log(4000 / 40), rel=1e-12)


def test_the_default_has_the_gradient_of_minibatch_weighted_sampling(model: Model) -> None:
    weights = list(model.parameters())
    gradients = [
        torch.autograd.grad(total(terms_of(objective, model)), weights)
        for objective in (BetaTcObjective(), BetaTcObjective(estimator="weighted"))
    ]
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-11)


def test_independent_encodings_of_the_whole_data_are_not_penalised(model: Model) -> None:
    with torch.no_grad():
        for parameter in model.encoder.parameters():
            parameter.zero_()  # the same posterior for every x
    terms = terms_of(BetaTcObjective(estimator="exact"), model, n_data=6)
    assert float(terms["total_correlation"].value.detach().abs().max()) < 1e-14
    assert float(terms["mutual_information"].value.abs().max()) < 1e-14


def test_a_full_covariance_posterior_has_a_total_correlation_of_its_own(model: Model) -> None:
    job = plan(ps.load_dataset("gaussian", n_samples=100), "beta-tc", "linear", 3, posterior="full")
    full = job.blueprint.build(0).double()
    with torch.no_grad():
        for parameter in full.encoder.parameters():
            parameter.zero_()
        full.encoder.head.below.bias.fill_(1.0)  # L has ones on and below its diagonal, for every x
    x = torch.from_numpy(job.data.values(range(6))).double()
    q = full.encode(x)
    noise = torch.Generator().manual_seed(0)
    terms = BetaTcObjective(estimator="exact").terms(Step(full, Batch(x, 0, 6), noise))
    z = q.sample(torch.Generator().manual_seed(0))
    gaussian = torch.distributions.MultivariateNormal(q.mean[0], q.covariance[0])
    marginals = torch.distributions.Normal(q.mean[0], q.variance[0].sqrt())
    expected = gaussian.log_prob(z) - marginals.log_prob(z).sum(1)
    torch.testing.assert_close(terms["total_correlation"].value, expected)


def test_the_exact_estimator_trains_on_data_that_fit_into_a_batch() -> None:
    data = ps.load_dataset("gaussian", n_samples=50)
    with pytest.raises(
        InputError,
        match=r"requires every sample in the batch, and gaussian has 50, got batch_size=49; use batch_size=50",
    ):
        train(data, "beta-tc", "linear", 3, estimator="exact", batch_size=49, steps=1)
    train(data, "beta-tc", "linear", 3, estimator="exact", batch_size=50, steps=2)


def test_one_sample_per_batch_is_refused() -> None:
    with pytest.raises(InputError, match=r"batch_size must be at least 2, got 1: q\(z\) is estimated"):
        train(ps.load_dataset("gaussian", n_samples=50), "beta-tc", "linear", 3, batch_size=1, steps=1)


@pytest.mark.parametrize("beta", [-1.0, float("nan"), float("inf")])
def test_a_beta_that_is_none_is_refused(beta: float) -> None:
    with pytest.raises(InputError, match=rf"beta must (not be negative|be finite), got {beta}; 1 is the VAE"):
        BetaTcObjective(beta=beta)


def test_an_estimator_that_does_not_exist_is_refused() -> None:
    with pytest.raises(
        InputError, match=r"estimator must be .*, got 'stratifed'; did you mean 'stratified'\?"
    ):
        BetaTcObjective(estimator="stratifed")  # type: ignore[arg-type]
    with pytest.raises(
        InputError, match=r"option estimator of objective 'beta-tc' must be one of .*weighted"
    ):
        plan(ps.load_dataset("gaussian", n_samples=50), "beta-tc", "linear", estimator="mss")
