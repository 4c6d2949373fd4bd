"""DIP-VAE I and II: covariances over the batch, of the means and of the draws."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import polariscope as ps
from long_training import unchecked
from oracles import STANDARD_ERRORS, TinyDataset, linear_model, set_linear, symmetric_points
from polariscope.core.errors import InputError
from polariscope.core.options import build
from polariscope.models.model import Model
from polariscope.models.posteriors.diagonal import DiagonalGaussian
from polariscope.models.posteriors.full import FullGaussian
from polariscope.objectives import Batch, Step, Terms, total
from polariscope.objectives import family as objectives
from polariscope.objectives.dip_i import DipIObjective
from polariscope.objectives.dip_ii import DipIIObjective
from polariscope.objectives.support.aggregate_moments import aggregate_covariance, covariance, identity_gap
from polariscope.objectives.vae import VaeObjective
from polariscope.training.plan import plan
from polariscope.training.train import train

BOTH = [DipIObjective, DipIIObjective]
MEAN = torch.tensor([[1.0, 2.0], [3.0, 2.0], [2.0, 5.0]], dtype=torch.float64)
VARIANCE = torch.tensor([[0.1, 0.5], [0.2, 0.25], [0.3, 0.75]], dtype=torch.float64)


def terms_of(objective, model: Model, x: torch.Tensor) -> Terms:
    return objective.terms(Step(model, Batch(x, step=0), torch.Generator().manual_seed(0)))


def model_with(mean_covariance: np.ndarray, variance: np.ndarray) -> tuple[Model, torch.Tensor]:
    """A linear model and a batch on which Cov[μ] is exactly as given and every σ² too."""
    n = len(variance)
    model = linear_model(n, n, gamma=1.0)
    set_linear(model, np.eye(n), np.eye(n), variance)
    return model, torch.from_numpy(symmetric_points(mean_covariance))


def test_the_covariance_is_over_samples_and_divided_by_their_number() -> None:
    # Means 2 and 3; squares (1 + 1 + 0)/3 and (1 + 1 + 4)/3; products ((−1)(−1) + (1)(−1) + 0)/3.
    np.testing.assert_allclose(covariance(MEAN), [[2 / 3, 0.0], [0.0, 2.0]], atol=1e-15)
    other = torch.tensor([[1.0, 0.0], [3.0, 2.0]], dtype=torch.float64)
    np.testing.assert_allclose(covariance(other), [[1.0, 1.0], [1.0, 1.0]], atol=1e-15)
    np.testing.assert_allclose(covariance(MEAN), np.cov(MEAN.T.numpy(), bias=True), atol=1e-15)


def test_the_aggregate_covariance_adds_the_mean_variance_to_the_diagonal_only() -> None:
    # Not its square, not to every entry: 2/3 + 0.2 and 2 + 0.5.
    found = aggregate_covariance(DiagonalGaussian(MEAN, VARIANCE.log()))
    np.testing.assert_allclose(found, [[2 / 3 + 0.2, 0.0], [0.0, 2.5]], atol=1e-15)


def test_the_aggregate_covariance_is_that_of_draws() -> None:
    posterior = DiagonalGaussian(MEAN.repeat(40_000, 1), VARIANCE.log().repeat(40_000, 1))
    draws = posterior.sample(torch.Generator().manual_seed(0)).numpy()
    products = (draws - MEAN.numpy().mean(0))[:, :, None] * (draws - MEAN.numpy().mean(0))[:, None, :]
    error = products.std(0) / np.sqrt(len(draws))
    expected = aggregate_covariance(posterior).numpy()
    assert (np.abs(products.mean(0) - expected) < STANDARD_ERRORS * error).all()


def test_a_full_covariance_posterior_adds_its_covariances_as_well() -> None:
    below = torch.zeros(3, 2, 2, dtype=torch.float64)
    below[:, 1, 0] = torch.tensor([0.5, -0.2, 0.6])
    posterior = FullGaussian(MEAN, VARIANCE.log(), below)
    factor = np.stack([np.diag(np.sqrt(v)) for v in VARIANCE.numpy()]) + below.numpy()
    expected = np.diag([2 / 3, 2.0]) + (factor @ factor.transpose(0, 2, 1)).mean(0)
    assert abs(expected[0, 1]) > 0.1
    np.testing.assert_allclose(aggregate_covariance(posterior), expected, rtol=1e-12)


def test_the_gap_to_the_identity_is_what_one_counts_by_hand() -> None:
    c = torch.tensor([[2.0, 0.5], [0.5, 0.25]], dtype=torch.float64)
    terms = identity_gap(c, lambda_od=3.0, lambda_d=7.0)
    assert float(terms["off_diagonal"].value) == 2 * 0.5**2
    assert float(terms["diagonal"].value) == 1 + 0.75**2
    assert float(total(terms)) == pytest.approx(3 * 0.5 + 7 * 1.5625, rel=1e-15)


def test_dip_i_looks_at_the_means_and_dip_ii_at_the_draws() -> None:
    model, x = model_with(np.array([[0.5, 0.3], [0.3, 2.0]]), np.array([0.2, 0.4]))
    first, second = (terms_of(kind(), model, x) for kind in BOTH)
    for terms in (first, second):
        assert float(terms["off_diagonal"].per_batch.detach()) == pytest.approx(2 * 0.3**2, rel=1e-12)
    assert float(first["diagonal"].per_batch.detach()) == pytest.approx(0.5**2 + 1.0, rel=1e-12)
    assert float(second["diagonal"].per_batch.detach()) == pytest.approx(0.3**2 + 1.4**2, rel=1e-12)


@pytest.mark.parametrize("kind", BOTH)
def test_without_weights_it_is_the_vae(kind) -> None:
    model = linear_model(5, 3, gamma=0.5)
    x = torch.from_numpy(TinyDataset((5,), 6).values(range(6))).double()
    loss, vae = (
        total(terms_of(objective, model, x))
        for objective in (kind(lambda_od=0.0, lambda_d=0.0), VaeObjective())
    )
    assert torch.equal(loss, vae)


@pytest.mark.parametrize(
    ("kind", "mean_covariance"), [(DipIObjective, np.eye(2)), (DipIIObjective, np.diag([0.8, 0.6]))]
)
def test_at_the_identity_the_penalty_and_its_gradient_vanish(kind, mean_covariance) -> None:
    model, x = model_with(mean_covariance, np.array([0.2, 0.4]))
    terms = terms_of(kind(), model, x)
    penalty = terms["off_diagonal"].per_batch + terms["diagonal"].per_batch
    assert float(penalty.detach()) < 1e-28
    for gradient in torch.autograd.grad(penalty, list(model.encoder.parameters()), allow_unused=True):
        assert gradient is None or float(gradient.abs().max()) < 1e-13


def test_dip_i_pulls_a_passive_mean_away_and_dip_ii_leaves_it() -> None:
    model, x = model_with(np.diag([1e-30, 1.0]), np.array([1.0, 1e-12]))
    first, second = (terms_of(kind(), model, x)["diagonal"].per_batch.detach() for kind in BOTH)
    assert float(first) == pytest.approx(1.0, rel=1e-9)
    assert float(second) == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("kind", BOTH)
def test_the_penalty_does_not_depend_on_the_order_of_samples_or_latents_but_on_rotation(kind) -> None:
    c = np.array([[0.5, 0.3], [0.3, 2.0]])

    def penalty(covariance: np.ndarray, variance: np.ndarray, order: list[int] | None = None) -> float:
        model, x = model_with(covariance, variance)
        terms = terms_of(kind(), model, x if order is None else x[order])
        return float((10 * terms["off_diagonal"].per_batch + terms["diagonal"].per_batch).detach())

    variance = np.array([0.2, 0.4])
    base = penalty(c, variance)
    assert penalty(c, variance, [2, 0, 3, 1]) == pytest.approx(base, rel=1e-12)
    assert penalty(c[::-1, ::-1], variance[::-1].copy()) == pytest.approx(base, rel=1e-12)
    turn = np.array([[1.0, -1.0], [1.0, 1.0]]) / np.sqrt(2)
    assert abs(penalty(turn @ c @ turn.T, variance) - base) > 0.1


@unchecked()
def test_training_dip_i_decorrelates_the_means() -> None:
    data = ps.load_dataset("gaussian", eigenvalues=(4.0, 2.0, 1.0), n_samples=500)
    settings = {
        "likelihood": "gaussian", "variance": 0.2, "keep_units": True, "steps": 600, "batch_size": 250,
        "learning_rate": 1e-2, "schedule": "cosine", "train_fraction": 0.99,
    }  # fmt: skip
    model = train(data, "dip-i", "linear", 3, lambda_od=100.0, lambda_d=100.0, **settings)
    x = torch.from_numpy(data.values(range(500)))
    with torch.no_grad():
        c = covariance(model.encode(x).mean)
    # Covariances of 250 samples scatter by 1/√250 = 0.06; what is learned is the mean over many batches.
    assert float((c - torch.eye(3)).abs().max()) < 0.12


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize("name", ["lambda_od", "lambda_d"])
@pytest.mark.parametrize("value", [-1.0, float("nan"), float("inf")])
def test_a_weight_of_the_wrong_sign_is_refused(kind, name: str, value: float) -> None:
    with pytest.raises(
        InputError, match=rf"{name} must (not be negative|be finite), got {value}; 0 removes the penalty"
    ):
        kind(**{name: value})


@pytest.mark.parametrize(("name", "factor"), [("dip-i", 10), ("dip-ii", 1)])
def test_the_diagonal_weight_follows_the_other_unless_given_and_is_recorded(name: str, factor: int) -> None:
    data = ps.load_dataset("gaussian", n_samples=50)
    for given, expected in (
        ({}, (10.0, 10.0 * factor)),
        ({"lambda_od": 3.0}, (3.0, 3.0 * factor)),
        ({"lambda_od": 3.0, "lambda_d": 0.5}, (3.0, 0.5)),
        ({"lambda_d": 0.0}, (10.0, 0.0)),
        ({"lambda_od": 0.0}, (0.0, 0.0)),
    ):
        job = plan(data, name, "linear", 3, **given)
        record = job.describe("cpu")["objective"]
        assert (record["lambda_od"], record["lambda_d"]) == expected
        assert build(objectives, record) == job.objective
        model = linear_model(data.n_features, 3, gamma=0.5)
        terms = terms_of(job.objective, model, torch.from_numpy(data.values(range(6))).double())
        assert (terms["off_diagonal"].weight, terms["diagonal"].weight) == expected


@pytest.mark.parametrize("name", ["dip-i", "dip-ii"])
def test_one_sample_per_batch_is_refused(name: str) -> None:
    with pytest.raises(
        InputError, match="batch_size must be at least 2, got 1: the covariance is computed over"
    ):
        train(ps.load_dataset("gaussian", n_samples=50), name, "linear", 3, batch_size=1, steps=1)
